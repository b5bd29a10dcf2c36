"""Solve a clause for one index: which interval of it satisfies every literal?

    start[i] <= j and j <= i                      for j:  [start[i], i + 1)
    (j floordiv B) <= (i floordiv B)              for j:  [0, (i floordiv B + 1) * B)
    j floordiv W == y and j mod W <= x            for j:  [y * W, y * W + min(W, x + 1))    W may be a scalar
    max(i, h) <= j                                for i:  [lo, select(h <= j, j + 1, lo))
    start[i] <= j, start nondecreasing            for i:  [lo, first i in [lo, hi) : j < start[i])

Each literal becomes `g >= 0`. Where the index occurs in `g` once, linearly or under floor division, or in a `min`,
`max` or `select` of other things, it is isolated. A quotient or a look-up that another literal pins is replaced.
Where `g` only moves one way along the index, a `first` finds the edge. A literal that fits none of these bounds no
interval and is left over, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cmir.analysis.facts import Facts
from cmir.analysis.linear import Linear, comparison, from_linear, linear, negate, simplify
from cmir.analysis.monotonicity import direction
from cmir.dialects.expr import (
    Expr,
    add,
    and_,
    const,
    depends,
    first,
    make,
    maximum,
    minimum,
    mul,
    or_,
    select,
    substitute,
    var,
    walk,
)


@dataclass
class Solution:
    """The interval `[lo, hi)` of the index, the literals that do not read it, and those that bound no interval.

    `lo` is the greatest of `lowers`, `hi` the least of `uppers`.
    """

    lo: Expr
    hi: Expr
    conditions: list[Expr] = field(default_factory=list[Expr])
    residual: list[Expr] = field(default_factory=list[Expr])
    reason: str = ""
    lowers: list[Expr] = field(default_factory=list[Expr])
    uppers: list[Expr] = field(default_factory=list[Expr])


def solve(literals: tuple[Expr, ...], index: str, lo: Expr, hi: Expr, facts: Facts) -> Solution:
    """Solve a conjunction of comparisons for `index` within `[lo, hi)`."""
    return _Solver(index, lo, hi, facts).run(literals)


@dataclass
class _Bounds:
    """What one literal says of the index: at least every one of `lowers`, below every one of `uppers`, and `when`."""

    lowers: list[Expr] = field(default_factory=list[Expr])
    uppers: list[Expr] = field(default_factory=list[Expr])
    when: list[Expr] = field(default_factory=list[Expr])


class _Solver:
    def __init__(self, index: str, lo: Expr, hi: Expr, facts: Facts) -> None:
        self.index, self.lo, self.hi, self.facts = index, lo, hi, facts

    def run(self, literals: tuple[Expr, ...]) -> Solution:
        out = Solution(self.lo, self.hi, lowers=[self.lo], uppers=[self.hi])
        pins = self._pins(literals)
        for literal in literals:
            if not depends(literal, self.index):
                out.conditions.append(literal)
                continue
            rewritten = simplify(substitute(literal, self._replacements(pins, literal)))
            if not depends(rewritten, self.index):
                out.conditions.append(rewritten)
                continue
            bounds = self._literal(rewritten)
            if isinstance(bounds, str):
                out.residual.append(literal)
                out.reason = out.reason or bounds
                continue
            out.lowers += bounds.lowers
            out.uppers += bounds.uppers
            out.conditions += bounds.when
        out.lo, out.hi = simplify(maximum(*out.lowers)), simplify(minimum(*out.uppers))
        return out

    def _pins(self, literals: tuple[Expr, ...]) -> dict[tuple[Expr, Expr], Expr]:
        """Literals `u floordiv B == Y` and `t[u] == Y`, `Y` free of the index: (left side, Y) -> the literal."""
        out: dict[tuple[Expr, Expr], Expr] = {}
        for literal in literals:
            if literal.op != "eq":
                continue
            gap = linear(literal.args[0]) - linear(literal.args[1])
            inside = [(a, c) for a, c in gap.terms if depends(a, self.index)]
            if len(inside) == 1 and inside[0][0].op in ("floordiv", "lookup") and abs(inside[0][1]) == 1:
                atom, c = inside[0]
                out.setdefault((atom, from_linear(gap.without(atom).scaled(-c))), literal)
        return out

    @staticmethod
    def _replacements(pins: dict[tuple[Expr, Expr], Expr], literal: Expr) -> dict[Expr, Expr]:
        """Under `u floordiv B == Y`: `u floordiv B` is Y and `u mod B` is `u - B * Y`.

        So is every remainder whose quotient is `u floordiv B`: `(x floordiv a) mod b`, where u is x and B is a * b.
        A literal that pins something itself is rewritten by the pins before it only: no two hold each other.
        """
        out: dict[Expr, Expr] = {}
        remainders = {t for t in walk(literal) if t.op == "mod"}
        for (atom, y), source in pins.items():
            if source == literal:
                break
            out[atom] = y
            for t in remainders:
                if simplify(make("floordiv", *t.args)) == atom:
                    out[t] = make("sub", t.args[0], mul(t.args[1], y))
        return out

    def _literal(self, literal: Expr) -> _Bounds | str:
        """What a literal says of the index; the reason if it bounds no interval."""
        a, b = literal.args
        out = _Bounds()
        for half in [make("le", a, b), make("le", b, a)] if literal.op == "eq" else [literal]:
            gap = linear(half.args[1]) - linear(half.args[0])
            bounds = self._at_least_zero(gap + Linear((), -1) if half.op == "lt" else gap) or self._by_monotone(half)
            if bounds is None:
                return self._why(half)
            _add(out, bounds)
        return out

    def _at_least_zero(self, gap: Linear) -> _Bounds | None:
        """`gap >= 0` in closed form, where one atom reads the index; None: there is none."""
        inside = [(a, c) for a, c in gap.terms if depends(a, self.index)]
        if len(inside) != 1:
            return None
        atom, c = inside[0]
        rest = gap.without(atom)
        # c * atom + rest >= 0: atom >= edge, -rest divided by c and rounded up, for c > 0; atom <= edge otherwise.
        dividend = rest if c < 0 else Linear((), c - 1) - rest
        edge = simplify(make("floordiv", from_linear(dividend), const(abs(c))))
        if atom == var(self.index):
            return _Bounds([edge]) if c > 0 else _Bounds([], [simplify(add(edge, const(1)))])

        def reaches(e: Expr) -> Linear:
            """The form that is >= 0 where e stands on the atom's side of the edge."""
            return linear(e) - linear(edge) if c > 0 else linear(edge) - linear(e)

        match atom.op:
            case "floordiv":  # u floordiv k >= edge  <=>  u >= edge * k;  u floordiv k <= edge  <=>  u < edge * k + k
                u, border = linear(atom.args[0]), linear(mul(edge, atom.args[1]))
                last = linear(atom.args[1]) - Linear((), 1)
                return self._at_least_zero(u - border if c > 0 else border + last - u)
            case "min" | "max":
                parts = [(a, reaches(a)) for a in atom.args]
                return self._each(parts) if (atom.op == "min") == (c > 0) else self._either(parts)
            case "select" if not depends(atom.args[0], self.index):
                cond, a, b = atom.args
                yes, no = (self._each([(x, reaches(x))]) for x in (a, b))
                return None if yes is None or no is None else self._choose(cond, yes, no)
            case _:
                return None

    def _each(self, parts: list[tuple[Expr, Linear]]) -> _Bounds | None:
        """Every form is >= 0."""
        out = _Bounds()
        for part, form in parts:
            if not depends(part, self.index):
                out.when.append(comparison("le", form))
                continue
            bounds = self._at_least_zero(form)
            if bounds is None:
                return None
            _add(out, bounds)
        return out

    def _either(self, parts: list[tuple[Expr, Linear]]) -> _Bounds | None:
        """Some form is >= 0, of which one reads the index: where another one is, the index is free."""
        moving = [p for p in parts if depends(p[0], self.index)]
        if len(moving) != 1:
            return None
        free = simplify(or_(*(comparison("le", form) for part, form in parts if part != moving[0][0])))
        bounds = self._each(moving)
        return None if bounds is None else self._choose(free, _Bounds(), bounds)

    def _choose(self, cond: Expr, yes: _Bounds, no: _Bounds) -> _Bounds:
        """The bounds of one case or the other."""
        lo = select(cond, simplify(maximum(self.lo, *yes.lowers)), simplify(maximum(self.lo, *no.lowers)))
        hi = select(cond, simplify(minimum(self.hi, *yes.uppers)), simplify(minimum(self.hi, *no.uppers)))
        when = or_(and_(cond, *yes.when), and_(negate(cond), *no.when))
        return _Bounds(
            [simplify(lo)] if yes.lowers or no.lowers else [],
            [simplify(hi)] if yes.uppers or no.uppers else [],
            [simplify(when)] if yes.when or no.when else [],
        )

    def _by_monotone(self, literal: Expr) -> _Bounds | None:
        gap = linear(literal.args[1]) - linear(literal.args[0])
        way = direction(from_linear(gap), self.index, self.facts, self.lo, self.hi)
        holds = simplify(literal)
        if way == "up":  # false, then true
            return _Bounds([first(self.index, self.lo, self.hi, holds)])
        if way == "down":  # true, then false
            return _Bounds([], [first(self.index, self.lo, self.hi, negate(holds))])
        return None

    def _why(self, literal: Expr) -> str:
        for term in walk(literal):
            if term.op == "lookup" and depends(term, self.index):
                return f"nothing says that table '{term.name}' is nondecreasing"
            if term.op == "mod" and depends(term, self.index):
                return f"'{term}' repeats along {self.index}"
        return f"it does not move one way along {self.index}"


def _add(to: _Bounds, bounds: _Bounds) -> None:
    to.lowers += bounds.lowers
    to.uppers += bounds.uppers
    to.when += bounds.when
