# pyright: basic, reportArgumentType=false, reportUnusedExpression=false
"""The quickened interpreter of Triton computes, and refuses, what it does as it comes."""

import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from quicker import quicken_interpreter


@triton.jit
def halved(x):
    return tl.where(x % 2 == 0, x // 2, -x)


@triton.jit
def kernel(out, seen, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(seen + i) * 2 - j + tl.program_id(0)
    tl.store(out + (tl.program_id(0) * SIZE + i) * SIZE + j, (halved(x) + (i < j).to(tl.int64)).to(tl.float32))


@triton.jit
def misshapen(SIZE: tl.constexpr):
    tl.zeros([SIZE, 4], tl.float32)


@triton.jit
def mismatched():
    tl.arange(0, 4) + tl.arange(0, 8)


def test_functions_and_blocks_are_as_ever() -> None:
    quicken_interpreter()
    for size in (4, 8, 4):
        out, seen = torch.zeros(2, size, size), torch.arange(size) ** 2
        kernel[(2,)](out, seen, SIZE=size)
        i, j, z = seen.numpy()[:, None], np.arange(size)[None, :], np.arange(2)[:, None, None]
        x = i * 2 - j + z
        want = np.where(x % 2 == 0, np.trunc(x / 2), -x) + (np.arange(size)[:, None] < j)
        np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize("again", range(2))
def test_shapes_that_are_wrong_are_refused_every_time(again: int) -> None:
    quicken_interpreter()
    with pytest.raises(Exception, match="power of 2"):
        misshapen[(1,)](SIZE=3)
    with pytest.raises(Exception, match="incompatible dimensions"):
        mismatched[(1,)]()


def test_types_are_told_apart() -> None:
    quicken_interpreter()
    some = tl.block_type(tl.int32, [4, 8])
    assert some == tl.block_type(tl.int32, [4, 8]) and str(some) == str(tl.block_type(tl.int32, [4, 8]))
    for other in (tl.block_type(tl.int64, [4, 8]), tl.block_type(tl.int32, [8, 4]), tl.int32):
        assert some != other
    assert some.with_element_ty(tl.float16) == tl.block_type(tl.float16, [4, 8]) and some.numel == 32
    assert tl.block_type(tl.pointer_type(tl.int8), [4]) != tl.block_type(tl.pointer_type(tl.int32), [4])


def test_language_is_as_before_after_a_launch() -> None:
    quicken_interpreter()
    before = {name: getattr(tl, name) for name in ("load", "arange", "range", "sum")}
    kernel[(1,)](torch.zeros(1, 4, 4), torch.arange(4), SIZE=4)
    assert all(getattr(tl, name) is value for name, value in before.items())
