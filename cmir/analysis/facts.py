"""The facts of a spec, statics folded: what may be assumed of the metadata at compile time and is checked at run time.

A fact over `i` (`j`) speaks of the rows (columns) that exist, one with an index of its own of the entries that exist of
the longest free table it reads there: those are what is checked at run time, so they are all that may be assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from xdsl.ir import Operation

from cmir.analysis.effort import Effort
from cmir.analysis.linear import difference, simplify
from cmir.analysis.rules import constant_tables, fold_statics
from cmir.dialects.expr import COLS, ROWS, TRUE, ZERO, Expr, add, and_, const, depends, le, lookup, show, var, walk
from cmir.dialects.maskspec import AssumeOp, ContiguousOp, Parameter, SpecOp, length_name
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    from cmir.analysis.sampling import Draw


@dataclass(frozen=True)
class Fact:
    """`condition` holds (for every `over[0]` in the half-open range `over[1:]` that is a row, column or entry).

    A fact over entries is about `tables`, those it reads at its index: the longest says which entries there are.
    """

    condition: Expr
    over: tuple[str, Expr, Expr] | None
    text: str
    kind: Literal["scalar", "row", "col", "entry"]
    tables: tuple[str, ...] = ()
    source: Operation | None = field(default=None, compare=False, repr=False)
    """The op that declares it."""


@dataclass(frozen=True)
class Monotone:
    """Entries of `table` (each integer of them, if they hold several) never fall from `lo` up to `hi` (exclusive)."""

    table: str
    lo: Expr
    hi: Expr


@dataclass(frozen=True)
class Facts:
    """What a spec declares. `facts` holds every assumption, the monotone tables among them as neighbour comparisons."""

    name: str
    parameters: tuple[Parameter, ...]  # statics left out
    facts: tuple[Fact, ...]
    monotone: tuple[Monotone, ...]
    constants: Mapping[str, tuple[int, tuple[int, ...]]]
    scale: int = 0  # the largest constant in the clauses: samples must be large enough to tell it from none
    effort: Effort = field(default_factory=Effort, compare=False)
    """What is left of the work that the pass that asked for these facts may do."""

    def __hash__(self) -> int:
        return hash((self.name, self.parameters, self.facts))

    def spelled(self, words: Callable[[str], str]) -> Facts:
        """The same, where `words` spells their texts in another language."""
        return replace(self, facts=tuple(replace(fact, text=words(fact.text)) for fact in self.facts))

    def kind(self, name: str) -> str:
        return next(p.kind for p in self.parameters if p.name == name)

    def entries(self, table: str) -> int | None:
        """How many integers an entry holds; None: it is one."""
        return next(p.entries for p in self.parameters if p.name == table)

    def length(self, table: str) -> Expr:
        """The length of a table; that of a free table has a name of its own."""
        return _length(table, self.kind(table))

    @cached_property
    def samples(self) -> tuple[Draw, ...]:
        """Metadata that satisfy the facts, drawn with a fixed seed: the cheap way to refute a claim."""
        from cmir.analysis.sampling import sample

        return sample(self)


def facts_of(spec: SpecOp) -> Facts:
    facts: list[Fact] = []
    monotone: list[Monotone] = []
    parameters = tuple(p for p in spec.parameters if p.kind != "static")
    kinds = {p.name: p.kind for p in parameters}
    entries = {p.name: [()] if p.entries is None else [(const(t),) for t in range(p.entries)] for p in parameters}
    for op in spec.facts:
        if isinstance(op, AssumeOp):
            stated = fold_statics(op.condition.data, spec, op)
            condition, over = simplify(stated), op.over
            if op.text is not None:  # one that the compiler wrote, with the words of the user's
                if condition != TRUE:
                    facts.append(Fact(condition, over, op.text.data, _kind(over), _tables(stated, over), op))
                continue
            if over is not None:
                lo, hi = (simplify(fold_statics(e, spec, op)) for e in over[1:])
                over = over[0], lo, hi
            # Conjuncts are facts of their own: a status word then names the one that broke.
            for part in condition.args if condition.op == "and" else (condition,):
                if part != TRUE:
                    facts.append(Fact(part, over, _text(part, over), _kind(over), _tables(stated, over), op))
        else:
            table = op.table.data
            lo, hi = op.over or (ZERO, _length(table, kinds[table]))
            m = Monotone(table, *(simplify(fold_statics(e, spec, op)) for e in (lo, hi)))
            monotone.append(m)
            index = {"row": "i", "col": "j"}.get(kinds[table], "entry")
            here = var(index)
            over = (index, m.lo, simplify(add(m.hi, const(-1))))
            text = f"{table} {op.name.removeprefix('maskspec.')}" + (
                "" if op.over is None else f" over [{show(m.lo)}, {show(m.hi)})"
            )
            for t in entries[table]:  # every integer of an entry against its own of the next entry
                rises = le(lookup(table, here, *t), lookup(table, add(here, const(1)), *t))
                name = text + (f", number {t[0].value}" if t else "")
                facts.append(Fact(rises, over, name, _kind(over), _tables(rises, over), op))
                if isinstance(op, ContiguousOp):
                    close = le(lookup(table, add(here, const(1)), *t), add(lookup(table, here, *t), const(1)))
                    facts.append(Fact(close, over, f"{name}, no id left out", _kind(over), _tables(close, over), op))
    numbers = (
        abs(t.value) for r in spec.regions_of_rows for c in r.clauses for t in walk(c.condition.data) if t.op == "const"
    )
    return Facts(
        spec.sym_name.data, parameters, tuple(facts), tuple(monotone), constant_tables(spec), max(numbers, default=0)
    )


def _length(table: str, kind: str) -> Expr:
    return {"row": ROWS, "col": COLS}.get(kind, var(length_name(table)))


def _kind(over: tuple[str, Expr, Expr] | None) -> Literal["scalar", "row", "col", "entry"]:
    return "scalar" if over is None else {"i": "row", "j": "col"}.get(over[0], "entry")  # pyright: ignore[reportReturnType]


def _tables(condition: Expr, over: tuple[str, Expr, Expr] | None) -> tuple[str, ...]:
    """The tables that a fact over entries reads at its index."""
    if _kind(over) != "entry" or over is None:
        return ()
    read = (t.name for t in walk(condition) if t.op == "lookup" and depends(t.args[0], over[0]))
    return tuple(dict.fromkeys(read))


def _text(condition: Expr, over: tuple[str, Expr, Expr] | None) -> str:
    if over is None or over[1:] in ((ZERO, ROWS), (ZERO, COLS)):
        return show(condition)
    return f"{show(condition)} for {over[0]} in [{show(over[1])}, {show(over[2])})"


def first_violation(facts: Facts, env: Mapping[str, Value]) -> tuple[Fact, int | None] | None:
    """The first fact that the metadata break, with the row, column or entry where they do; None if all hold.

    `env` maps `rows`, `cols` and every scalar to an integer and every table to a `TableValue`.
    """
    import numpy as np

    domain = NumpyDomain()
    full = {**env, **{length_name(p.name): len(env[p.name].values) for p in facts.parameters if p.kind == "free"}}
    for fact in facts.facts:
        if fact.over is None:
            if not np.all(evaluate(fact.condition, full, domain)):
                return fact, None
            continue
        name, lo, hi = fact.over
        end = min(int(evaluate(hi, full, domain)), _extent(fact, full))
        index = np.arange(max(int(evaluate(lo, full, domain)), 0), end, dtype=np.int64)
        holds = np.broadcast_to(evaluate(fact.condition, {**full, name: index}, domain), index.shape)
        if not holds.all():
            return fact, int(index[int(np.argmin(holds))])
    return None


def _extent(fact: Fact, env: Mapping[str, Value]) -> int:
    """How many rows, columns or entries there are for a fact to speak of, as far as its tables are known: metadata are
    drawn a table at a time, and looked at in between."""
    if fact.kind in ("row", "col"):
        return int(env["rows" if fact.kind == "row" else "cols"])
    return max((len(env[table].values) for table in fact.tables if table in env), default=0)


def conjuncts(e: Expr) -> tuple[Expr, ...]:
    return e.args if e.op == "and" else (e,)


def in_range(index: Expr, lo: Expr, hi: Expr) -> Expr:
    return and_(le(lo, index), le(add(index, const(1)), hi))


def covers(outer: tuple[Expr, Expr], lo: Expr, hi: Expr, length: Expr) -> bool:
    """Whether one range of indices contains another, of which only the part in `[0, length)` counts; by form alone."""
    # lo is at least every operand of a max and at least 0, hi at most every operand of a min and at most the length.
    lows = (ZERO, *(lo.args if lo.op == "max" else (lo,)))
    highs = (length, *(hi.args if hi.op == "min" else (hi,)))
    return any(_at_most(outer[0], e) for e in lows) and any(_at_most(e, outer[1]) for e in highs)


def _at_most(a: Expr, b: Expr) -> bool:
    gap = difference(b, a)
    return gap is not None and gap >= 0
