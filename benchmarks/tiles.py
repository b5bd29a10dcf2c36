"""How many slots of a mask meet in its partial tiles, and how much of its tiles it sees, by raster and by patches.

    python -m benchmarks.tiles [--height 179] [--width 180] [--tile 128] [--patch 8 16]

Counted on the CPU from the intervals of the rows of clear (radius 16, 512 text tokens).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cmir import zoo
from cmir.analysis.layouts import orders_of
from cmir.dialects.maskspec import SpecOp
from cmir.layouts import Patch, add_layout
from cmir.tools import driver

TEXT = 512


class Tiles(NamedTuple):
    """Tiles with something visible, and what of them is."""

    partial: int
    full: int
    efficiency: float
    """Visible pairs / pairs of those tiles."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tiles", description=(__doc__ or "").splitlines()[0])
    for name, default in (("height", 179), ("width", 180), ("tile", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--patch", type=int, nargs=2, default=(8, 16), metavar=("HEIGHT", "WIDTH"))
    options = parser.parse_args()
    table = clear(options.height, options.width)
    live, most = live_slots(table, options.tile)
    for name, order in (
        ("raster order", np.arange(table.shape[2])),
        (f"patches of {options.patch[0]} x {options.patch[1]}", patches(options.height, options.width, options.patch)),
    ):
        tiles = count_tiles(table, order, options.tile)
        print(f"{name}: {tiles.partial} partial and {tiles.full} full tiles; {tiles.efficiency:.1%} of them is visible")
    print("in raster order, live slots of a partial tile:", dict(sorted(live.items())))
    print("in raster order, most intervals that a row has in it:", dict(sorted(most.items())))


def clear(height: int, width: int, radius: int = 16) -> np.ndarray:
    """int32 [slots, 2, tokens]: the intervals of the rows of clear in raster order."""
    mask = zoo.load("clear", height=height, width=width, radius=radius, text=TEXT)
    return mask.intervals("rows", rows=TEXT + height * width)


def patches(height: int, width: int, size: Sequence[int]) -> np.ndarray:
    """int64 [tokens]: the token at every place, the text in front and the image in patches."""
    module = driver.parse(zoo.path("clear").read_text(), "clear")
    spec = next(op for op in module.walk() if isinstance(op, SpecOp))
    layout = Patch((height, width), tuple(size), after=TEXT)
    return orders_of(add_layout(spec, layout).layouts)["rows"].tokens(TEXT + height * width)


def count_tiles(table: np.ndarray, order: np.ndarray, tile: int) -> Tiles:
    """Tiles of the mask whose row and column x are those of token order[x]."""
    length = len(order)
    edges = np.arange(0, length, tile)
    sizes = np.diff(np.append(edges, length))
    pairs = np.zeros((len(edges), len(edges)), dtype=np.int64)
    for n, first in enumerate(edges):
        lo, hi = table[:, :, order[first : first + tile]].transpose(1, 0, 2)
        # How many rows of the tile see a token: one up where an interval begins, one down where it ends.
        steps = np.bincount(lo[lo < hi], minlength=length + 1) - np.bincount(hi[lo < hi], minlength=length + 1)
        pairs[n] = np.add.reduceat(np.cumsum(steps)[:length][order], edges)
    whole = sizes[:, None] * sizes[None, :]
    touched, full = pairs > 0, pairs == whole
    partial = int((touched & ~full).sum())
    return Tiles(partial, int(full.sum()), float(pairs.sum() / (int(touched.sum()) * tile * tile)))


def live_slots(table: np.ndarray, tile: int) -> tuple[Counter[int], Counter[int]]:
    """Of the partial tiles in raster order: slots from the first to the last live one, most intervals of one row."""
    live, most, length = Counter[int](), Counter[int](), table.shape[2]
    for first in range(0, length, tile):
        lo, hi = table[:, 0, first : first + tile], table[:, 1, first : first + tile]
        for start in range(0, length, tile):
            seen = np.clip(np.minimum(hi, start + tile) - np.maximum(lo, start), 0, None)
            pairs = int(seen.sum())
            if 0 < pairs < lo.shape[1] * tile:
                slots = np.flatnonzero(seen.any(1))
                live[int(slots[-1] - slots[0] + 1)] += 1
                most[int((seen > 0).sum(0).max())] += 1
    return live, most


if __name__ == "__main__":
    main()
