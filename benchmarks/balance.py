"""How evenly schedules spread a mask's tile rows over a GPU's multiprocessors, counted on the CPU.

    python -m benchmarks.balance [causal:32768 hstu:32768 packed_hstu:32768 ...] [--programs 132] [--fixed 2]

A tile row costs as many units as it visits tiles, and `--fixed` units more for what every tile row pays: loading
queries, storing the output. Each schedule's figure is the time that perfectly shared work would take over the time of
its last program:

by rows         tile rows in order, whoever is free takes the next: a grid, as GPUs start one
longest first   the same by descending work: the descriptor's order, all heads together
by sections     as longest first, as many heads at a time as cmir's Hopper kernels take, for the L2 cache's sake
dealt           longest first, dealt out in turn beforehand: programs that stay, without a counter to draw from
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterable

import numpy as np
import torch

from benchmarks.masks import SUITES, Case
from cmir.runtime.hopper import L2_BYTES

EVERY = {name: make for suite in SUITES.values() for name, make in suite.items()}
MASKS = ("causal:32768", "hstu:32768", "shared_prompt:32768", "packed_hstu:32768", "packed_hstu:8192", "causal:4096")
TILE, HEADS, GROUP, DIM, BYTES = 128, 32, 4, 128, 2


def visited(case: Case) -> np.ndarray:
    """int64 [tile rows]: the tiles of each that see anything."""
    columns, tiles = torch.arange(case.tokens)[None, :], -(-case.tokens // TILE)
    counts = []
    for first in range(0, case.tokens, TILE):
        rows = torch.arange(first, min(first + TILE, case.tokens))[:, None]
        seen = torch.as_tensor(case.mask_mod(None, None, rows, columns)).any(0)
        seen = torch.nn.functional.pad(seen, (0, tiles * TILE - case.tokens))
        counts.append(int(seen.view(tiles, TILE).any(1).sum()))
    return np.array(counts)


def drawn(work: Iterable[float], programs: int) -> float:
    """The time of the last of `programs` that each take the next piece of work as soon as they are free."""
    ends = [0.0] * programs
    for cost in work:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


def dealt(work: np.ndarray, programs: int) -> float:
    """The time of the last of `programs`, of which the n-th takes every piece n, n + programs, ..."""
    return max(float(work[n::programs].sum()) for n in range(programs))


def section(case: Case) -> int:
    """Heads whose keys and values are worked on at a time."""
    return GROUP * max(1, L2_BYTES // (case.tokens * 2 * DIM * BYTES))


def utilization(case: Case, programs: int, fixed: float) -> dict[str, float]:
    """By schedule: ideal time / time, 1 at best."""
    cost = visited(case) + fixed
    longest = np.sort(cost)[::-1]
    heads = min(HEADS, section(case))
    times = {
        "by rows": drawn(np.tile(cost, HEADS), programs),
        "longest first": drawn(np.repeat(longest, HEADS), programs),
        "by sections": drawn(np.tile(np.repeat(longest, heads), HEADS // heads), programs),
        "dealt": dealt(np.repeat(longest, HEADS), programs),
    }
    return {name: float(cost.sum() * HEADS / programs / time) for name, time in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.balance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("masks", nargs="*", default=MASKS, metavar="mask:length")
    parser.add_argument("--programs", type=int, default=132, help="of the GPU; an H200 has 132 multiprocessors")
    parser.add_argument("--fixed", type=float, default=2.0, help="what a tile row costs beside its tiles, in tiles")
    options = parser.parse_args()
    for number, chosen in enumerate(options.masks):
        name, _, length = chosen.partition(":")
        if name not in EVERY or not length.isdecimal():
            parser.error(f"expected mask:length with a mask of {', '.join(EVERY)}, got {chosen!r}")
        found = utilization(EVERY[name](int(length), "cpu"), options.programs, options.fixed)
        if not number:
            print(f"{'':20}" + "".join(f"{schedule:>15}" for schedule in found))
        print(f"{chosen:20}" + "".join(f"{share:>15.3f}" for share in found.values()), flush=True)


if __name__ == "__main__":
    main()
