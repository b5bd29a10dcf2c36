"""How many slots of a mask meet in its partial tiles: what the live visibility test costs.

    python -m benchmarks.tiles [--height 179] [--width 180] [--tile 128]

Counted on the CPU from the intervals of the rows of clear (radius 16, 512 text tokens).
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from cmir import zoo


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tiles", description=(__doc__ or "").splitlines()[0])
    for name, default in (("height", 179), ("width", 180), ("tile", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    length, tile = 512 + options.height * options.width, options.tile
    table = zoo.load("clear", height=options.height, width=options.width).intervals("rows", rows=length)
    live, most, full, visible = Counter[int](), Counter[int](), 0, 0
    for first in range(0, length, tile):
        lo, hi = table[:, 0, first : first + tile], table[:, 1, first : first + tile]
        for start in range(0, length, tile):
            seen = np.clip(np.minimum(hi, start + tile) - np.maximum(lo, start), 0, None)
            if not (pairs := int(seen.sum())):
                continue
            visible += pairs
            if pairs == lo.shape[1] * tile:
                full += 1
                continue
            slots = np.flatnonzero(seen.any(1))
            live[int(slots[-1] - slots[0] + 1)] += 1
            most[int((seen > 0).sum(0).max())] += 1
    partial = sum(live.values())
    print(
        f"{partial} partial and {full} full tiles; {visible / ((partial + full) * tile * tile):.1%} of them is visible"
    )
    print("live slots of a partial tile:", dict(sorted(live.items())))
    print("most intervals that a row has in it:", dict(sorted(most.items())))


if __name__ == "__main__":
    main()
