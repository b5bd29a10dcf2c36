"""What the host decides about the Hopper backward kernels."""

import pytest
import torch

from cmir.runtime.hopper_backward import contiguous, is_near, splits_of


@pytest.mark.parametrize(
    ("tiles", "group", "splits"),
    [(64, 4, 4), (128, 4, 2), (256, 4, 1), (2048, 4, 1), (8, 8, 8), (100, 6, 3), (100, 1, 1), (40, 7, 7)],
)
def test_a_group_is_split_where_programs_are_few(tiles: int, group: int, splits: int) -> None:
    assert splits_of(tiles, group, 132) == splits


@pytest.mark.parametrize(
    ("widths", "tiles", "near"),
    [((12, 256), 256, True), ((256, 32), 256, True), ((33, 256), 256, False), ((1, 1), 7, False), ((1, 1), 8, True)],
)
def test_lists_are_short_where_one_axis_has_room_for_an_eighth(widths: tuple[int, int], tiles: int, near: bool) -> None:
    assert is_near(widths, tiles) is near


def test_strides_of_a_copy() -> None:
    tensor = torch.empty(2, 3, 5, 64)
    assert contiguous(tensor.shape) == tensor.stride()
