"""Every stage is executable: the dense mask that a spec or a table means, the intervals that a table says, in NumPy.

`env` gives `rows`, `cols` and every scalar as an integer and every table as a `TableValue`. A pass is right when these
agree before and after it. A packed spec has no rule of its own, only tables: its mask is that of every sequence, in its
place (`packed_mask`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cmir.analysis.layouts import orders_of
from cmir.analysis.rules import constant_tables
from cmir.dialects.expr import Expr, or_
from cmir.dialects.interval import RegionOp as TableRegionOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import RegionOp, SpecOp, length_name
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.rule import run_rule

if TYPE_CHECKING:
    import numpy as np


def grid(env: Mapping[str, Value]) -> dict[str, Value]:
    """`env` with `i` as [rows, 1] and `j` as [1, cols]."""
    import numpy as np

    rows, cols = int(env["rows"]), int(env["cols"])
    env = with_lengths(env)
    return {**env, "i": np.arange(rows, dtype=np.int64)[:, None], "j": np.arange(cols, dtype=np.int64)[None, :]}


def with_lengths(env: Mapping[str, Value]) -> dict[str, Value]:
    """`env` with the length of every table by the name that expressions read it by."""
    lengths = {length_name(name): len(value.values) for name, value in env.items() if isinstance(value, TableValue)}
    return {**lengths, **env}


def _fill(shape: tuple[int, int], value: Value) -> np.ndarray:
    import numpy as np

    return np.broadcast_to(np.asarray(value, dtype=bool), shape)


def spec_mask(spec: SpecOp, env: Mapping[str, Value]) -> np.ndarray:
    """bool [rows, cols]: the rule itself, run as the user wrote it (surface) or clause by clause (normal form).

    Of a spec with a layout, `env` gives the lengths of the axes as they are stored, and so does the mask: the rule is
    run on the tokens in their own order, and places pick rows and columns of what it gives.
    """
    orders = orders_of(spec.layouts)
    if not orders:
        return _rule_mask(spec, env)
    lengths = {axis: int(env[axis]) for axis in ("rows", "cols")}
    own = {axis: n * (orders[axis].share if axis in orders else 1) for axis, n in lengths.items()}
    mask = _rule_mask(spec, {**env, **own})
    if "rows" in orders:
        mask = mask[orders["rows"].tokens(lengths["rows"], env)]
    return mask[:, orders["cols"].tokens(lengths["cols"], env)] if "cols" in orders else mask


def spec_part(spec: SpecOp, env: Mapping[str, Value], rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """`spec_mask(spec, env)[rows[:, None], cols]`, of lengths whose whole mask would be too large too."""
    import numpy as np

    orders = orders_of(spec.layouts)
    lengths = {axis: int(env[axis]) for axis in ("rows", "cols")}
    own = {axis: n * (orders[axis].share if axis in orders else 1) for axis, n in lengths.items()}
    i, j = (
        orders[axis].tokens(lengths[axis], env)[places] if axis in orders else places
        for axis, places in (("rows", rows), ("cols", cols))
    )
    domain, points = NumpyDomain(), _named(spec, {**env, **own})
    points["j"] = j[None, :]
    out = np.zeros((len(i), len(j)), dtype=bool)
    for region in spec.regions_of_rows:
        lo, hi = (int(evaluate(e.data, points, domain)) for e in (region.lo, region.hi))
        held = (lo <= i) & (i < hi)
        if held.any():
            here = {**points, "i": i[held][:, None]}
            out[held] = _fill((int(held.sum()), len(j)), _visible(region, here, domain))
    return out


def spec_pair(spec: SpecOp, env: Mapping[str, Value], i: int, j: int) -> bool:
    """`spec_mask(spec, env)[i, j]`, of lengths whose whole mask would be too large too."""
    import numpy as np

    return bool(spec_part(spec, env, np.array([i]), np.array([j]))[0, 0])


def _named(spec: SpecOp, env: Mapping[str, Value]) -> dict[str, Value]:
    """`env` with the statics and the constant tables of a spec, and the lengths of tables."""
    import numpy as np

    statics = {p.name: p.value for p in spec.parameters if p.value is not None}
    constants = {
        name: TableValue(np.asarray(v, dtype=np.int64), base) for name, (base, v) in constant_tables(spec).items()
    }
    return with_lengths({**env, **statics, **constants})


def _visible(region: RegionOp, points: Mapping[str, Value], domain: NumpyDomain) -> Value:
    """The rule of a Region, surface or clauses, at points."""
    if region.is_normal:
        return evaluate(or_(*(c.condition.data for c in region.clauses)), points, domain)
    return run_rule(region, points, domain)


def _rule_mask(spec: SpecOp, env: Mapping[str, Value]) -> np.ndarray:
    import numpy as np

    domain = NumpyDomain()
    points = grid(_named(spec, env))
    shape = int(env["rows"]), int(env["cols"])
    mask = np.zeros(shape, dtype=bool)
    for region in spec.regions_of_rows:
        lo, hi = (int(evaluate(e.data, points, domain)) for e in (region.lo, region.hi))
        lo, hi = max(lo, 0), min(hi, shape[0])
        if lo >= hi:
            continue
        here = {**points, "i": points["i"][lo:hi]}
        mask[lo:hi] = _fill((hi - lo, shape[1]), _visible(region, here, domain))
    return mask


def table_mask(table: TableOp, env: Mapping[str, Value]) -> np.ndarray:
    """bool [rows, cols]: every position that some span of the table holds, residuals included."""
    import numpy as np

    domain = NumpyDomain()
    points = grid(env)
    by_row = table.axis.data == "rows"
    mask = np.zeros((int(env["rows"]), int(env["cols"])), dtype=bool)
    view = mask if by_row else mask.T
    fixed, moving = ("i", "j") if by_row else ("j", "i")
    # The fixed index runs down the view, the moving one across it.
    points[fixed], points[moving] = points[fixed].reshape(-1, 1), points[moving].reshape(1, -1)
    for region in table.regions_of_table:
        held = _held(region, points, fixed)
        here = {**points, fixed: points[fixed][held]}
        for span in region.spans:
            shape = len(held), view.shape[1]
            view[held] |= _fill(shape, evaluate(span.contains(table.moving), here, domain))
    return mask


def table_pair(table: TableOp, env: Mapping[str, Value], i: int, j: int) -> bool:
    """`table_mask(table, env)[i, j]`, of lengths whose whole mask would be too large too."""
    import numpy as np

    domain = NumpyDomain()
    here = {**with_lengths(env), "i": np.full((1, 1), i), "j": np.full((1, 1), j)}
    at = i if table.fixed == "i" else j
    return any(
        bool(_fill((1, 1), evaluate(span.contains(table.moving), here, domain))[0, 0])
        for region in table.regions_of_table
        if int(evaluate(region.lo.data, here, domain)) <= at < int(evaluate(region.hi.data, here, domain))
        for span in region.spans
    )


def _held(region: TableRegionOp, env: Mapping[str, Value], fixed: str) -> np.ndarray:
    """Which of the indices in `env[fixed]` (from 0 on) a region holds, ascending."""
    import numpy as np

    index, domain = env[fixed], NumpyDomain()
    lo, hi = (evaluate(e.data, env, domain) for e in (region.lo, region.hi))
    return np.flatnonzero(np.broadcast_to((lo <= index) & (index < hi), index.shape))


def table_intervals(table: TableOp, env: Mapping[str, Value]) -> np.ndarray:
    """int32 [slots, 2, n]: the ends of every slot at every row (column); an absent or empty slot is [0, 0).

    `table` is bounded and has its slots numbered. Slots that nothing proves disjoint are united where they overlap, as
    the preprocess kernel does, so the intervals of one row are pairwise disjoint.
    """
    import numpy as np

    assert table.slots is not None, "numbered by --merge-slots"
    domain = NumpyDomain()
    n = int(env["rows"] if table.axis.data == "rows" else env["cols"])
    index, env = np.arange(n, dtype=np.int64), with_lengths(env)
    out = np.zeros((table.slots.data, 2, n), dtype=np.int64)
    for region in table.regions_of_table:
        held = _held(region, {**env, table.fixed: index}, table.fixed)
        here, memo = {**env, table.fixed: held}, dict[Expr, Value]()
        slots = np.zeros((table.slots.data, 2, len(held)), dtype=np.int64)
        for k, span in enumerate(region.spans):
            a, b, c = (evaluate(e, here, domain, memo) for e in (span.lo.data, span.hi.data, span.nonempty))
            slots[k] = np.where(c, np.stack(np.broadcast_arrays(a + 0 * held, b)), 0)
        for a, b in region.fused:
            fuse(slots[a], slots[b])
        out[:, :, held] = slots
    return out.astype(np.int32)


def packed_mask(
    spec: SpecOp, sequences: Sequence[tuple[int, int, Mapping[str, Value]]], rows: int, cols: int
) -> np.ndarray:
    """bool [rows, cols]: the mask of `spec` for each of many sequences, given by its first row and column and its env.

    The oracle of `--pack`: every block is the rule of one sequence, run alone; outside the blocks nothing is visible.
    """
    import numpy as np

    mask = np.zeros((rows, cols), dtype=bool)
    for row, col, env in sequences:
        block = spec_mask(spec, env)
        mask[row : row + block.shape[0], col : col + block.shape[1]] = block
    return mask


def fuse(a: np.ndarray, b: np.ndarray) -> None:
    """Where the intervals `a` and `b` ([2, n]) overlap, `b` becomes their union and `a` empty. In place."""
    import numpy as np

    overlap = (a[0] < b[1]) & (b[0] < a[1]) & (a[0] < a[1]) & (b[0] < b[1])
    b[0] = np.where(overlap, np.minimum(a[0], b[0]), b[0])
    b[1] = np.where(overlap, np.maximum(a[1], b[1]), b[1])
    a[:, overlap] = 0


def paint(intervals: np.ndarray, moving: int) -> np.ndarray:
    """bool [n, moving]: the positions that the intervals int [slots, 2, n] hold."""
    import numpy as np

    position = np.arange(moving)[None, :]
    mask = np.zeros((intervals.shape[2], moving), dtype=bool)
    for lo, hi in intervals:
        mask |= (lo[:, None] <= position) & (position < hi[:, None])
    return mask
