"""Proof by z3: linear integers and uninterpreted tables, the facts instantiated at the index terms of the question.

    claim   start[i] <= i     facts   start[k] <= k for every row k     question   start[i] > i,  start[i] <= i: unsat

Instances leave facts out, so "satisfiable" is no counterexample unless the facts are about scalars alone, and NumPy
finds that its numbers satisfy them. z3's resource count bounds the work. The questions of one range share a context,
for building terms takes longer than answering: an instance of a fact is built once. An answer depends on the questions
asked before it in that range and on nothing else.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import z3

from cmir.analysis.effort import QUESTION
from cmir.analysis.facts import Fact, Facts, Monotone, first_violation
from cmir.analysis.verdict import PROVED, UNKNOWN, Verdict
from cmir.dialects.expr import Expr, free_names
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.z3_domain import Division, Z3Domain

RESOURCES = 2_000_000  # z3's rlimit per question: about a second
INSTANCES = 3_000  # of facts in one question
MODELS = 20  # of scalars, in search of an example
LARGE = 2**31  # numbers of an example are smaller
ROUNDS = 2  # facts are instantiated at index terms, and once more at the index terms that this brings in


@dataclass(frozen=True)
class Instance:
    """What a fact says at index terms (`at`, kept so that their ids stay theirs), and what that brings in: index terms
    and what is known of divisions."""

    at: tuple[Any, ...]
    conditions: tuple[Any, ...]
    indices: Mapping[int, Any]
    axioms: tuple[Any, ...]


class Prover:
    """Questions about one index in one half-open range (or about scalars alone), under the facts of a spec."""

    def __init__(self, facts: Facts, index: str | None, lo: Expr, hi: Expr) -> None:
        self.facts = facts
        self.index, self.lo, self.hi = index, lo, hi
        self.domain = Z3Domain()
        self.env: dict[str, Value] = {"rows": self.domain.integer("rows"), "cols": self.domain.integer("cols")}
        self.instances: dict[Hashable, Instance] = {}
        self.known: list[Any] = [self.env["rows"] >= 0, self.env["cols"] >= 0]
        for p in facts.parameters:
            if not p.is_table:
                self.env[p.name] = self.domain.integer(p.name)
                continue
            if p.kind == "free":
                length = self.domain.integer(f"{p.name}_length")
                self.env[f"{p.name}_length"] = length
                self.known.append(length >= 0)
            else:
                length = self.env["rows" if p.kind == "row" else "cols"]
            self.env[p.name] = self.domain.table(p.name, length, p.entries)
        if index is not None:
            v = self.domain.integer(index)
            self.env[index] = v
            length = self.env["rows" if index == "i" else "cols"]
            self.domain.valid.add((v.get_id(), length.get_id()))
            self.known += [v >= 0, v < length, self.term(lo) <= v, v < self.term(hi)]
            self.domain.note(v)
        scalars = [self.term(f.condition) for f in facts.facts if f.over is None]
        self.known = [*scalars, *self.known, *self.domain.axioms]
        self.first_indices = self.domain.indices

    def term(self, e: Expr, extra: Mapping[str, Value] | None = None) -> Any:
        return evaluate(e, {**self.env, **(extra or {})}, self.domain)

    def ask(self, claim: Expr) -> Verdict:
        self.domain.indices = dict(self.first_indices)
        self.domain.firsts, self.domain.axioms = [], []
        try:
            return self._answer(claim)
        except z3.Z3Exception:  # the product of two unknowns is not linear
            return UNKNOWN

    def _answer(self, claim: Expr) -> Verdict:
        solver = z3.SolverFor("QF_UFLIA", ctx=self.domain.context)
        solver.set("rlimit", RESOURCES // 10)
        solver.add(z3.Not(self.term(claim)), *self.known, *self.domain.axioms)
        self.facts.effort.charge(QUESTION)
        if solver.check() == z3.unsat:  # many claims need no fact about an index
            return PROVED
        defined = len(self.domain.axioms)
        conditions = self._instantiate(claim)
        if conditions is None:
            return UNKNOWN
        self.facts.effort.charge(QUESTION + len(conditions))
        solver.set("rlimit", RESOURCES)
        solver.add(*conditions, *self.domain.axioms[defined:])
        result = solver.check()
        if result == z3.unsat:
            return PROVED
        # Only then is the model real: facts over indices might rule it out where they are not instantiated.
        if result == z3.sat and self._about_scalars and not self.domain.firsts:
            return self._example(claim, solver)
        return UNKNOWN

    def _example(self, claim: Expr, solver: Any) -> Verdict:
        """Numbers that satisfy the facts and refute a claim about scalars, or its proof.

        Of a division by an unknown z3 is told what rules out the quotient that its model gets wrong, and asked for
        another model. Only numbers that NumPy finds to be an example are one.
        """
        for _ in range(MODELS):
            model = solver.model()
            env = {name: model.eval(v, model_completion=True).as_long() for name, v in self.env.items()}
            if max(map(abs, env.values())) >= LARGE:  # kernels reckon with less, and so does NumPy
                return UNKNOWN
            if self._refuted(claim, env):
                shown = sorted(env.keys() & self._related_scalars(claim))
                return Verdict("refuted", ", ".join(f"{name}={env[name]}" for name in shown))
            told = [known for d in self.domain.divisions.values() for known in _quotients(d, model)]
            if not told:
                return UNKNOWN
            self.facts.effort.charge(QUESTION)
            solver.add(*told)
            if (result := solver.check()) != z3.sat:
                return PROVED if result == z3.unsat else UNKNOWN
        return UNKNOWN

    def _related_scalars(self, claim: Expr) -> frozenset[str]:
        """What the claim reads, the index, and what facts relate to them: the numbers that an example is checked by."""
        known, wider = frozenset[str](), free_names(claim) | ({self.index} if self.index else set[str]())
        read = [free_names(f.condition) for f in self.facts.facts]
        while known != wider:
            known, wider = wider, wider.union(*(r for r in read if r & wider))
        return known

    def _refuted(self, claim: Expr, env: Mapping[str, int]) -> bool:
        """Whether numbers satisfy the facts, lie in the range and break a claim, by their values."""
        domain = NumpyDomain()
        if self.index is not None:
            lo, hi = (int(evaluate(end, env, domain)) for end in (self.lo, self.hi))
            if not lo <= env[self.index] < hi:
                return False
        return first_violation(self.facts, env) is None and not evaluate(claim, env, domain)

    @property
    def _about_scalars(self) -> bool:
        return not any(p.is_table for p in self.facts.parameters) and all(f.over is None for f in self.facts.facts)

    def _instantiate(self, claim: Expr) -> list[Any] | None:
        """Facts about the tables in question at every index term; `first` terms against every index term.

        None: they are too many for an answer to come soon.
        """
        tables = self._related(claim)
        facts = [f for f in self.facts.facts if f.over is not None and self._tables_of(f.condition) <= tables]
        monotone = [m for m in self.facts.monotone if m.table in tables]
        widths = sum(self.env[m.table].width or 1 for m in monotone)
        told: set[Hashable] = set()
        out: list[Any] = []

        def tell(what: Hashable, at: tuple[int, ...], build: Callable[..., Sequence[Any]]) -> None:
            """The instance of a fact at the index terms of these ids, unless it is told already."""
            if (what, at) not in told:
                told.add((what, at))
                instance = self._instance((what, at), tuple(terms[t] for t in at), build)
                out.extend(instance.conditions)
                self.domain.indices |= instance.indices
                self.domain.axioms += instance.axioms

        for _ in range(ROUNDS):
            terms = dict(self.domain.indices)
            if len(terms) ** 2 * widths > INSTANCES:
                return None
            for fact in facts:
                for t in terms:
                    tell(id(fact), (t,), partial(self._holds, fact))
            for m in monotone:
                for a in terms:
                    for b in terms:
                        if a != b:
                            tell(id(m), (a, b), partial(self._rises, m))
            for k, f in enumerate(self.domain.firsts):  # of this question alone, so built anew
                w = f.witness
                if k not in told:
                    told.add(k)
                    out.append(z3.If(f.lo < f.hi, z3.And(f.lo <= w, w <= f.hi), w == f.hi))
                    out.append(z3.Implies(z3.And(f.lo < f.hi, w < f.hi), f.predicate(w)))
                for t, term in terms.items():
                    if (k, t) not in told:
                        told.add((k, t))
                        out.append(z3.Implies(z3.And(f.lo <= term, term < w), z3.Not(f.predicate(term))))
        return out

    def _instance(self, key: Hashable, at: tuple[Any, ...], build: Callable[..., Sequence[Any]]) -> Instance:
        if key not in self.instances:
            indices, axioms = self.domain.indices, self.domain.axioms
            self.domain.indices, self.domain.axioms = {}, []
            conditions = tuple(build(*at))
            self.instances[key] = Instance(at, conditions, self.domain.indices, tuple(self.domain.axioms))
            self.domain.indices, self.domain.axioms = indices, axioms
        return self.instances[key]

    def _holds(self, fact: Fact, t: Any) -> list[Any]:
        assert fact.over is not None
        name, lo, hi = fact.over
        inside = z3.And(t >= 0, self.term(lo) <= t, t < self.term(hi), self._exists(fact, t))
        return [z3.Implies(inside, self.term(fact.condition, {name: t}))]

    def _rises(self, m: Monotone, a: Any, b: Any) -> list[Any]:
        """For every integer of an entry: `a <= b` gives `table[a] <= table[b]`."""
        table, lo, hi = self.env[m.table], self.term(m.lo), self.term(m.hi)
        order = z3.And(lo <= a, a <= b, b < hi, a >= 0, b < table.length)
        numbers = [()] if table.width is None else [(t,) for t in range(table.width)]
        return [z3.Implies(order, table.entries(a, *t) <= table.entries(b, *t)) for t in numbers]

    def _tables_of(self, e: Expr) -> frozenset[str]:
        return frozenset(p.name for p in self.facts.parameters if p.is_table) & free_names(e)

    def _related(self, claim: Expr) -> frozenset[str]:
        """The tables that the claim reads, and those that facts relate to them."""
        read = [self._tables_of(f.condition) for f in self.facts.facts]
        known, wider = frozenset[str](), self._tables_of(claim)
        while known != wider:
            known, wider = wider, wider.union(*(r for r in read if r & wider))
        return known

    def _exists(self, fact: Fact, index: Any) -> Any:
        """Whether there is such a row, column or entry: a fact says nothing of others."""
        if fact.kind in ("row", "col"):
            return index < self.env["rows" if fact.kind == "row" else "cols"]
        return z3.Or(*(index < self.env[name].length for name in fact.tables), self.domain.boolean(False))


def _quotients(d: Division, model: Any) -> list[Any]:
    """What a model breaks of a division: `quotient == q` says that `q * k <= x < (q + 1) * k`, and is said by it.

    Both for the quotient that the model has and for the right one; linear, since `q` is a number.
    """
    x, k, quotient, remainder = (
        model.eval(term, model_completion=True).as_long() for term in (d.x, d.k, d.quotient, d.remainder)
    )
    if (x // k, x % k) == (quotient, remainder):
        return []
    out: list[Any] = []
    for q in {quotient, x // k}:
        inside = z3.And(q * d.k <= d.x, d.x < (q + 1) * d.k)
        out += [inside == (d.quotient == q), z3.Implies(inside, d.remainder == d.x - q * d.k)]
    return out
