"""A traced rule, cut into Regions where it compares the row with one number for the whole sequence.

    where(i < n, j < n, j <= i)    ->    rows [0, n): j < n        rows [n, rows): j <= i

A comparison of `i` with an expression that has neither `i` nor `j` is true on one side of a place and false on the
other. Between neighbouring places each such comparison has one value, and goes away. The Regions are disjoint and cover
all rows, whatever the places are, if their order is known: places that differ by a number are in order; of others, only
those that are in order with the first one are taken, the rest stay in the rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from cmir.analysis.linear import difference
from cmir.dialects import expr as ex
from cmir.dialects.expr import ROWS, ZERO, depends, var
from cmir.frontend import functions
from cmir.frontend.source import written_at
from cmir.frontend.terms import Term

ROW = var("i")
MOST = 4
"""Places at which one rule is cut; of more, none is taken."""


class Cut(NamedTuple):
    """A Region: rows from `lo` (None: the first) to `hi` (None: the last), and what they see."""

    lo: Term | None
    hi: Term | None
    rule: Term | bool


class _Comparison(NamedTuple):
    """i < place, or i >= place."""

    place: Term
    below: bool


def cut(rule: Term | bool) -> list[Cut]:
    """The rule as Regions, in the order of their rows; one for all rows where there is nothing to cut at."""
    found = {} if isinstance(rule, bool) else _comparisons(rule)
    always = {term: value for term, comparison in found.items() if (value := _everywhere(comparison)) is not None}
    found = {term: comparison for term, comparison in found.items() if term not in always}
    places = _in_order([comparison.place for comparison in found.values()])
    if len(places) > MOST:
        places = []
    bounds = [None, *places, None]
    cuts: list[Cut] = []
    for number, (lo, hi) in enumerate(pairwise(bounds)):
        known = {
            term: comparison.below == (number <= at)
            for term, comparison in found.items()
            for at, place in enumerate(places)
            if difference(place.expr, comparison.place.expr) == 0
        }
        cuts.append(Cut(lo, hi, _decided(rule, {**always, **known}, {})))
    return cuts


def _comparisons(rule: Term) -> dict[Term, _Comparison]:
    """Comparisons of the row with one number, among the terms of a rule, in the order in which they are met."""
    found: dict[Term, _Comparison] = {}
    met: set[Term] = set()
    todo = [rule]
    while todo:
        term = todo.pop()
        if term in met:
            continue
        met.add(term)
        comparison = _comparison(term) if term.op in ("lt", "le") else None
        if comparison is None:
            todo.extend(reversed(term.operands))
        else:
            found[term] = comparison
    return found


def _comparison(term: Term) -> _Comparison | None:
    """`a < b` or `a <= b` as a place, if `i` stands on one side, alone but for sums."""
    a, b = term.operands
    if any(depends(side.expr, "j") for side in (a, b)) or depends(a.expr, "i") == depends(b.expr, "i"):
        return None
    strict, left = term.op == "lt", depends(a.expr, "i")
    side, rest = (a, b) if left else (b, a)
    while side.expr != ROW:
        if side.op not in ("add", "sub"):
            return None
        x, y = side.operands
        if depends(x.expr, "i") == depends(y.expr, "i"):
            return None
        if depends(x.expr, "i"):  # x + y < rest is x < rest - y
            side, rest = x, rest - y if side.op == "add" else rest + y
        elif side.op == "add":
            side, rest = y, rest - x
        else:  # x - y < rest is x - rest < y
            side, rest, left = y, x - rest, not left
    # i < rest, i <= rest, rest < i or rest <= i
    return _Comparison(rest if strict == left else rest + 1, left)


def _everywhere(comparison: _Comparison) -> bool | None:
    """The value of a comparison that all rows share: its place is before the first, or after the last."""
    before, after = (difference(comparison.place.expr, end) for end in (ZERO, ROWS))
    if before is not None and before <= 0:
        return not comparison.below
    return comparison.below if after is not None and after >= 0 else None


def _in_order(places: list[Term]) -> list[Term]:
    """Those whose distance from the first is a number, rising, each once."""
    at: dict[int, Term] = {}
    for place in places:
        if (distance := difference(place.expr, places[0].expr)) is not None:
            at.setdefault(distance, place)
    return [at[distance] for distance in sorted(at)]


def _decided(rule: Term | bool, known: Mapping[Term, bool], done: dict[Term, Term | bool]) -> Term | bool:
    """The rule where those comparisons have those values."""
    if isinstance(rule, bool) or not known:
        return rule
    todo = [rule]
    while todo:
        term = todo[-1]
        missing = [x for x in term.operands if x not in done and x not in known]
        if term in known:
            done[todo.pop()] = known[term]
        elif missing:
            todo.extend(missing)
        else:
            operands = [known[x] if x in known else done[x] for x in term.operands]
            same = all(new is old for new, old in zip(operands, term.operands, strict=True))
            with written_at(term.location):
                done[todo.pop()] = term if same else _again(term, operands)
    return done[rule]


def _again(term: Term, operands: list[Any]) -> Any:
    """The term's operator on other operands; conditions among them may be known."""
    match term.op:
        case "xor":  # p is not true
            return ~operands[0] if isinstance(operands[0], Term) else not operands[0]
        case "select":
            p, a, b = operands
            return functions.where(term.owner, p, a, b) if isinstance(p, Term) else a if p else b
        case "min" | "max":
            return functions.extremum(term.owner, term.op, operands)
        case "lookup":
            return Term(term.owner, "lookup", ex.lookup(term.expr.name, *(x.expr for x in operands)), tuple(operands))
        case _:
            return _OPERATORS[term.op](*operands)


_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "lt", "le", "eq", "ne")
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in _ARITHMETIC},
    **{name: getattr(operator, f"{name}_") for name in ("and", "or")},
}
