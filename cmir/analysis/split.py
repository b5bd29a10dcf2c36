"""Clauses that repeat: a clause that a remainder keeps from being one interval is a few that are, one per quotient.

    abs(y_i - j floordiv W) <= 1 and j mod W <= x        for j:  over q = j floordiv W, from y_i - 1 to y_i + 1
        [W * (y_i - 1), W * (y_i - 1) + x + 1),  [W * y_i, W * y_i + x + 1),  [W * (y_i + 1), W * (y_i + 1) + x + 1)
    abs(i - j) <= w and (i - j) mod d == 0               for j:  i - d * t   for t from -w floordiv d to w floordiv d

What the other literals say of the index bounds the quotient, which moves one way along it. If it provably takes at most
N values, whatever the metadata, the clause is the union of N clauses with the quotient pinned. N is a slot count, so
the least that can be proved is taken; where there is none the remainder stays what it is, a residual.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.linear import linear, simplify
from cmir.analysis.monotonicity import direction
from cmir.analysis.solve import Solution, solve
from cmir.dialects.expr import (
    ONE,
    ZERO,
    Expr,
    add,
    and_,
    const,
    depends,
    eq,
    le,
    make,
    maximum,
    minimum,
    select,
    size,
    sub,
    substitute,
    var,
    walk,
)

MOST = 64  # clauses that one clause is split into


def solve_all(
    literals: tuple[Expr, ...], index: str, lo: Expr, hi: Expr, entailment: Entailment, most: int = MOST
) -> list[Solution]:
    """Solutions of a conjunction for `index` within `[lo, hi)`, whose union it is: one, unless a remainder repeats.

    `entailment` asks about the other index, in the range that the solutions are for.
    """
    whole = solve(literals, index, lo, hi, entailment.facts)
    shape = index, most, _shape(literals)
    if shape in entailment.unsplit:
        return [whole]
    for quotient in _quotients(whole, index):
        values = _values(whole, quotient, index, lo, hi, entailment, most)
        if values is None:
            continue
        least, count = values
        out: list[Solution] = []
        for t in range(count):
            pin = eq(quotient, simplify(add(least, const(t))))
            if pin in literals:  # it did not help
                return [whole]
            out += solve_all((*literals, pin), index, lo, hi, entailment, most // count)
            if any(s.residual for s in out):  # as of the other values: they differ by a constant
                break
        else:
            return out
    if whole.residual:
        entailment.unsplit.add(shape)
    return [whole]


def _shape(literals: tuple[Expr, ...]) -> frozenset[tuple[str, frozenset[tuple[Expr, int]]]]:
    """The literals without their constants: what could not be split once is not tried again for others of a grid."""
    gaps = ((t.op, linear(t.args[1]) - linear(t.args[0])) for t in literals if len(t.args) == 2)
    return frozenset((op, gap.key) for op, gap in gaps)


def _quotients(whole: Solution, index: str) -> list[Expr]:
    """`u floordiv k` of every `u mod k` in the residual."""
    found = dict.fromkeys(t for r in whole.residual for t in walk(r) if t.op == "mod" and depends(t, index))
    return [simplify(make("floordiv", *t.args)) for t in found]


def _values(
    whole: Solution, quotient: Expr, index: str, lo: Expr, hi: Expr, entailment: Entailment, most: int
) -> tuple[Expr, int] | None:
    """The least value of the quotient where the solved literals hold, and how many there are from it on at most."""
    way = direction(quotient, index, entailment.facts, lo, hi)
    if way not in ("up", "down"):
        return None

    first = _at(quotient, index, way, whole.lowers, ZERO)
    last = _at(quotient, index, way, whole.uppers, ONE)
    low, high = (first, last) if way == "up" else (last, first)
    return _fewest([*low, maximum(*low)], [*high, minimum(*high)], and_(*whole.conditions), entailment, most)


def _at(quotient: Expr, index: str, way: Literal["up", "down"], ends: Iterable[Expr], less: Expr) -> list[Expr]:
    """The values of a quotient that moves one way at each of `ends - less`: extrema stay outside the division."""

    def at(e: Expr) -> Expr:
        match e.op:
            case "min" | "max":
                return (minimum if (e.op == "min") == (way == "up") else maximum)(*map(at, e.args))
            case "select":
                return select(e.args[0], *map(at, e.args[1:]))
            case _:
                return simplify(substitute(quotient, {var(index): sub(e, less)}))

    return list(dict.fromkeys(simplify(at(e)) for e in ends))


def _fewest(
    low: Sequence[Expr], high: Sequence[Expr], given: Expr, entailment: Entailment, most: int
) -> tuple[Expr, int] | None:
    """Of `low`, what is never further below all of `high` than a number: it, and how many values lie between."""
    import numpy as np

    holds = entailment.evaluate_samples(given).astype(bool)

    def sampled(e: Expr) -> int:
        return int(np.max(entailment.evaluate_samples(e)[holds], initial=-1))

    choices: list[tuple[int, int, Expr, Expr]] = []
    for a in dict.fromkeys(low):
        for b in dict.fromkeys(high):
            gap = simplify(sub(b, a))
            choices.append((max(sampled(gap), 0) + 1, size(a) + size(b), a, gap))
    for count, _, a, gap in sorted(choices, key=lambda c: c[:2]):
        if count <= most and entailment.prove(implies(given, le(gap, const(count - 1)))).proved:
            return a, count
    return None
