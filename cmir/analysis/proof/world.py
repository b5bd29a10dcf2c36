"""Metadata as z3 unknowns, and what the facts of a spec say of them, told at the indices that a question reads.

A fact over an index is a claim about every entry. It is told at the indices at which its tables are read, which is
sound: fewer assumptions prove less. A fact about neighbours, `t[x] <= t[x + 1]` or `t[x + 1] <= t[x] + c`, is told of
any two entries instead, as its sum over the steps between them:

    sign * (t[b] - t[a]) + gap * (b - a) >= 0          for lo <= a <= b <= hi

A `first` is an unknown between its ends that satisfies its condition (or is the upper end); at the indices at which the
tables of its condition are read it is told that none below it does.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from cmir.analysis.facts import Fact, Facts
from cmir.analysis.linear import inequalities, simplify
from cmir.dialects.expr import ONE, Expr, add, lookup, var, walk
from cmir.dialects.maskspec import length_name
from cmir.interp.domain import TableValue, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.z3_domain import First, Z3Domain, Z3Table

LEVELS = 3
"""Of assumptions: of few, then of more."""

ROUNDS = 2
"""Facts bring in index terms at which they are told again."""

INSTANCES = 20_000
"""Of facts, told in one world."""

PAIRS = 100
"""Of `first` terms that are asked whether they are one."""

RESOURCES = 1_000_000
"""z3's rlimit for such a pair."""


@dataclass
class Domain(Z3Domain):
    """Records of every table the indices that it is read at."""

    reads: dict[str, dict[int, Any]] = field(default_factory=dict[str, dict[int, Any]])

    def lookup(self, table: Z3Table | TableValue, index: Value, number: Value | None = None) -> Value:
        out = super().lookup(table, index, number)
        if isinstance(table, Z3Table) and table.name:
            self.read(table.name, index)
            if (z3.simplify(index).get_id(), table.length.get_id()) not in self.valid:
                self.read(table.name, table.length - 1)
                self.read(table.name, self.const(0))
        return out

    def read(self, table: str, index: Any) -> Any:
        """The index, simplified: facts about the table will be told there."""
        index = self.note(index)
        return self.reads.setdefault(table, {}).setdefault(index.get_id(), index)

    def template(self, say: Callable[..., Any], variables: int) -> Template:
        """What `say` says of indices, for any of them: built once, told by substitution."""
        outer, self.reads = self.reads, {}
        names = [self.integer(f"any!{n}") for n in range(variables)]
        term = say(*names)
        reads = [(table, index) for table, indices in self.reads.items() for index in indices.values()]
        for name in [x for x in self.indices if any(_mentions(self.indices[x], v) for v in names)]:
            del self.indices[name]
        self.reads = outer
        return Template(self, names, term, reads)


@dataclass
class Template:
    """A condition on indices, and the indices at which it reads tables."""

    domain: Domain
    variables: list[Any]
    term: Any
    reads: list[tuple[str, Any]]

    @property
    def tables(self) -> set[str]:
        return {table for table, _ in self.reads}

    def at(self, *indices: Any) -> Any:
        """The condition at some indices."""
        pairs = list(zip(self.variables, indices, strict=True))
        for table, index in self.reads:
            self.domain.read(table, z3.substitute(index, *pairs))
        return z3.substitute(self.term, *pairs)


def _mentions(term: Any, variable: Any) -> bool:
    return term.eq(variable) or any(_mentions(child, variable) for child in term.children())


@dataclass(frozen=True)
class Step:
    """What a fact about neighbours says of any two entries of its table."""

    fact: Fact
    table: str
    number: tuple[Expr, ...]
    sign: int
    gap: int


