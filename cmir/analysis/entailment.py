"""Does a claim hold for every index of a Region and all metadata that the facts allow?

    Entailment(facts, "i", history, rows).prove(start[i] <= history)  ->  refuted: start[3]=5, history=2, i=3

Cheapest first: the linear forms alone (most questions), a counterexample among sampled metadata (most false claims), sums of
facts, and z3 on linear integers with uninterpreted tables, the facts instantiated at the index terms of the question. z3 is bounded by its own resource
count, not by time, so that a compile gives the same slots on every machine. *Unknown* is an answer: callers keep the safe form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from cmir.analysis.facts import Facts, at, conjuncts, in_range
from cmir.analysis.linear import Linear, linear, negate, simplify
from cmir.dialects.expr import COLS, FALSE, I, J, ROWS, TRUE, ZERO, Expr, add, and_, const, free_names, le, lookup, or_, sub, var, walk
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

RESOURCES = 3_000_000  # z3's rlimit per question: about a second
DEPTH = 4  # facts that one inequality may be the sum of
ROUNDS = 2  # facts are instantiated at index terms, and once more at the index terms that this brings in
POINTS = 96  # indices of a sampled Region that are tried


@dataclass(frozen=True)
class Verdict:
    """`counterexample`: metadata and indices in words, when the claim is refuted."""

    status: Literal["proved", "refuted", "unknown"]
    counterexample: str = ""

    @property
    def proved(self) -> bool:
        return self.status == "proved"


PROVED = Verdict("proved")
UNKNOWN = Verdict("unknown")


class Entailment:
    """Questions about one index (`i` or `j`) in one half-open range, or about scalars alone (`index` None)."""

    def __init__(self, facts: Facts, index: str | None, lo: Expr = ZERO, hi: Expr = ZERO) -> None:
        self.facts = facts
        self.index = index
        self.lo, self.hi = lo, hi
        self.asked: dict[Expr, Verdict] = {}

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
        return PROVED if self._holds(claim, depth) else None

    def _holds(self, claim: Expr, depth: int) -> bool:
        match claim.op:
            case "and":
                return all(self._holds(a, depth) for a in claim.args)
            case "or":
                return any(self._holds(a, depth) for a in claim.args)
            case "lt" | "le":
                gap = linear(claim.args[1]) - linear(claim.args[0])
                return self._nonnegative(gap + Linear((), -1) if claim.op == "lt" else gap, depth)
            case "eq":
                gap = linear(claim.args[1]) - linear(claim.args[0])
                return self._nonnegative(gap, depth) and self._nonnegative(gap.scaled(-1), depth)
            case _:
                return claim == TRUE

    def _nonnegative(self, form: Linear, depth: int) -> bool:
        """Whether `form >= 0` follows by replacing min and max by operands and subtracting facts known to be >= 0."""
        if form.is_constant:
            return form.constant >= 0
        for atom, c in form.terms:
            if atom.op in ("min", "max", "select"):
                rest = form.without(atom)
                cases = atom.args[1:] if atom.op == "select" else atom.args
                # min(a, b) <= a, so a negative multiple of it is bounded below by any one operand; a positive one needs all.
                some = (atom.op == "min" and c < 0) or (atom.op == "max" and c > 0)
                results = (self._nonnegative(rest + linear(a).scaled(c), depth) for a in cases)
                return any(results) if some else all(results)
        if depth == 0:
            return False
        for atom, c in form.terms:
            for known in self._known_about(atom):
                k = known.coefficient(atom)
                if (k > 0) == (c > 0) and c % k == 0 and self._nonnegative(form - known.scaled(c // k), depth - 1):
                    return True
        return False

    def _known_about(self, atom: Expr) -> Sequence[Linear]:
        """Forms >= 0 that mention an atom: facts, the range of the index, division."""
        out = [f for f in self._hypotheses if f.coefficient(atom)]
        if atom.op == "mod":
            out += [linear(atom), linear(sub(const(atom.args[1].value - 1), atom))]
        if atom.op == "floordiv":
            rest = linear(atom.args[0]) - linear(atom).scaled(atom.args[1].value)
            out += [rest, Linear((), atom.args[1].value - 1) - rest]
        return out

    @cached_property
    def _hypotheses(self) -> list[Linear]:
        """The range of the index, and every fact that holds all over it, as forms >= 0."""
        conditions: list[Expr] = [le(ZERO, ROWS), le(ZERO, COLS)]
        if self.index is not None:
            conditions += conjuncts(in_range(var(self.index), self.lo, self.hi))
            conditions += conjuncts(in_range(var(self.index), ZERO, ROWS if self.index == "i" else COLS))
        for fact in self.facts.facts:
            if fact.over is None:
                conditions.append(fact.condition)
            elif fact.over[0] == self.index:
                low, high = linear(self.lo) - linear(fact.over[1]), linear(fact.over[2]) - linear(self.hi)
                if low.is_constant and low.constant >= 0 and high.is_constant and high.constant >= 0:
                    conditions.append(fact.condition)
        out: list[Linear] = []
        for c in conditions:
            if c.op in ("lt", "le", "eq"):
                gap = linear(c.args[1]) - linear(c.args[0])
                out += [gap + Linear((), -1) if c.op == "lt" else gap]
                out += [gap.scaled(-1)] if c.op == "eq" else []
        return [f for f in out if not f.is_constant]

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
                span = np.arange(lo, hi) if hi - lo <= POINTS else np.unique(np.linspace(lo, hi - 1, POINTS).astype(np.int64))
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
        shape = lambda env: np.shape(env[self.index]) if self.index else ()  # noqa: E731
        return [np.broadcast_to(evaluate(e, env, domain, memo), shape(env)) for env, memo in self._points]

    def _by_example(self, claim: Expr) -> Verdict | None:
        import numpy as np

        for (env, _), holds in zip(self._points, self.evaluate_samples(claim), strict=True):
            if not np.all(holds):
                return Verdict("refuted", self._describe(claim, env, int(np.argmin(holds))))
        return None

    def _describe(self, claim: Expr, env: Mapping[str, Value], position: int) -> str:
        import numpy as np

        point = {k: v for k, v in env.items() if not isinstance(v, TableValue) and k != self.index}
        if self.index is not None:
            point[self.index] = np.atleast_1d(env[self.index])[position]
        domain, full, words = NumpyDomain(), {**env, **point}, dict[str, int]()
        for name in sorted(free_names(claim) | ({self.index} if self.index else set())):
            if name in point:
                words[name] = int(point[name])
        for term in walk(claim):
            if term.op == "lookup" and free_names(term) <= full.keys():
                index = int(evaluate(term.args[0], full, domain))
                words[f"{term.name}[{index}]"] = int(evaluate(term, full, domain))
        return ", ".join(f"{k}={v}" for k, v in words.items())

    # By z3.

    def _by_z3(self, claim: Expr) -> Verdict:
        question = _Question(self.facts, self.index, self.lo, self.hi)
        return question.ask(claim)


class _Question:
    """One z3 query: the claim's negation, the range of the index, and the facts at every index term that occurs."""

    def __init__(self, facts: Facts, index: str | None, lo: Expr, hi: Expr) -> None:
        import z3

        from cmir.interp.z3_domain import Z3Domain, Z3Table

        self.z3: Any = z3
        self.facts = facts
        self.domain = Z3Domain()
        self.env: dict[str, Value] = {"rows": z3.Int("rows"), "cols": z3.Int("cols")}
        self.side: list[Any] = [self.env["rows"] >= 0, self.env["cols"] >= 0]
        for p in facts.parameters:
            if not p.is_table:
                self.env[p.name] = z3.Int(p.name)
                continue
            length = self.env["rows"] if p.kind == "row" else self.env["cols"] if p.kind == "col" else z3.Int(f"{p.name}_length")
            if p.kind == "free":
                self.env[f"{p.name}_length"] = length
                self.side.append(length >= 0)
            self.env[p.name] = Z3Table(z3.Function(p.name, z3.IntSort(), z3.IntSort()), length)
        if index is not None:
            v = z3.Int(index)
            self.env[index] = v
            whole = self.env["rows" if index == "i" else "cols"]
            self.side += [0 <= v, v < whole, self._term(lo) <= v, v < self._term(hi)]
            self.domain.note(v)

    def _term(self, e: Expr, **extra: Value) -> Any:
        return evaluate(e, {**self.env, **extra}, self.domain)

    def ask(self, claim: Expr) -> Verdict:
        z3 = self.z3
        solver = z3.SolverFor("QF_UFLIA")
        solver.set("rlimit", RESOURCES)
        solver.add(z3.Not(self._term(claim)))
        solver.add(*(self._term(f.condition) for f in self.facts.facts if f.over is None))
        self._instantiate()
        solver.add(*self.side)
        result = solver.check()
        if result == z3.unsat:
            return PROVED
        if result == z3.sat and not self._tables and not self.domain.firsts:
            # Without tables the model is real; with tables, facts elsewhere in them might still rule it out.
            model = solver.model()
            words = [f"{k}={model.eval(v, model_completion=True)}" for k, v in sorted(self.env.items()) if k in free_names(claim)]
            return Verdict("refuted", ", ".join(words))
        return UNKNOWN

    @property
    def _tables(self) -> bool:
        return any(p.is_table for p in self.facts.parameters)

    def _instantiate(self) -> None:
        """Facts over rows, columns and entries at every index term; `first` terms against every index term."""
        z3 = self.z3
        done: set[tuple[object, int]] = set()
        seen_firsts = 0
        for _ in range(ROUNDS):
            terms = list(self.domain.indices.values())
            for fact in self.facts.facts:
                if fact.over is None:
                    continue
                name, lo, hi = fact.over
                for t in terms:
                    if (fact, t.get_id()) not in done:
                        done.add((fact, t.get_id()))
                        inside = z3.And(self._term(lo) <= t, t < self._term(hi), t >= 0)
                        self.side.append(z3.Implies(inside, self._term(fact.condition, **{name: t})))
            for m in self.facts.monotone:
                table, lo, hi = self.env[m.table], self._term(m.lo), self._term(m.hi)
                for a in terms:
                    for b in terms:
                        if a.get_id() != b.get_id() and (m, a.get_id() * 1_000_003 + b.get_id()) not in done:
                            done.add((m, a.get_id() * 1_000_003 + b.get_id()))
                            order = z3.And(lo <= a, a <= b, b < hi, a >= 0, b < table.length)
                            self.side.append(z3.Implies(order, table.entries(a) <= table.entries(b)))
            for k, f in enumerate(self.domain.firsts):
                w = f.witness
                if k >= seen_firsts:
                    self.side.append(z3.If(f.lo < f.hi, z3.And(f.lo <= w, w <= f.hi), w == f.hi))
                    self.side.append(z3.Implies(z3.And(f.lo < f.hi, w < f.hi), f.predicate(w)))
                for t in terms:
                    if (k, t.get_id()) not in done:
                        done.add((k, t.get_id()))
                        self.side.append(z3.Implies(z3.And(f.lo <= t, t < w), z3.Not(f.predicate(t))))
            seen_firsts = len(self.domain.firsts)


def negation(claim: Expr) -> Expr:
    return negate(simplify(claim))


def implies(a: Expr, b: Expr) -> Expr:
    return or_(negation(a), b)


