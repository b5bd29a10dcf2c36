"""What patches save of CLEAR: counted, at the size that its users run, and against the dense mask at a small one."""

import sys
from pathlib import Path

import numpy as np
import pytest

from cmir.interp.masks import paint

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tiles import clear, count_tiles, patches


def test_patches_of_clear_at_32k():
    table = clear(128, 256)
    raster = count_tiles(table, np.arange(table.shape[2]), 128)
    patched = count_tiles(table, patches(128, 256, (8, 16)), 128)
    assert (raster.partial, raster.full) == (14912, 2064)
    assert (patched.partial, patched.full) == (3404, 2064)
    assert 0.20 < raster.efficiency < 0.21
    assert patched.efficiency > 0.64


def test_patches_that_do_not_divide_the_image():
    table = clear(181, 181)
    assert count_tiles(table, np.arange(table.shape[2]), 128).efficiency < 0.28
    assert count_tiles(table, patches(181, 181, (8, 16)), 128).efficiency > 0.63


@pytest.mark.parametrize(("height", "width", "tile"), [(6, 7, 16), (9, 8, 24)])
def test_tiles_are_those_of_the_dense_mask(height: int, width: int, tile: int):
    table = clear(height, width, radius=3)
    order = patches(height, width, (2, 4))
    mask = paint(table, len(order))[order][:, order]
    partial = full = 0
    for first in range(0, len(order), tile):
        for start in range(0, len(order), tile):
            part = mask[first : first + tile, start : start + tile]
            full += bool(part.all())
            partial += bool(part.any()) and not part.all()
    tiles = count_tiles(table, order, tile)
    assert (tiles.partial, tiles.full) == (partial, full)
    assert tiles.efficiency == mask.sum() / ((partial + full) * tile * tile)