class World:
    """The unknowns of one spec, with a row `i` and a column `j` where `indices` asks for them.

    With `searched` nothing is known of a `first` but that it lies between its ends: that is all that a binary search
    gives where facts are broken.
    """

    def __init__(self, facts: Facts, indices: Sequence[str] = ("i", "j"), searched: bool = False) -> None:
        self.facts = facts
        self.searched = searched
        self.domain = Domain()
        self.told: list[Any] = []
        """What is known without any fact over an index."""
        self.env: dict[str, Value] = {}
        for name in ("rows", "cols"):
            self.env[name] = self.natural(name)
        for p in facts.parameters:
            if not p.is_table:
                self.env[p.name] = self.domain.integer(p.name)
                continue
            if p.kind == "free":
                self.env[length_name(p.name)] = self.natural(length_name(p.name))
            length = self.env[{"row": "rows", "col": "cols"}.get(p.kind, length_name(p.name))]
            self.env[p.name] = self.domain.table(p.name, length, p.entries)
        for index in indices:
            self.env[index] = self.index(index, self.env["rows" if index == "i" else "cols"])
        self.told += [self.term(f.condition) for f in facts.facts if f.over is None]
        self._steps = [step for f in facts.facts for step in _steps(f)]
        # A fact that reads a `first` would bring in another one at every index.
        self._pointwise = [
            f for f in facts.facts if f.over is not None and not _is_neighbours(f) and not _reads_first(f)
        ]
        self._level = 0
        self._instances: list[Any] = []
        self._seen: set[tuple[object, ...]] = set()
        self._templates: dict[object, Template] = {}
        self._kept: list[Any] = []  # ids are those of living terms only

    def natural(self, name: str) -> Any:
        """An unknown that is at least 0."""
        out = self.domain.integer(name)
        self.told.append(out >= 0)
        return out

    def index(self, name: str, length: Any) -> Any:
        """An unknown in `[0, length)`."""
        out = self.natural(name)
        self.told.append(out < length)
        self.domain.valid.add((out.get_id(), length.get_id()))
        self.domain.note(out)
        return out

    def term(self, e: Expr, extra: Mapping[str, Value] | None = None) -> Any:
        """The value of an expression."""
        return evaluate(e, {**self.env, **(extra or {})}, self.domain)

    def equate(self, known: Sequence[Any], number: int) -> None:
        """Where `known` holds, tell which `first` is one of the `number` met first: over the same range, of the same
        condition. Nothing need be told then of what either of them finds.
        """
        earlier, later = self.domain.firsts[:number], self.domain.firsts[number:]
        if len(earlier) * len(later) > PAIRS:
            return
        for g in later:
            if (f := next((f for f in earlier if self._same(f, g, known)), None)) is not None:
                self.told.append(z3.Implies(z3.And(self.domain.boolean(True), *known), f.witness == g.witness))

    def _same(self, f: First, g: First, known: Sequence[Any]) -> bool:
        """Whether two `first` are proved to be one, without facts over an index."""
        met = len(self.domain.firsts)
        differ = self.domain.template(lambda k: f.predicate(k) != g.predicate(k), 1)
        if len(self.domain.firsts) > met:  # one `first` for every index
            del self.domain.firsts[met:]
            return False
        (k,) = differ.variables
        solver = z3.SimpleSolver(ctx=self.domain.context)
        solver.set("rlimit", RESOURCES)
        inside = z3.And(f.lo <= k, k < f.hi, differ.term)
        solver.add(*self.told, *self.domain.axioms, *known, z3.Or(f.lo != g.lo, f.hi != g.hi, inside))
        return solver.check() == z3.unsat

    # What is assumed.

    def assumptions(self, level: int) -> list[Any]:
        """What may be assumed. Level 0: without facts over indices and the meaning of `first`; level 1: those where
        their tables are read; level 2: those at every index there is.

        The terms of all questions are built by the time that this is asked for.
        """
        while self._level < level:
            self._level += 1
            for _ in range(ROUNDS):
                self._tell(everywhere=self._level == LEVELS - 1)
        return [*self.told, *self.domain.axioms, *(self._instances if level else ())]

    def _fresh(self, *key: object) -> bool:
        known = key in self._seen or len(self._instances) > INSTANCES
        self._seen.add(key)
        return not known

    def _tell(self, everywhere: bool) -> None:
        noted = list(self.domain.indices.values())
        self._kept += noted
        reads = {name: noted if everywhere else list(at.values()) for name, at in self.domain.reads.items()}
        for fact in self._pointwise:
            said = self._template(fact, lambda t, fact=fact: self.at(fact, t), 1)
            for t in _together(reads, said.tables) if said.tables and not everywhere else noted:
                if self._fresh(fact, t.get_id()):
                    self._instances.append(said.at(t))
        for n, step in enumerate(self._steps):
            said = self._template(step, lambda a, b, step=step: self._between(step, a, b), 2)
            for a in reads.get(step.table, []):
                for b in reads.get(step.table, []):
                    if a.get_id() != b.get_id() and self._fresh(n, a.get_id(), b.get_id()):
                        self._instances.append(said.at(a, b))
        for n, f in enumerate(self.domain.firsts):
            w = f.witness
            if self._fresh("first", n):
                self._instances.append(self._between_ends(f))
            if self.searched:
                continue
            said = self._template(("first", n), lambda t, f=f: _none_below(f, t), 1)
            ends = [t for g in self.domain.firsts for t in (g.witness, self.domain.note(g.witness - 1))]
            indices = [self.env[x] for x in ("i", "j") if x in self.env]
            for t in [*_together(reads, said.tables), *ends, *indices] if said.tables and not everywhere else noted:
                if t.get_id() != w.get_id() and self._fresh("below", n, t.get_id()):
                    self._instances.append(said.at(t))

    def _template(self, key: object, say: Callable[..., Any], variables: int) -> Template:
        if key not in self._templates:
            self._templates[key] = self.domain.template(say, variables)
        return self._templates[key]

    def _between_ends(self, f: First) -> Any:
        """A `first` lies between its ends and satisfies its condition, or is the upper end."""
        found = self.domain.boolean(True) if self.searched else f.predicate(f.witness)
        inside = z3.And(f.lo <= f.witness, f.witness <= f.hi, z3.Or(f.witness == f.hi, found))
        return z3.If(f.lo < f.hi, inside, f.witness == f.hi)

    def longest(self, over: str) -> Any:
        """How many rows, columns or entries of the longest free table there are."""
        if over in ("row", "col"):
            return self.env["rows" if over == "row" else "cols"]
        out: Any = self.domain.const(0)
        for p in self.facts.parameters:
            if p.kind == "free":
                length = self.env[p.name].length
                out = z3.If(out < length, length, out)
        return out

    def at(self, fact: Fact, t: Any) -> Any:
        """What a fact says at index `t`, if there is such a row, column or entry in its range."""
        assert fact.over is not None
        name, lo, hi = fact.over
        inside = z3.And(t >= 0, self.term(lo) <= t, t < self.term(hi), self.exists(fact, t))
        lengths = self._lengths(fact)
        # Where the fact speaks of one length, its index needs no clamping: the range has it inside.
        new = {(t.get_id(), length.get_id()) for length in lengths} - self.domain.valid if len(lengths) == 1 else set()
        self.domain.valid |= new
        said = self.term(fact.condition, {name: t})
        self.domain.valid -= new
        return z3.Implies(inside, said)

    def exists(self, fact: Fact, t: Any) -> Any:
        """Whether there is an index `t` for the fact to speak of."""
        return z3.Or(self.domain.boolean(False), *(t < length for length in self._lengths(fact)))

    def _lengths(self, fact: Fact) -> list[Any]:
        if fact.kind in ("row", "col"):
            return [self.env["rows" if fact.kind == "row" else "cols"]]
        return [self.env[name].length for name in fact.tables]

    def _between(self, step: Step, a: Any, b: Any) -> Any:
        """What a step says of the entries a <= b."""
        assert step.fact.over is not None
        table, (_, lo, hi) = self.env[step.table], step.fact.over
        number = [self.term(n) for n in step.number]
        order = z3.And(
            self.term(lo) <= a, a >= 0, a <= b, b <= self.term(hi), b < table.length, self.exists(step.fact, b - 1)
        )
        gap = table.entries(b, *number) - table.entries(a, *number)
        return z3.Implies(order, gap * step.sign + (b - a) * step.gap >= 0)

    # Small worlds: every fact at every index below a bound, so that a model is a real one.

    def ground(self, bound: int) -> list[Any]:
        """Assumptions for lengths up to `bound`, complete."""
        out = [*self.told, *self.domain.axioms]
        out += [self.env[name] <= bound for name in ("rows", "cols")]
        out += [t.length <= bound for t in self.env.values() if isinstance(t, Z3Table)]
        points = [self.domain.const(k) for k in range(-1, bound + 2)]
        out += [self.at(fact, t) for fact in self.facts.facts if fact.over is not None for t in points]
        for f in self.domain.firsts:
            out.append(self._between_ends(f))
            out += [_none_below(f, t) for t in points]
        return [*out, *self.domain.axioms]

    def read(self, model: Any, most: int, entries: int | None = None) -> dict[str, Value] | None:
        """The metadata of a model as values of the NumPy interpreter; None if a length is more than `most`, or that of
        a table more than `entries`."""
        import numpy as np

        def number(term: Any) -> int:
            return model.eval(term, model_completion=True).as_long()

        out: dict[str, Value] = {name: number(self.env[name]) for name in ("rows", "cols")}
        if max(out.values()) > most:
            return None
        for p in self.facts.parameters:
            value = self.env[p.name]
            if not p.is_table:
                out[p.name] = number(value)
                continue
            length = number(value.length)
            if length > (most if entries is None else entries):
                return None
            shape = (length,) if p.entries is None else (length, p.entries)
            values = np.zeros(shape, dtype=np.int64)
            for at in np.ndindex(*shape):
                values[at] = number(value.entries(*(self.domain.const(int(k)) for k in at)))
            out[p.name] = TableValue(values)
        return out


