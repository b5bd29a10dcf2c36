"""A mask under one choice of metadata: what is visible, and which Region, clause and slot say so.

The pairs are the rule's own (`spec_mask`, the oracle); Regions, clauses and slots are those of the compiled form. A
scene shows nothing unless both say the same, so a picture of one is never a picture of a wrong mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ModuleOp

from cmir.dialects.expr import Expr
from cmir.dialects.interval import RegionOp as TableRegionOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import RegionOp, SpecOp
from cmir.errors import CmirError
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import fuse, spec_mask, with_lengths

if TYPE_CHECKING:
    import numpy as np

Axis = Literal["rows", "cols"]
EMPTY, PARTIAL, FULL = 0, 1, 2

LARGEST = 1 << 26
"""Pairs of the largest scene: the rule is run on every one of them."""


@dataclass(frozen=True)
class Interval:
    """One interval of one row (column): the positions `[lo, hi)`, by slot `slot` of `region`.

    `parts` are the slots that it unites there, this one last. `partly`: a residual of one of them decides, pair by
    pair, which of the positions are visible.
    """

    region: str
    slot: int
    lo: int
    hi: int
    parts: tuple[int, ...] = ()
    partly: bool = False

    def __str__(self) -> str:
        return f"[{self.lo}, {self.hi})" + "?" * self.partly


class Scene:
    """What a mask shows of `rows` x `cols` pairs.

    Args:
        surface: the spec as it was written.
        module: a module with the spec in normal form and its interval tables, after `--lower-intervals --transpose`.
        env: `rows`, `cols` and scalars as ints, tables as `TableValue`; the facts hold.
        words: spells expressions in the language that the spec was written in.

    Pairs are evaluated when they are first asked for, and then compared with both tables.
    """

    def __init__(
        self, surface: SpecOp, module: ModuleOp, env: Mapping[str, Value], words: Callable[[str], str] = str
    ) -> None:
        self.surface = surface
        self.words = words
        self.spec = next(op for op in module.walk() if isinstance(op, SpecOp))
        self.tables: dict[str, TableOp] = {op.axis.data: op for op in module.walk() if isinstance(op, TableOp)}
        self.env = dict(env)
        self.name = self.spec.sym_name.data
        self.rows, self.cols = int(env["rows"]), int(env["cols"])

    @cached_property
    def dense(self) -> np.ndarray:
        """bool [rows, cols]: the rule, which both tables are compared with when it is first asked for.

        Raises:
            CmirError: there are too many pairs, or the compiled form does not say what the rule says (a fault of cmir).
        """
        require_small(self.rows, self.cols)
        dense = spec_mask(self.surface, self.env)
        for axis in self.tables:
            if not bool(((self._slots(axis)[0] >= 0) == dense).all()):
                raise CmirError(f"the {axis} table of mask '{self.name}' is not its rule; this is a fault of cmir")
        return dense

    @cached_property
    def full_env(self) -> dict[str, Value]:
        """`env` with the lengths of tables, as expressions read them."""
        return with_lengths(self.env)

    def number(self, e: Expr, **index: int) -> int:
        """The value of an expression at the given indices, as an int (0 and 1 of a condition)."""
        import numpy as np

        here = {**self.full_env, **{k: np.int64(v) for k, v in index.items()}}
        return int(evaluate(e, here, NumpyDomain()))

    def guard(self, region: RegionOp | TableRegionOp) -> tuple[int, int]:
        """The lines of a Region that exist: `[lo, hi)`."""
        lo, hi = self.number(region.lo.data), self.number(region.hi.data)
        by_row = isinstance(region, RegionOp) or _table(region).axis.data == "rows"
        return max(lo, 0), min(hi, self.rows if by_row else self.cols)

    def sections(self) -> list[tuple[str, int, int]]:
        """What the rows are divided into: the name of every Region, and the rows of it that exist."""
        return [(f"@{r.sym_name.data}", *self.guard(r)) for r in self.spec.regions_of_rows]

    def region_of(self, i: int) -> RegionOp | None:
        """The Region that holds a row."""
        guards = ((r, self.guard(r)) for r in self.spec.regions_of_rows)
        return next((r for r, (lo, hi) in guards if lo <= i < hi), None)

    def slots(self, axis: Axis) -> tuple[np.ndarray, list[TableRegionOp]]:
        """By which slot of the table of `axis` each pair is visible, and the regions of the table.

        Returns:
            int64 [rows, cols]: `slot + 4096 * (number of the region)`, or -1; and the regions in the order of numbers.
        """
        assert self.dense.size == self.rows * self.cols  # compared
        return self._slots(axis)

    def _slots(self, axis: str) -> tuple[np.ndarray, list[TableRegionOp]]:
        import numpy as np

        table = self.tables[axis]
        out = np.full((self.rows, self.cols), -1)
        view = out if axis == "rows" else out.T
        position = np.arange(view.shape[1])
        for number, region in enumerate(table.regions_of_table):
            lo, hi = self.guard(region)
            for k, (ends, residual, _) in enumerate(self._ends(table, region, lo, hi)):
                held = (ends[0][:, None] <= position) & (position < ends[1][:, None])
                if residual is not None:
                    held &= residual
                part = view[lo : max(lo, hi)]
                part[held & (part < 0)] = k + SLOTS * number
        return out, list(table.regions_of_table)

    def _ends(
        self, table: TableOp, region: TableRegionOp, lo: int, hi: int
    ) -> list[tuple[np.ndarray, np.ndarray | None, np.ndarray]]:
        """Of every slot of a region: int64 [2, lines] (empty where it is absent), the pairs its residual allows, and
        bool [slots, lines], the slots that it unites in each line."""
        import numpy as np

        domain = NumpyDomain()
        lines = np.arange(lo, max(lo, hi))
        here = {**self.full_env, table.fixed: lines}
        out: list[tuple[np.ndarray, np.ndarray | None, np.ndarray]] = []
        for number, span in enumerate(region.spans):
            a, b, some = (evaluate(e, here, domain) for e in (span.lo.data, span.hi.data, span.nonempty))
            ends = np.where(some, np.stack(np.broadcast_arrays(a + 0 * lines, b)), 0)
            residual = None
            if span.residual is not None:
                moving = np.arange(self.cols if table.axis.data == "rows" else self.rows)[None, :]
                points = {**here, table.fixed: lines[:, None], table.moving.name: moving}
                residual = np.broadcast_to(
                    evaluate(span.residual.data, points, domain), (len(lines), moving.shape[1])
                ).astype(bool)
            united = np.zeros((len(region.spans), len(lines)), dtype=bool)
            united[number] = True
            out.append((ends, residual, united))
        for a, b in region.fused:
            was_there = out[a][0][0] < out[a][0][1]
            fuse(out[a][0], out[b][0])
            gone = was_there & (out[a][0][0] >= out[a][0][1])
            out[b][2][:] |= out[a][2] & gone
        return out

    def intervals(self, axis: Axis) -> list[list[Interval]]:
        """The intervals of every row (column), slot by slot, empty ones left out; residuals are told, not applied."""
        table = self.tables[axis]
        out: list[list[Interval]] = [[] for _ in range(self.rows if axis == "rows" else self.cols)]
        for region in table.regions_of_table:
            lo, hi = self.guard(region)
            slots = self._ends(table, region, lo, hi)
            for line in range(lo, hi):
                for k, (ends, _, united) in enumerate(slots):
                    a, b = (int(e) for e in ends[:, line - lo])
                    if a < b:
                        parts = tuple(map(int, united[:, line - lo].nonzero()[0]))
                        partly = any(slots[part][1] is not None for part in parts)
                        out[line].append(Interval(region.sym_name.data, k, a, b, parts, partly))
        return out

    def tile_states(self, tile: tuple[int, int]) -> np.ndarray:
        """int64 [row tiles, column tiles]: EMPTY, PARTIAL or FULL, the pairs past the last row left out of account.

        Full is a tile all of whose columns exist and are visible to all of its rows, as the schedules have it.
        """
        import numpy as np

        heights, widths = (range(0, n, size) for n, size in zip((self.rows, self.cols), tile, strict=True))
        out = np.zeros((len(heights), len(widths)), dtype=np.int64)
        for m, i in enumerate(heights):
            for n, j in enumerate(widths):
                part = self.dense[i : i + tile[0], j : j + tile[1]]
                if part.any():
                    out[m, n] = FULL if part.all() and part.shape[1] == tile[1] else PARTIAL
        return out


def require_small(rows: int, cols: int) -> None:
    """Raises CmirError where there are too many pairs to look at."""
    if rows * cols > LARGEST:
        raise CmirError(f"{rows} x {cols} pairs are too many to look at; at most {LARGEST}: choose smaller lengths")


SLOTS = 4096
"""More than the slots of a Region."""


def _table(region: TableRegionOp) -> TableOp:
    table = region.parent_op()
    assert isinstance(table, TableOp)
    return table
