"""Entries that a rule reads and a free table must have: facts that nobody declares.

    clause  history <= i and document[i] == document[j] and j <= i    of a Region [lo, hi)

    for i in [lo, hi):    i < document_length,  unless  history > i
    for j in [0, cols):   j < document_length,  unless  j > hi - 1 (no row of the Region is at or past j)

A look-up outside a table reads the nearest entry. At the ends of a table that is often meant (`f[i - 1]` at row 0);
past the end of a free table, which alone has a length of the caller's choice, the table is too short. So these are
checked at run time like facts, on the rows and columns where the entry may matter: where the other literals of the
clause hold that speak of that row (column) alone, and those that speak of both may hold for some column (row). They are
not assumed at compile time: proofs know that the nearest entry is read. An index of both a row and a column is not
checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from cmir.analysis.linear import comparison, from_linear, linear, negate, simplify
from cmir.dialects.expr import (
    BINDERS,
    COLS,
    TRUE,
    ZERO,
    Expr,
    I,
    J,
    add,
    and_,
    const,
    depends,
    free_names,
    le,
    lt,
    make,
    or_,
    show,
    substitute,
    var,
    walk,
)
from cmir.dialects.maskspec import RegionOp, SpecOp, length_name

if TYPE_CHECKING:
    from cmir.analysis.facts import Fact, Facts

IS_AN_ENTRY = " is an entry of "
"""In the text of every such fact, and of no other."""

Kind = Literal["scalar", "row", "col"]
Place = tuple[str, tuple[Expr, ...], Kind, RegionOp]


def reads_of(spec: SpecOp) -> tuple[Fact, ...]:
    """A fact for every entry of a free table that a clause or a row guard reads at a scalar, a row or a column.

    The clauses are those of the normal form; of a rule that has none yet there is nothing to say.
    """
    from cmir.analysis.facts import Fact

    tables = {p.name for p in spec.parameters if p.kind == "free"}
    if not tables:
        return ()
    where: dict[Place, list[Expr]] = {}
    for region in spec.regions_of_rows:
        for end in (region.lo.data, region.hi.data):
            for e in _lookups(end, tables):
                where.setdefault((e.name, e.args, "scalar", region), []).append(TRUE)
        for clause in region.clauses:
            for literal in clause.literals:
                others = tuple(x for x in clause.literals if x is not literal)
                for e, chosen in _guarded(literal, tables, ()):
                    names = free_names(e.args[0])
                    if {"i", "j"} <= names:
                        continue
                    kind: Kind = "row" if "i" in names else "col" if "j" in names else "scalar"
                    matters = and_(*(_alone(x, kind, region) for x in (*others, *chosen)))
                    where.setdefault((e.name, e.args, kind, region), []).append(simplify(matters))
    facts: list[Fact] = []
    for (table, args, kind, region), conditions in where.items():
        lo, hi = region.lo.data, region.hi.data
        inside = lt(args[0], var(length_name(table)))
        empty = le(hi, lo) if kind != "row" else make("bool", data=0)
        fact = simplify(or_(empty, negate(or_(*conditions)), inside))
        if fact == TRUE or (args[0].op == "const" and args[0].value <= 0):  # a free table has an entry
            continue
        over = {"scalar": None, "row": ("i", lo, hi), "col": ("j", ZERO, COLS)}[kind]
        text = f"{show(make('lookup', *args, data=table))}{IS_AN_ENTRY}{table}"
        found = Fact(fact, over, text, kind)
        if found not in facts:
            facts.append(found)
    return tuple(facts)


def _lookups(e: Expr, tables: set[str]) -> Iterator[Expr]:
    return (t for t in walk(e) if t.op == "lookup" and t.name in tables)


def _guarded(e: Expr, tables: set[str], chosen: tuple[Expr, ...]) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """The look-ups of free tables in `e`, each with the conditions of the selects that choose it.

    What is read at an index that a quantifier or a search binds is left out.
    """
    if e.op == "lookup" and e.name in tables:
        yield e, chosen
    if e.op == "select":
        condition, a, b = e.args
        yield from _guarded(condition, tables, chosen)
        yield from _guarded(a, tables, (*chosen, condition))
        yield from _guarded(b, tables, (*chosen, negate(condition)))
        return
    for argument in e.args[:2] if e.op in BINDERS else e.args:
        yield from _guarded(argument, tables, chosen)


def _alone(literal: Expr, kind: Kind, region: RegionOp) -> Expr:
    """What a literal says of a row (column, scalars) alone: whether it may hold for some index of the others."""
    lo, last = region.lo.data, add(region.hi.data, const(-1))
    if kind != "row" and depends(literal, "i"):
        literal = _for_some(literal, I, lo, last)
    if kind != "col" and depends(literal, "j"):
        literal = _for_some(literal, J, ZERO, add(COLS, const(-1)))
    return literal


def _for_some(literal: Expr, index: Expr, first: Expr, last: Expr) -> Expr:
    """Whether a comparison may hold for some index from `first` to `last`: at the end that suits it best."""
    if literal.op not in ("lt", "le"):
        return TRUE
    gap = linear(literal.args[1]) - linear(literal.args[0])
    slope, rest = gap.coefficient(index), from_linear(gap.without(index))
    if not slope or depends(rest, index.name):
        return TRUE
    return substitute(comparison(literal.op, gap), {index: last if slope > 0 else first})


def with_reads(facts: Facts, spec: SpecOp) -> Facts:
    """The facts of a spec, and after them the entries that its rule reads of free tables: all that is checked."""
    return replace(facts, facts=(*facts.facts, *reads_of(spec)))


def is_read(text: str) -> bool:
    """Whether a fact's text is that of an entry that must be there, packed or not."""
    return IS_AN_ENTRY in text
