"""Disjunctive normal form of a condition: a list of clauses, each a conjunction of comparisons.

    p and (q or r)         ->  (p and q) or (p and r)
    not (a == b)           ->  a < b or b < a
    abs(i - j) <= w        ->  i - j <= w and j - i <= w
    select(c, a, b) < j    ->  (c and a < j) or (not c and b < j)

`min`, `max` and `select` are taken apart where they read the column, since no interval ends at them. Clauses that
contradict themselves go, literals that another literal of the clause implies go, and so do clauses that are stronger
than another.
"""

from __future__ import annotations

from collections.abc import Sequence

from cmir.analysis.linear import comparison, linear, negate, simplify
from cmir.dialects.expr import Expr, and_, depends, lt, make, or_, substitute, walk

Clause = tuple[Expr, ...]


class TooManyClauses(Exception):
    """The normal form has more clauses than the cap allows."""


def clauses_of(e: Expr, cap: int) -> list[Clause]:
    """The clauses of `e`, simplified; TooManyClauses when more than `cap` appear on the way."""
    return _prune(_clauses(simplify(e), cap))


def _clauses(e: Expr, cap: int) -> list[Clause]:
    match e.op:
        case "bool":
            return [()] if e.value else []
        case "or":
            out = [c for a in e.args for c in _clauses(a, cap)]
        case "and":
            out: list[Clause] = [()]
            for a in e.args:
                options = _clauses(a, cap)
                out = [c for left in out for right in options if (c := _conjoin(left, right)) is not None]
                _check(out, cap)
        case "not":
            inner = e.args[0]
            if inner.op == "eq":
                return _clauses(or_(lt(*inner.args), lt(*inner.args[::-1])), cap)
            return _clauses(negate(inner), cap)
        case _:
            apart = _take_apart(e)
            if apart is None:
                return [(e,)]
            out = _clauses(simplify(apart), cap)
    return _check(out, cap)


def _check(clauses: list[Clause], cap: int) -> list[Clause]:
    if len(clauses) > cap:
        raise TooManyClauses
    return clauses


def _take_apart(e: Expr) -> Expr | None:
    """A comparison with a select, min or max in it as a condition without; None if it may stay."""
    term = next((t for t in walk(e) if t.op == "select" and (depends(t, "j") or _shallow(e, t))), None)
    if term is not None:
        cond, a, b = term.args
        return or_(and_(cond, substitute(e, {term: a})), and_(negate(cond), substitute(e, {term: b})))
    if e.op == "eq" and any(t.op in ("min", "max") and depends(t, "j") for t in walk(e)):
        return and_(make("le", *e.args), make("le", *e.args[::-1]))
    if e.op == "eq":
        return None
    gap = linear(e.args[1]) - linear(e.args[0])  # e is gap >= 0 (le) or gap > 0 (lt)
    for atom, c in gap.terms:
        if atom.op not in ("min", "max"):
            continue
        conjunctive = (atom.op == "min") == (c > 0)
        if conjunctive or depends(atom, "j"):
            parts = [comparison(e.op, gap.without(atom) + linear(a).scaled(c)) for a in atom.args]
            return and_(*parts) if conjunctive else or_(*parts)
    return None


def _shallow(e: Expr, term: Expr) -> bool:
    """Whether a select of the row alone is one of few: taking a long chain apart would multiply clauses for nothing."""
    return depends(term, "i") and sum(t.op == "select" for t in walk(e)) <= 3


def _conjoin(a: Clause, b: Clause) -> Clause | None:
    """The conjunction without implied literals; None when it contradicts itself.

    Each literal bounds one linear form from below (or above): literals on the same form are intervals that are
    intersected.
    """
    ranges: dict[tuple[tuple[Expr, int], ...], tuple[float, float]] = {}
    literals = list(dict.fromkeys((*a, *b)))
    for literal in literals:
        for key, lo, hi in _ranges(literal):
            old = ranges.get(key, (float("-inf"), float("inf")))
            ranges[key] = (max(old[0], lo), min(old[1], hi))
            if ranges[key][0] > ranges[key][1]:
                return None
    kept: list[Expr] = []
    for literal in literals:
        others = [
            r
            for x in literals
            if x != literal and (x in kept or literals.index(x) > literals.index(literal))
            for r in _ranges(x)
        ]
        mine = _ranges(literal)
        if mine and all(any(k == key and lo2 >= lo and hi2 <= hi for k, lo2, hi2 in others) for key, lo, hi in mine):
            continue
        kept.append(literal)
    return tuple(kept)


def _ranges(literal: Expr) -> list[tuple[tuple[tuple[Expr, int], ...], float, float]]:
    """A comparison as (form, least, greatest), the form with its leading coefficient positive."""
    if literal.op not in ("lt", "le", "eq"):
        return []
    gap = linear(literal.args[1]) - linear(literal.args[0])
    terms = tuple(sorted(gap.terms, key=lambda t: str(t[0])))
    if not terms:
        return []
    sign = 1 if terms[0][1] > 0 else -1
    key = tuple((a, c * sign) for a, c in terms)
    edge = -gap.constant + (literal.op == "lt")  # sum(terms) >= edge
    if literal.op == "eq":
        return [(key, edge * sign, edge * sign)]
    return [(key, edge, float("inf")) if sign > 0 else (key, float("-inf"), -edge)]


def _prune(clauses: Sequence[Clause]) -> list[Clause]:
    """Drop repeats and every clause that says more than another."""
    sets = [frozenset(c) for c in clauses]
    keep: list[Clause] = []
    for k, c in enumerate(clauses):
        if not any((s < sets[k]) or (s == sets[k] and n < k) for n, s in enumerate(sets)):
            keep.append(c)
    return keep
