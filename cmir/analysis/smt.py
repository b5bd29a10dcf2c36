"""Proof by z3: linear integers and uninterpreted tables, the facts instantiated at the index terms of the question.

Instances leave facts out, so "satisfiable" is no counterexample unless the facts are about scalars alone. z3's resource
count bounds the work and every question has a context of its own: the answer depends on nothing else.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from cmir.analysis.facts import Fact, Facts
from cmir.analysis.verdict import PROVED, UNKNOWN, Verdict
from cmir.dialects.expr import Expr, free_names
from cmir.interp.domain import Value
from cmir.interp.evaluate import evaluate
from cmir.interp.z3_domain import Z3Domain

RESOURCES = 2_000_000  # z3's rlimit per question: about a second
INSTANCES = 3_000  # of facts in one question
ROUNDS = 2  # facts are instantiated at index terms, and once more at the index terms that this brings in


class Question:
    """One z3 query: the claim's negation, the range of the index, and the facts at every index term that occurs."""

    def __init__(self, facts: Facts, index: str | None, lo: Expr, hi: Expr) -> None:
        self.facts = facts
        self.domain = Z3Domain()
        self.env: dict[str, Value] = {"rows": self.domain.integer("rows"), "cols": self.domain.integer("cols")}
        self.side: list[Any] = [self.env["rows"] >= 0, self.env["cols"] >= 0]
        for p in facts.parameters:
            if not p.is_table:
                self.env[p.name] = self.domain.integer(p.name)
                continue
            if p.kind == "free":
                length = self.domain.integer(f"{p.name}_length")
                self.env[f"{p.name}_length"] = length
                self.side.append(length >= 0)
            else:
                length = self.env["rows" if p.kind == "row" else "cols"]
            self.env[p.name] = self.domain.table(p.name, length, p.entries)
        if index is not None:
            v = self.domain.integer(index)
            self.env[index] = v
            length = self.env["rows" if index == "i" else "cols"]
            self.side += [v >= 0, v < length, self._term(lo) <= v, v < self._term(hi)]
            self.domain.valid.add((v.get_id(), length.get_id()))
            self.domain.note(v)

    def _term(self, e: Expr, extra: Mapping[str, Value] | None = None) -> Any:
        return evaluate(e, {**self.env, **(extra or {})}, self.domain)

    def ask(self, claim: Expr) -> Verdict:
        solver = z3.SolverFor("QF_UFLIA", ctx=self.domain.context)
        solver.set("rlimit", RESOURCES // 10)
        solver.add(z3.Not(self._term(claim)))
        solver.add(*(self._term(f.condition) for f in self.facts.facts if f.over is None))
        solver.add(*self.side, *self.domain.axioms)
        told, defined = len(self.side), len(self.domain.axioms)
        try:
            if solver.check() == z3.unsat:  # many claims need no fact about an index
                return PROVED
            if not self._instantiate(claim):
                return UNKNOWN
            solver.set("rlimit", RESOURCES)
            solver.add(*self.side[told:], *self.domain.axioms[defined:])
            result = solver.check()
        except z3.Z3Exception:  # the product of two unknowns is not linear
            return UNKNOWN
        if result == z3.unsat:
            return PROVED
        if result == z3.sat and self._about_scalars and not self.domain.firsts and not self.domain.axioms:
            # Only then is the model real: facts over indices might rule it out where they are not instantiated.
            model = solver.model()
            shown = [(k, v) for k, v in sorted(self.env.items()) if k in free_names(claim)]
            return Verdict("refuted", ", ".join(f"{k}={model.eval(v, model_completion=True)}" for k, v in shown))
        return UNKNOWN

    @property
    def _about_scalars(self) -> bool:
        return not any(p.is_table for p in self.facts.parameters) and all(f.over is None for f in self.facts.facts)

    def _instantiate(self, claim: Expr) -> bool:
        """Facts about the tables in question at every index term; `first` terms against every index term.

        Returns whether these are few enough for an answer to come soon.
        """
        tables = self._related(claim)
        done: set[tuple[object, int, int]] = set()

        def fresh(what: object, a: int, b: int = 0) -> bool:
            """Whether this instance is a new one."""
            known = (what, a, b) in done
            done.add((what, a, b))
            return not known

        for _ in range(ROUNDS):
            terms = list(self.domain.indices.values())
            widths = [self.env[m.table].width or 1 for m in self.facts.monotone if m.table in tables]
            if len(terms) ** 2 * sum(widths) > INSTANCES:
                return False
            for fact in self.facts.facts:
                if fact.over is None or not self._tables_of(fact.condition) <= tables:
                    continue
                name, lo, hi = fact.over
                for t in terms:
                    if fresh(fact, t.get_id()):
                        inside = z3.And(t >= 0, self._term(lo) <= t, t < self._term(hi), self._exists(fact, t))
                        self.side.append(z3.Implies(inside, self._term(fact.condition, {name: t})))
            for m in (m for m in self.facts.monotone if m.table in tables):
                table, lo, hi = self.env[m.table], self._term(m.lo), self._term(m.hi)
                for a in terms:
                    for b in terms:
                        if a.get_id() != b.get_id() and fresh(m, a.get_id(), b.get_id()):
                            order = z3.And(lo <= a, a <= b, b < hi, a >= 0, b < table.length)
                            for t in [()] if table.width is None else [(t,) for t in range(table.width)]:
                                self.side.append(z3.Implies(order, table.entries(a, *t) <= table.entries(b, *t)))
            for k, f in enumerate(self.domain.firsts):
                w = f.witness
                if fresh("first", k):
                    self.side.append(z3.If(f.lo < f.hi, z3.And(f.lo <= w, w <= f.hi), w == f.hi))
                    self.side.append(z3.Implies(z3.And(f.lo < f.hi, w < f.hi), f.predicate(w)))
                for t in terms:
                    if fresh("before", k, t.get_id()):
                        self.side.append(z3.Implies(z3.And(f.lo <= t, t < w), z3.Not(f.predicate(t))))
        return True

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
