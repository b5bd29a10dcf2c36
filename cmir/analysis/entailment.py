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
from cmir.analysis.forms import STEPS, Forms, Hypotheses
from cmir.analysis.linear import inequalities, negate, simplify
from cmir.analysis.points import Points, points_of
from cmir.analysis.verdict import PROVED, UNKNOWN, Verdict
from cmir.dialects.expr import (
    COLS,
    FALSE,
    ROWS,
    ZERO,
    Expr,
    ExpressionTooLargeError,
    free_names,
    le,
    or_,
    size,
    var,
    walk,
)
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

    from cmir.analysis.smt import Prover

DEPTH = 4  # facts that one inequality may be the sum of
PATIENCE = 24  # questions of one Region that z3 may fail to answer before it is asked no more


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
        """Whether a claim holds; unknown too where the work of a pass is spent, or the claim too long to be written."""
        try:
            claim = simplify(claim)
            if claim not in self.asked:
                self.asked[claim] = self._answer(claim)
            return self.asked[claim]
        except ExpressionTooLargeError:
            return UNKNOWN

    def _answer(self, claim: Expr) -> Verdict:
        if (found := self._by_form(claim, 0)) is not None:
            return found
        if self.facts.effort.spent:
            return UNKNOWN
        return self._by_example(claim) or self._by_form(claim, DEPTH) or self._by_z3(claim)

    # Syntactic.

    def _by_form(self, claim: Expr, depth: int) -> Verdict | None:
        if claim == FALSE and self.index is None:
            return Verdict("refuted")
        forms = Forms(self._hypotheses)
        found = forms.holds(claim, depth)
        self.facts.effort.charge(STEPS - forms.steps)
        return PROVED if found else None

    @cached_property
    def _hypotheses(self) -> Hypotheses:
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
        return Hypotheses(inequalities(conditions))

    # By example.

    @cached_property
    def _points(self) -> Points:
        return points_of(self.facts, self.index, self.lo, self.hi)

    def evaluate_samples(self, e: Expr) -> np.ndarray:
        """The values of an expression at the sampled points."""
        return self._points.values(e)

    def _by_example(self, claim: Expr) -> Verdict | None:
        self.facts.effort.charge(size(claim) // 4)
        point = self._points.try_out(claim)
        return None if point is None else Verdict("refuted", self._describe(claim, point))

    def _describe(self, claim: Expr, point: Mapping[str, Value]) -> str:
        """The names that the claim reads with their values, and the entries of tables."""
        domain, words = NumpyDomain(), dict[str, int]()
        for name in sorted(free_names(claim) | ({self.index} if self.index else set[str]())):
            if name in point and not isinstance(point[name], TableValue):
                words[name] = int(point[name])
        for term in walk(claim):
            if term.op == "lookup" and free_names(term) <= point.keys():
                indices = ", ".join(str(int(evaluate(a, point, domain))) for a in term.args)
                words[f"{term.name}[{indices}]"] = int(evaluate(term, point, domain))
        return ", ".join(f"{k}={v}" for k, v in words.items())

    # By z3.

    @cached_property
    def _prover(self) -> Prover:
        from cmir.analysis.smt import Prover  # imports z3

        return Prover(self.facts, self.index, self.lo, self.hi)

    def _by_z3(self, claim: Expr) -> Verdict:
        if self.patience == 0:
            return UNKNOWN
        verdict = self._prover.ask(claim)
        self.patience -= verdict == UNKNOWN
        return verdict


def negation(claim: Expr) -> Expr:
    return negate(simplify(claim))


def implies(a: Expr, b: Expr) -> Expr:
    return or_(negation(a), b)
