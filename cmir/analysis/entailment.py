"""Does a claim hold for every index of a Region and all metadata that the facts allow?

    Entailment(facts, "i", history, rows).prove(start[i] <= history)  ->  refuted: start[3]=5, history=2, i=3

Cheapest first: the linear forms alone (most questions), a counterexample among sampled metadata (most false claims),
sums of facts, and z3. None of them looks at a clock, so that a compile gives the same slots on every machine, whatever
was compiled before. *Unknown* is an answer: callers keep the safe form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from cmir.analysis.facts import Facts, conjuncts, covers, in_range
from cmir.analysis.forms import Forms
from cmir.analysis.linear import Linear, inequalities, negate, simplify
from cmir.analysis.verdict import PROVED, UNKNOWN, Verdict
from cmir.dialects.expr import (
    COLS,
    FALSE,
    ROWS,
    ZERO,
    Expr,
    free_names,
    le,
    or_,
    var,
    walk,
)
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

DEPTH = 4  # facts that one inequality may be the sum of
PATIENCE = 24  # questions of one Region that z3 may fail to answer before it is asked no more
POINTS = 96  # indices of a sampled Region that are tried


class Entailment:
    """Questions about one index (`i` or `j`) in one half-open range, or about scalars alone (`index` None)."""

    def __init__(self, facts: Facts, index: str | None, lo: Expr = ZERO, hi: Expr = ZERO) -> None:
        self.facts = facts
        self.index = index
        self.lo, self.hi = lo, hi
        self.asked: dict[Expr, Verdict] = {}
        self.patience = PATIENCE
        self.unsplit: set[object] = set()
        """Shapes of clauses that `cmir.analysis.split` could not split in this range."""

    @property
    def _length(self) -> Expr:
        """How far the index can reach."""
        return ROWS if self.index == "i" else COLS

    def prove(self, claim: Expr) -> Verdict:
        claim = simplify(claim)
        if claim not in self.asked:
            self.asked[claim] = (
                self._by_form(claim, 0) or self._by_example(claim) or self._by_form(claim, DEPTH) or self._by_z3(claim)
            )
        return self.asked[claim]

    # Syntactic.

    def _by_form(self, claim: Expr, depth: int) -> Verdict | None:
        if claim == FALSE and self.index is None:
            return Verdict("refuted")
        return PROVED if Forms(self._hypotheses).holds(claim, depth) else None

    @cached_property
    def _hypotheses(self) -> list[Linear]:
        """The range of the index, and every fact that holds all over it, as forms >= 0."""
        conditions: list[Expr] = [le(ZERO, ROWS), le(ZERO, COLS)]
        if self.index is not None:
            conditions += conjuncts(in_range(var(self.index), self.lo, self.hi))
            conditions += conjuncts(in_range(var(self.index), ZERO, self._length))
        for fact in self.facts.facts:
            if fact.over is None or (
                fact.over[0] == self.index and covers(fact.over[1:], self.lo, self.hi, self._length)
            ):
                conditions.append(fact.condition)
        return [f for f in inequalities(conditions) if not f.is_constant]

    # By example.

    @cached_property
    def _points(self) -> list[tuple[dict[str, Value], dict[Expr, Value]]]:
        """Sampled metadata with up to POINTS indices of the range each, and a memo of what was evaluated there."""
        import numpy as np

        domain = NumpyDomain()
        out: list[tuple[dict[str, Value], dict[Expr, Value]]] = []
        for draw in self.facts.samples:
            env: dict[str, Value] = {
                **draw.env,
                **{f"{p.name}_length": len(draw.env[p.name].values) for p in self.facts.parameters if p.kind == "free"},
            }
            if self.index is not None:
                length = int(env["rows" if self.index == "i" else "cols"])
                lo = max(0, int(evaluate(self.lo, env, domain)))
                hi = min(length, int(evaluate(self.hi, env, domain)))
                if lo >= hi:
                    continue
                span = (
                    np.arange(lo, hi)
                    if hi - lo <= POINTS
                    else np.unique(np.linspace(lo, hi - 1, POINTS).astype(np.int64))
                )
                if hi - lo > POINTS:  # a stretch of neighbours too: grids repeat along it
                    middle = (lo + hi) // 2
                    span = np.unique(np.concatenate([span, np.arange(max(lo, middle - POINTS), middle)]))
                env[self.index] = span
            out.append((env, {}))
        return out

    def evaluate_samples(self, e: Expr) -> list[np.ndarray]:
        """The values of an expression at the sampled points, one array per draw."""
        import numpy as np

        domain = NumpyDomain()
        out: list[np.ndarray] = []
        for env, memo in self._points:
            shape = np.shape(env[self.index]) if self.index else ()
            out.append(np.broadcast_to(evaluate(e, env, domain, memo), shape))
        return out

    def _by_example(self, claim: Expr) -> Verdict | None:
        import numpy as np

        known = [len(memo) for _, memo in self._points]
        broken = [
            (env, int(np.argmin(holds)))
            for (env, _), holds in zip(self._points, self.evaluate_samples(claim), strict=True)
            if not holds.all()
        ]
        for (_, memo), count in zip(self._points, known, strict=True):
            while len(memo) > count:  # a claim is asked once: its terms would fill the memory
                memo.popitem()
        if not broken:
            return None
        env, position = min(broken, key=lambda b: int(b[0]["rows"]) + int(b[0]["cols"]))  # small numbers are read best
        return Verdict("refuted", self._describe(claim, env, position))

    def _describe(self, claim: Expr, env: Mapping[str, Value], position: int) -> str:
        import numpy as np

        point = {k: v for k, v in env.items() if not isinstance(v, TableValue) and k != self.index}
        if self.index is not None:
            point[self.index] = np.atleast_1d(env[self.index])[position]
        domain, full, words = NumpyDomain(), {**env, **point}, dict[str, int]()
        for name in sorted(free_names(claim) | ({self.index} if self.index else set[str]())):
            if name in point:
                words[name] = int(point[name])
        for term in walk(claim):
            if term.op == "lookup" and free_names(term) <= full.keys():
                indices = ", ".join(str(int(evaluate(a, full, domain))) for a in term.args)
                words[f"{term.name}[{indices}]"] = int(evaluate(term, full, domain))
        return ", ".join(f"{k}={v}" for k, v in words.items())

    # By z3.

    def _by_z3(self, claim: Expr) -> Verdict:
        from cmir.analysis.smt import Question  # imports z3

        if self.patience == 0:
            return UNKNOWN
        verdict = Question(self.facts, self.index, self.lo, self.hi).ask(claim)
        self.patience -= verdict == UNKNOWN
        return verdict


def negation(claim: Expr) -> Expr:
    return negate(simplify(claim))


def implies(a: Expr, b: Expr) -> Expr:
    return or_(negation(a), b)
