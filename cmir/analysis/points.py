"""Where claims are tried out: sampled metadata with indices of a range, as flat arrays.

    draws of metadata   rows=3, start=[0, 0, 2] | rows=2, start=[1, 1]       range [0, rows) of i
    points              rows  3 3 3 2 2     i  0 1 2 0 1     start  entries 0 0 2 1 1, those of draw 2 from entry 3 on

An expression is evaluated at all points at once, for NumPy takes as long for a few numbers as for many. Only a `first`,
which tries as many positions as there are in the largest draw, is evaluated for one large draw after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cmir.analysis.facts import Facts
from cmir.dialects.expr import Expr
from cmir.dialects.maskspec import length_name
from cmir.interp.domain import NumpyDomain, TablesValue, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

POINTS = 96  # indices of a range that are tried, and as many neighbours
LARGE = 64  # rows or columns of a draw whose `first` terms are evaluated by themselves


class _PointsDomain(NumpyDomain):
    """Values at points, along the last axis; `runs` are the pieces in which a `first` is evaluated."""

    def __init__(self, runs: Sequence[slice]) -> None:
        super().__init__()
        self.runs = runs

    def quantify(
        self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[..., Value]
    ) -> Value:
        shape = (self.runs[-1].stop,)
        lo, hi = (self.np.broadcast_to(end, self.np.broadcast_shapes(self.np.shape(end), shape)) for end in (lo, hi))

        def piece(run: slice) -> Value:
            here = {k: _cut(v, run, shape[0]) for k, v in env.items()}
            return super(_PointsDomain, self).quantify(
                op, name, lo[..., run], hi[..., run], here, partial(body, env=here)
            )

        return self.np.concatenate([piece(run) for run in self.runs], axis=-1)


def _cut(value: Value, run: slice, points: int) -> Value:
    if isinstance(value, TablesValue):
        return TablesValue(value.values, starts=value.starts[run], sizes=value.sizes[run])
    return value[..., run] if getattr(value, "shape", ())[-1:] == (points,) else value


@dataclass
class Points:
    """Some draws, with some indices each; large draws come last."""

    draws: Sequence[Mapping[str, Any]]
    draw: np.ndarray  # of each point
    env: Mapping[str, Value]  # an integer for each point, and the table it reads
    memo: dict[Expr, Value] = field(default_factory=dict[Expr, Value])  # what was evaluated there

    @cached_property
    def _domain(self) -> NumpyDomain:
        sizes = [max(int(d["rows"]), int(d["cols"])) for d in self.draws]
        ends = [int(self.draw.searchsorted(k, "right")) for k in range(len(self.draws))]
        cuts = [end for k, end in enumerate(ends) if sizes[k] > LARGE or sizes[k + 1 : k + 2] > [LARGE]]
        cuts = sorted({0, *cuts, len(self.draw)})
        return _PointsDomain([slice(a, b) for a, b in pairwise(cuts)])

    def values(self, e: Expr) -> np.ndarray:
        """The values of an expression, one for each point."""
        import numpy as np

        if not self.draws:
            return np.zeros(0, np.int64)
        return np.broadcast_to(evaluate(e, self.env, self._domain, self.memo), self.draw.shape)

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
    found.sort(key=lambda f: max(int(f[0]["rows"]), int(f[0]["cols"])) > LARGE)
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
