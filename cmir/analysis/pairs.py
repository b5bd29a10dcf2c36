"""The rule of a pair as a kernel should ask it: what is of the row or of the column alone apart, and as few comparisons
of the two as do.

    i <= j + 1 and .. or i <= j + 2 and ..          ->    i - j <= 1 and .. or i - j <= 2 and ..
    -3 <= x and x <= 3                              ->    |x| <= 3
    x == 2 or x == -2 or x == 3 or x == -3          ->    2 <= |x| and |x| <= 3
    a and b or a and c                              ->    a and (b or c)
    |x| <= 3 and a or |x| <= 2 and b or ..          ->    |x| <= select(a, 3, select(b, 2, ..))

What is of one index alone is computed once for a line of pairs. Clauses of a grid compare the same row's and column's
value again and again, shifted by constants: then the difference of the two is one *number* of the pair, and what is
left are constants that it is compared with. Of a circle, those are half its width at every distance: one number within
a bound that another number chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cmir.analysis.linear import Linear, from_linear, linear
from cmir.dialects.expr import (
    RESERVED,
    TRUE,
    Expr,
    and_,
    const,
    depends,
    eq,
    le,
    make,
    maximum,
    or_,
    select,
    sub,
    walk,
)

Clause = tuple[Expr, ...]

WIDTHS = 3
"""So many clauses, each with another bound of one number, become one comparison with a chosen bound."""


def any_of(conditions: Sequence[Expr]) -> Expr:
    """The disjunction of some conjunctions of literals."""
    clauses = [_literals(_apart(condition)) for condition in conditions]
    numbers = Counter(gap[0] for x in {x for clause in clauses for x in clause} if (gap := _gap(x)) is not None)
    return _factored([_within(tuple(_by_number(x, numbers) for x in clause)) for clause in clauses])


def _literals(condition: Expr) -> Clause:
    return condition.args if condition.op == "and" else () if condition == TRUE else (condition,)


def _apart(condition: Expr) -> Expr:
    """The same with comparisons that have all of the row on one side, and all else, constants too, on the other."""
    if condition.op == "and":
        return and_(*map(_apart, condition.args))
    sides = _sides(condition)
    if sides is None:
        return condition
    row, column, constant = sides
    # row + column + constant >= 0, with the row's side written without a leading minus
    if all(c < 0 for _, c in row.terms):
        return make(condition.op, from_linear(row.scaled(-1)), from_linear(column.plus(Linear((), constant))))
    return make(condition.op, from_linear(column.scaled(-1).plus(Linear((), -constant))), from_linear(row))


def _sides(condition: Expr) -> tuple[Linear, Linear, int] | None:
    """The right side of a comparison less its left one: what reads the row, what does not, and the constant.

    None for what is no comparison of a row with a column.
    """
    if condition.op not in ("lt", "le", "eq"):
        return None
    gap = linear(condition.args[1]) - linear(condition.args[0])
    row = tuple((a, c) for a, c in gap.terms if depends(a, "i"))
    column = tuple((a, c) for a, c in gap.terms if not depends(a, "i"))
    if not row or not any(depends(a, "j") for a, _ in column) or any(depends(a, "j") for a, _ in row):
        return None
    return Linear(row, 0), Linear(column, 0), gap.constant


def _gap(condition: Expr) -> tuple[Expr, Expr] | None:
    """The number of a comparison, row less column, and the comparison of it with a constant: `<=` or `==`.

    None where there are metadata: kernels know those exactly, and sums of them less so (`cmir.lowering.saturation`).
    """
    sides = _sides(condition)
    if sides is None:
        return None
    row, column, constant = sides
    atoms = [e for a, _ in row.terms + column.terms for e in walk(a)]
    if any(e.op == "lookup" or (e.op == "var" and e.name not in RESERVED) for e in atoms):
        return None
    rising = row.terms[0][1] > 0
    number = _difference(row, column) if rising else _difference(row.scaled(-1), column.scaled(-1))
    if abs(constant) > 2**30:  # the bound is to fit into 32 bits whichever way it is written
        return None
    # rising: number + constant >= 0, > 0 or == 0; else: constant - number
    strict = condition.op == "lt"
    if condition.op == "eq":
        return number, eq(number, const(-constant if rising else constant))
    if rising:
        return number, le(const(strict - constant), number)
    return number, le(number, const(constant - strict))


def _difference(row: Linear, column: Linear) -> Expr:
    return sub(from_linear(row), from_linear(column.scaled(-1)))


def _by_number(condition: Expr, numbers: Counter[Expr]) -> Expr:
    """A comparison by its number, if others have that too."""
    gap = _gap(condition)
    return condition if gap is None or numbers[gap[0]] < 2 else gap[1]


def _within(clause: Clause) -> Clause:
    """`-c <= x` and `x <= c` as `|x| <= c`."""
    out = list(clause)
    for low in clause:
        if low.op == "le" and low.args[0].op == "const" and low.args[0].value <= 0:
            high = le(low.args[1], const(-low.args[0].value))
            if high in out and low in out:
                out[out.index(low)] = le(_size(low.args[1]), high.args[1])
                out.remove(high)
    return tuple(out)


def _size(number: Expr) -> Expr:
    return maximum(number, make("neg", number))


def _factored(clauses: Sequence[Clause]) -> Expr:
    """The disjunction of some conjunctions, what several have in common asked once: the literal that most of them share
    first."""
    if () in clauses:
        return TRUE
    if (points := _points(clauses)) is not None:
        return points
    counts = Counter(literal for clause in clauses for literal in dict.fromkeys(clause))
    shared, count = counts.most_common(1)[0]
    if count < len(clauses) and (chosen := _chosen(clauses)) is not None:
        return chosen
    if count == 1:
        return or_(*(and_(*clause) for clause in clauses))
    inside = [tuple(e for e in clause if e != shared) for clause in clauses if shared in clause]
    outside = [clause for clause in clauses if shared not in clause]
    parts = [and_(shared, _factored(inside)), *([_factored(outside)] if outside else [])]
    return or_(*parts)


def _points(clauses: Sequence[Clause]) -> Expr | None:
    """Clauses that are each `x == constant`, of one x: by runs of constants, of |x| if -c comes with every c."""
    literals = {clause[0] for clause in clauses if len(clause) == 1}
    if len(clauses) == 1 or not all(len(clause) == 1 and _is_a_point(clause[0]) for clause in clauses):
        return None
    number = clauses[0][0].args[0]
    if any(x.args[0] != number for x in literals):
        return None
    points = {x.args[1].value for x in literals}
    symmetric = len(points) > 1 and points == {-c for c in points}
    if symmetric:
        number, points = _size(number), {abs(c) for c in points}
    runs: list[Expr] = []
    for first in sorted(c for c in points if c - 1 not in points):
        last = next(c for c in range(first, first + len(points)) if c + 1 not in points)
        above = TRUE if symmetric and first == 0 else le(const(first), number)
        runs.append(eq(number, const(first)) if first == last else and_(above, le(number, const(last))))
    return or_(*runs)


def _chosen(clauses: Sequence[Clause]) -> Expr | None:
    """`|x| <= most`, where `most` is the largest bound that a clause with that literal has whose others hold."""
    sizes = Counter(x.args[0] for clause in clauses for x in clause if _bounds_a_size(x))
    if not sizes:
        return None
    number, _ = sizes.most_common(1)[0]
    by_bound: dict[int, list[Clause]] = {}
    outside: list[Clause] = []
    for clause in clauses:
        bounds = [x for x in clause if _bounds_a_size(x) and x.args[0] == number]
        if len(bounds) == 1:
            by_bound.setdefault(bounds[0].args[1].value, []).append(tuple(x for x in clause if x is not bounds[0]))
        else:
            outside.append(clause)
    if len(by_bound) < WIDTHS:
        return None
    rests = [rest for found in by_bound.values() for rest in found]
    common = [x for x in rests[0] if all(x in rest for rest in rests)]
    most: Expr = const(-1)  # no size is below 0
    for bound in sorted(by_bound):  # the largest is asked first
        others = [tuple(x for x in rest if x not in common) for rest in by_bound[bound]]
        most = select(_factored(others), const(bound), most)
    found = and_(*common, le(number, most))
    return or_(found, _factored(outside)) if outside else found


def _is_a_point(literal: Expr) -> bool:
    return literal.op == "eq" and literal.args[1].op == "const"


def _bounds_a_size(literal: Expr) -> bool:
    """Whether a literal is `|x| <= constant`, as `_within` writes it."""
    if literal.op != "le" or literal.args[1].op != "const" or literal.args[0].op != "max":
        return False
    return literal.args[0] == _size(literal.args[0].args[0])
