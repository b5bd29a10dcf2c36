"""Which head dims run on the Hopper kernels, and that these fit a multiprocessor."""

import pytest

from cmir.runtime.configs import HEAD_DIMS
from cmir.runtime.hopper_dims import MOST_SHARED, QK_WIDTHS, V_WIDTHS, Backward, Forward, backward_dims, forward_dims

SMALL = (16, 32)
BESIDE = 3072  # bytes of shared memory for barriers, and for what passes between threads


def test_all_head_dims_but_small_ones() -> None:
    for dim in HEAD_DIMS:
        for value_dim in HEAD_DIMS:
            taken = forward_dims(dim, value_dim)
            assert (taken is None) == (dim in SMALL or value_dim in SMALL), (dim, value_dim)
            if taken is not None:
                assert dim <= taken.width * taken.pieces <= 2 * dim
                assert value_dim <= taken.value_width < 2 * value_dim


@pytest.mark.parametrize("value_width", V_WIDTHS)
@pytest.mark.parametrize("width", QK_WIDTHS)
def test_what_is_taken_fits(width: int, value_width: int) -> None:
    taken = forward_dims(width, value_width)
    assert taken is not None
    assert taken.width * taken.pieces == width
    assert taken.shared <= MOST_SHARED - BESIDE
    assert taken.stages >= 2
    # A thread has half the columns of an accumulator [64, N]: of out, of the scores, and of the weights at 16 bits.
    assert value_width // 2 + taken.step // 2 + taken.step // 4 <= 192
    if taken.out_in_q:  # each consumer's output is in the place of its own queries
        assert value_width <= width


def test_the_table() -> None:
    assert forward_dims(64, 64) == Forward(64, 1, 64, 128, 4, False)
    assert forward_dims(96, 96) == Forward(32, 3, 128, 128, 3, False)
    assert forward_dims(128, 128) == Forward(128, 1, 128, 128, 2, False)
    assert forward_dims(192, 128) == Forward(64, 3, 128, 128, 2, True)
    assert forward_dims(256, 256) == Forward(256, 1, 256, 64, 2, True)
    assert forward_dims(240, 80) == forward_dims(256, 128)


def test_the_backward_kernels_take_the_same_head_dims() -> None:
    for dim in HEAD_DIMS:
        for value_dim in HEAD_DIMS:
            taken = backward_dims(dim, value_dim)
            assert (taken is None) == (forward_dims(dim, value_dim) is None), (dim, value_dim)
            if taken is not None:
                assert dim <= taken.width < 2 * dim and value_dim <= taken.value_width < 2 * value_dim
                assert taken.wide == (max(dim, value_dim) > 128)


@pytest.mark.parametrize("value_width", V_WIDTHS)
@pytest.mark.parametrize("width", V_WIDTHS)
def test_wide_backward_kernels_fit(width: int, value_width: int) -> None:
    taken = backward_dims(width, value_width)
    assert taken is not None
    if taken.wide:
        # Two steps of queries and gradients, keys and values, two of weights, the statistics of two steps.
        shared = 2 * (2 * 64 + 64) * (width + value_width) + 2 * 2 * 64 * 64 + 1024
        leaving = 2 * 4 * 64 * taken.leaving * (1 if taken.leaving == width // 2 else 2)
        assert shared + leaving <= MOST_SHARED - 1024


def test_the_backward_table() -> None:
    assert backward_dims(64, 64) == Backward(64, 64, False, 32)
    assert backward_dims(96, 128) == Backward(128, 128, False, 64)
    assert backward_dims(192, 128) == Backward(256, 128, True, 128)
    assert backward_dims(256, 256) == Backward(256, 256, True, 16)
