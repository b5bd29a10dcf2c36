"""Draw metadata of a mask, and compare its intervals with its rule."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

import cmir
from cmir.analysis.facts import first_violation
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.interp.masks import paint
from cmir.interp.preprocess import EMPTY, FULL, PARTIAL, tile_states


def draws(mask: cmir.CompiledMask, count: int, size: int = 40, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Metadata that satisfy the facts of a mask, and have all entries that it reads, as keyword arguments."""
    rng = np.random.default_rng(seed)
    while count:
        env = draw(mask.facts, rng, size)
        empty = env is not None and any(p.kind == "free" and not env[p.name].values.size for p in mask.facts.parameters)
        if env is not None and not empty and first_violation(mask.checked, env) is None:  # a free table has an entry
            count -= 1
            yield {k: v.values if isinstance(v, TableValue) else int(v) for k, v in env.items()}


def check_tile_states(mask: cmir.CompiledMask, metadata: dict[str, Any], tile: tuple[int, int] = (4, 3)) -> None:
    """What the preprocess stage lists in either direction is what the rule shows of each tile."""
    dense = mask.dense(**metadata)
    rows, cols = dense.shape
    rest = {k: v for k, v in metadata.items() if k not in ("rows", "cols")}
    env = mask._environment(rows, cols, rest)  # pyright: ignore[reportPrivateUsage]
    m, n = tile
    padded = np.pad(dense, ((0, -rows % m), (0, -cols % n)))
    pairs = padded.reshape(padded.shape[0] // m, m, padded.shape[1] // n, n).sum(axis=(1, 3))
    valid = np.minimum(rows - np.arange(len(pairs)) * m, m)[:, None]
    want = np.where(pairs == 0, EMPTY, np.where(pairs == valid * n, FULL, PARTIAL))
    for schedule in ("rows", "cols"):
        got = tile_states(mask._preprocess, schedule, env, tile)  # pyright: ignore[reportPrivateUsage]
        np.testing.assert_array_equal(got, want, schedule)


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
