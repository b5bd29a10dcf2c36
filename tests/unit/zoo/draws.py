"""Draw metadata of a mask, and compare its intervals with its rule."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

import cmir
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.interp.masks import paint


def draws(mask: cmir.CompiledMask, count: int, size: int = 40, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Metadata that satisfy the facts of a mask, as keyword arguments."""
    rng = np.random.default_rng(seed)
    while count:
        env = draw(mask.facts, rng, size)
        empty = env is not None and any(p.kind == "free" and not env[p.name].values.size for p in mask.facts.parameters)
        if env is not None and not empty:  # a free table has at least one entry
            count -= 1
            yield {k: v.values if isinstance(v, TableValue) else int(v) for k, v in env.items()}


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
