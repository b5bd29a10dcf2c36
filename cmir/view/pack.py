"""A pack of sequences as one scene: the scene of each in its place, and nothing between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cmir.dialects.interval import RegionOp as TableRegionOp
from cmir.view.scene import Axis, Interval, Scene, require_small

if TYPE_CHECKING:
    import numpy as np


class Pack(Scene):
    """What a mask shows of the rows and columns of many sequences, one after another.

    Args:
        parts: the first row and the first column of every sequence, and its scene; at least one.
        rows, cols: the lengths of the pack. Tokens past the last sequence are padding.

    Tables and clauses are those of the mask of one sequence, as it was written; intervals are those of the pack.
    """

    def __init__(self, parts: Sequence[tuple[int, int, Scene]], rows: int, cols: int) -> None:
        one = parts[0][2]
        self.surface, self.spec, self.tables, self.name = one.surface, one.spec, one.tables, one.name
        self.words = one.words
        self.parts, self.rows, self.cols = parts, rows, cols
        self.env = {"rows": rows, "cols": cols}

    @cached_property
    def dense(self) -> np.ndarray:
        """bool [rows, cols]: block by block, each compared with its tables."""
        import numpy as np

        require_small(self.rows, self.cols)
        out = np.zeros((self.rows, self.cols), dtype=bool)
        for row, col, scene in self.parts:
            out[row : row + scene.rows, col : col + scene.cols] = scene.dense
        return out

    def sections(self) -> list[tuple[str, int, int]]:
        """The rows of every sequence."""
        return [(f"sequence {s}", row, row + scene.rows) for s, (row, _, scene) in enumerate(self.parts)]

    def slots(self, axis: Axis) -> tuple[np.ndarray, list[TableRegionOp]]:
        """As of a scene."""
        import numpy as np

        out = np.full(self.dense.shape, -1)
        for row, col, scene in self.parts:
            out[row : row + scene.rows, col : col + scene.cols] = scene.slots(axis)[0]
        return out, list(self.tables[axis].regions_of_table)

    def intervals(self, axis: Axis) -> list[list[Interval]]:
        """The intervals of every row (column) of the pack."""
        out: list[list[Interval]] = [[] for _ in range(self.rows if axis == "rows" else self.cols)]
        for row, col, scene in self.parts:
            line, by = (row, col) if axis == "rows" else (col, row)
            for k, found in enumerate(scene.intervals(axis), line):
                out[k] = [replace(x, lo=x.lo + by, hi=x.hi + by) for x in found]
        return out
