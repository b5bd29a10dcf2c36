"""Draw metadata of a mask, and compare its intervals with its rule."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

import cmir
from cmir.analysis.facts import first_violation
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.interp.masks import paint
from cmir.interp.preprocess import EMPTY, FULL, PARTIAL, TileLists, tile_lists, tile_states


def draws(mask: cmir.CompiledMask, count: int, size: int = 40, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Metadata that satisfy the facts of a mask, and have all entries that it reads, as keyword arguments."""
    rng = np.random.default_rng(seed)
    while count:
        env = draw(mask.facts, rng, size)
        empty = env is not None and any(p.kind == "free" and not env[p.name].values.size for p in mask.facts.parameters)
        if env is not None and not empty and first_violation(mask.checked, env) is None:  # a free table has an entry
            count -= 1
            yield {k: v.values if isinstance(v, TableValue) else int(v) for k, v in env.items()}


def states_of(dense: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """int [row tiles, column tiles]: the state of each tile of a mask, bool [rows, cols]; rows past the last do not
    count, columns past the last are unseen."""
    rows, cols = dense.shape
    m, n = tile
    padded = np.pad(dense, ((0, -rows % m), (0, -cols % n)))
    pairs = padded.reshape(padded.shape[0] // m, m, padded.shape[1] // n, n).sum(axis=(1, 3))
    valid = np.minimum(rows - np.arange(len(pairs)) * m, m)[:, None]
    return np.where(pairs == 0, EMPTY, np.where(pairs == valid * n, FULL, PARTIAL))


def check_lists(got: TileLists, states: np.ndarray) -> None:
    """The schedule of tiles in these states, [lines, tiles], one tile after the other; full ones in any order."""
    work = list[int]()
    for count, index, line in zip(got.count.tolist(), got.index.tolist(), states.tolist(), strict=True):
        partial = [tile for tile, state in enumerate(line) if state == PARTIAL]
        full = [tile for tile, state in enumerate(line) if state == FULL]
        assert count == [len(partial), len(full)]
        assert index[: len(partial)] == partial
        assert sorted(index[len(index) - len(full) :]) == full
        work.append(len(partial) + len(full))
    assert got.order.tolist() == sorted(range(len(work)), key=lambda line: (-work[line], line))


def check_schedules(mask: cmir.CompiledMask, metadata: dict[str, Any], tile: tuple[int, int] = (4, 3)) -> None:
    """The tiles that the preprocess stage lists in either direction, and their states, are what the rule shows."""
    dense = mask.dense(**metadata)
    rows, cols = dense.shape
    rest = {k: v for k, v in metadata.items() if k not in ("rows", "cols")}
    env = mask._environment(rows, cols, rest)  # pyright: ignore[reportPrivateUsage]
    want = states_of(dense, tile)
    for schedule in ("rows", "cols"):
        got = tile_states(mask._preprocess, schedule, env, tile)  # pyright: ignore[reportPrivateUsage]
        np.testing.assert_array_equal(got, want, schedule)
        by_row = schedule == "rows"
        lists = tile_lists(got if by_row else got.T)
        check_lists(lists, want if by_row else want.T)
        np.testing.assert_array_equal((lists.index >= 0).sum(axis=1), lists.count.sum(axis=1), schedule)


def check_intervals(mask: cmir.CompiledMask, metadata: dict[str, Any]) -> None:
    """The intervals of every bounded axis hold what the rule shows, each pair once."""
    dense = mask.dense(**metadata)
    axes: tuple[tuple[Literal["rows", "cols"], np.ndarray], ...] = (("rows", dense), ("cols", dense.T))
    for axis, by_row in axes:
        if mask.slots[axis] is None:
            continue
        table = mask.intervals(axis, **metadata)
        np.testing.assert_array_equal(paint(table, by_row.shape[1]), by_row)
        assert int((table[:, 1] - table[:, 0]).sum()) == int(dense.sum())