def _none_below(f: First, t: Any) -> Any:
    """Below a `first`, nothing satisfies its condition."""
    return z3.Implies(z3.And(f.lo <= t, t < f.witness), z3.Not(f.predicate(t)))


def _together(reads: Mapping[str, Sequence[Any]], tables: Iterable[str]) -> list[Any]:
    """The indices at which some of the tables is read, each once."""
    return list({t.get_id(): t for name in tables for t in reads.get(name, ())}.values())


def _steps(fact: Fact) -> Iterator[Step]:
    """What a fact says of neighbours in one table: each of its inequalities that has this form."""
    if fact.over is None:
        return
    here = var(fact.over[0])
    after = simplify(add(here, ONE))
    for form in inequalities([fact.condition]):
        atoms = dict(form.terms)
        for atom, c in form.terms:
            if atom.op != "lookup" or atom.args[0] != after:
                continue
            before = lookup(atom.name, here, *atom.args[1:])
            numbers = all(n.op == "const" for n in atom.args[1:])
            if numbers and len(atoms) == 2 and atoms.get(before) == -c:
                # c * (t[x + 1] - t[x]) + constant >= 0, divided by |c| and rounded down: integers.
                yield Step(fact, atom.name, atom.args[1:], 1 if c > 0 else -1, form.constant // abs(c))


def _is_neighbours(fact: Fact) -> bool:
    """Whether its steps say all that the fact says."""
    steps = len(list(_steps(fact)))
    return steps > 0 and steps == len(list(inequalities([fact.condition])))


def _reads_first(fact: Fact) -> bool:
    return any(t.op == "first" for t in walk(fact.condition))
