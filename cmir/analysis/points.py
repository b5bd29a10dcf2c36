"""Where claims are tried out: sampled metadata with indices of a range, as flat arrays.

    draws of metadata   rows=3, start=[0, 0, 2] | rows=2, start=[1, 1]       range [0, rows) of i
    points              rows  3 3 3 2 2     i  0 1 2 0 1     start  entries 0 0 2 1 1, those of draw 2 from entry 3 on

An expression is evaluated at all points at once, for NumPy takes as long for a few numbers as for many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cmir.analysis.facts import Facts
from cmir.dialects.expr import Expr
from cmir.dialects.maskspec import length_name
from cmir.interp.domain import NumpyDomain, TablesValue, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

DENSE = 1 << 16  # positions that one `first` tries in all
POINTS = 96  # indices of a range that are tried, and as many neighbours


class _PointsDomain(NumpyDomain):
    """Values at points. Where a `first` would try many positions it is searched for by halves, as kernels do: where
    facts hold its condition is false, then true. Were it not, a claim could seem to fail, or to hold until it is
    proved: neither makes a proof wrong."""

    def quantify(
        self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[[Value], Value]
    ) -> Value:
        np = self.np
        positions = int(np.max(hi, initial=0)) - int(np.min(lo, initial=0))
        if op == "exists" or positions * np.size(lo + hi) <= DENSE:
            return super().quantify(op, name, lo, hi, env, body)
        low, high = np.broadcast_arrays(lo, np.maximum(lo, hi))
        for _ in range(int(np.max(high - low, initial=0)).bit_length()):
            middle = (low + high) // 2
            searching, holds = low < high, body(middle)
            low, high = np.where(searching & ~holds, middle + 1, low), np.where(searching & holds, middle, high)
        return np.where(lo < hi, low, hi)


@dataclass
class Points:
    """Some draws, with some indices each."""

    draws: Sequence[Mapping[str, Any]]
    draw: np.ndarray  # of each point
    env: Mapping[str, Value]  # an integer for each point, and the table it reads
    memo: dict[Expr, Value] = field(default_factory=dict[Expr, Value])  # what was evaluated there

    def values(self, e: Expr) -> np.ndarray:
        """The values of an expression, one for each point."""
        import numpy as np

        if not self.draws:
            return np.zeros(0, np.int64)
        return np.broadcast_to(evaluate(e, self.env, _PointsDomain(), self.memo), self.draw.shape)

    def try_out(self, claim: Expr) -> dict[str, Value] | None:
        """The smallest of the points where a claim fails; None: it holds at all. Nothing is kept in the memo."""
        import numpy as np

        known = len(self.memo)
        fails = np.flatnonzero(~self.values(claim).astype(bool))
        while len(self.memo) > known:  # a claim is asked once: its terms would fill the memory
            self.memo.popitem()
        if not len(fails):
            return None
        position = int(fails[np.argmin(self.env["rows"][fails] + self.env["cols"][fails])])
        integers = {k: int(v[position]) for k, v in self.env.items() if not isinstance(v, TableValue)}
        return {**self.draws[int(self.draw[position])], **integers}


def points_of(facts: Facts, index: str | None, lo: Expr, hi: Expr) -> Points:
    """The points of a range `[lo, hi)` of `index`; without an index one for every draw."""
    import numpy as np

    free = [p.name for p in facts.parameters if p.kind == "free"]
    found: list[tuple[Mapping[str, Any], np.ndarray]] = []
    for draw in facts.samples:
        env = {**draw.env, **{length_name(name): len(draw.env[name].values) for name in free}}
        span = np.zeros(1, np.int64) if index is None else _spread(env, index, lo, hi)
        found += [(env, span)] if len(span) else []
    draws, counts = [d for d, _ in found], np.array([len(span) for _, span in found], dtype=np.int64)
    out: dict[str, Value] = {}
    for name, value in draws[0].items() if draws else ():
        if not isinstance(value, TableValue):
            out[name] = np.repeat(np.array([d[name] for d in draws], dtype=np.int64), counts)
            continue
        entries = [d[name].values for d in draws]
        sizes = np.array([len(e) for e in entries], dtype=np.int64)
        starts = np.repeat(np.cumsum(sizes) - sizes, counts)
        out[name] = TablesValue(np.concatenate(entries), starts=starts, sizes=np.repeat(sizes, counts))
    if index is not None and draws:
        out[index] = np.concatenate([span for _, span in found])
    return Points(draws, np.repeat(np.arange(len(draws)), counts), out)


def _spread(env: Mapping[str, Value], index: str, lo: Expr, hi: Expr) -> np.ndarray:
    """Up to POINTS indices of the range, and a stretch of neighbours where these are not all: grids repeat along it."""
    import numpy as np

    start, stop = (int(evaluate(e, env, NumpyDomain())) for e in (lo, hi))
    start, stop = max(start, 0), min(stop, int(env["rows" if index == "i" else "cols"]))
    if stop - start <= POINTS:
        return np.arange(start, stop)
    middle = (start + stop) // 2
    spread = np.linspace(start, stop - 1, POINTS).astype(np.int64)
    return np.unique(np.concatenate([spread, np.arange(max(start, middle - POINTS), middle)]))
