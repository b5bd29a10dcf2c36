"""Solve a clause for one index: which interval of it satisfies every literal?

    start[i] <= j and j <= i                      for j:  [start[i], i + 1)
    (j floordiv B) <= (i floordiv B)              for j:  [0, (i floordiv B + 1) * B)
    j floordiv W == y and j mod W <= x            for j:  [y * W, y * W + min(W, x + 1))
    start[i] <= j, start nondecreasing            for i:  [lo, first i in [lo, hi) : j < start[i])

Each literal becomes `g >= 0`. Where the index occurs in `g` once, linearly or under floor division, it is isolated. A
remainder is rewritten by the quotient that another literal pins. Where `g` only moves one way along the index, a
`first` finds the edge. A literal that fits none of these bounds no interval and is left over, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cmir.analysis.facts import Facts
from cmir.analysis.linear import Linear, from_linear, linear, negate, simplify
from cmir.analysis.monotonicity import direction
from cmir.dialects.expr import Expr, add, const, depends, first, make, maximum, minimum, mul, substitute, var, walk


@dataclass
class Solution:
    """The interval `[lo, hi)` of the index, the literals that do not read it, and those that bound no interval."""

    lo: Expr
    hi: Expr
    conditions: list[Expr] = field(default_factory=list[Expr])
    residual: list[Expr] = field(default_factory=list[Expr])
    reason: str = ""


def solve(literals: tuple[Expr, ...], index: str, lo: Expr, hi: Expr, facts: Facts) -> Solution:
    """Solve a conjunction of comparisons for `index` within `[lo, hi)`."""
    return _Solver(index, lo, hi, facts).run(literals)


class _Solver:
    def __init__(self, index: str, lo: Expr, hi: Expr, facts: Facts) -> None:
        self.index, self.lo, self.hi, self.facts = index, lo, hi, facts
        self.lowers: list[Expr] = [lo]
        self.uppers: list[Expr] = [hi]

    def run(self, literals: tuple[Expr, ...]) -> Solution:
        out = Solution(self.lo, self.hi)
        pins = self._pins(literals)
        for literal in literals:
            if not depends(literal, self.index):
                out.conditions.append(literal)
                continue
            rewritten = (
                literal
                if literal in pins.values()
                else simplify(substitute(literal, self._replacements(pins, literal)))
            )
            if not depends(rewritten, self.index):
                out.conditions.append(rewritten)
                continue
            failure = self._literal(rewritten)
            if failure:
                out.residual.append(literal)
                out.reason = out.reason or failure
        out.lo, out.hi = simplify(maximum(*self.lowers)), simplify(minimum(*self.uppers))
        return out

    def _pins(self, literals: tuple[Expr, ...]) -> dict[tuple[Expr, Expr, Expr], Expr]:
        """Literals `u floordiv B == Y`, `Y` free of the index: (u, B, Y) -> the literal."""
        out: dict[tuple[Expr, Expr, Expr], Expr] = {}
        for literal in literals:
            if literal.op != "eq":
                continue
            gap = linear(literal.args[0]) - linear(literal.args[1])
            inside = [(a, c) for a, c in gap.terms if depends(a, self.index)]
            if len(inside) == 1 and inside[0][0].op == "floordiv" and abs(inside[0][1]) == 1:
                atom, c = inside[0]
                quotient = from_linear(gap.without(atom).scaled(-c))
                out.setdefault((*atom.args, quotient), literal)  # pyright: ignore[reportArgumentType]
        return out

    @staticmethod
    def _replacements(pins: dict[tuple[Expr, Expr, Expr], Expr], literal: Expr) -> dict[Expr, Expr]:
        """Under `u floordiv B == Y`: `u floordiv B` is Y and `u mod B` is `u - B * Y`."""
        out: dict[Expr, Expr] = {}
        for (u, b, y), source in pins.items():
            if source != literal:
                out[make("floordiv", u, b)] = y
                out[make("mod", u, b)] = make("sub", u, mul(b, y))
        return out

    def _literal(self, literal: Expr) -> str:
        """Turn one literal into bounds; the reason if it bounds no interval."""
        a, b = literal.args
        halves = [make("le", a, b), make("le", b, a)] if literal.op == "eq" else [literal]
        for half in halves:
            gap = linear(half.args[1]) - linear(half.args[0])
            failure = self._at_least_zero(gap + Linear((), -1) if half.op == "lt" else gap, half)
            if failure:
                return failure
        return ""

    def _at_least_zero(self, gap: Linear, literal: Expr) -> str:
        inside = [(a, c) for a, c in gap.terms if depends(a, self.index)]
        if len(inside) == 1:
            atom, c = inside[0]
            rest = gap.without(atom)
            # c * atom + rest >= 0: atom >= edge, -rest divided by c and rounded up, for c > 0; atom <= edge otherwise.
            dividend = rest if c < 0 else Linear((), c - 1) - rest
            edge = simplify(make("floordiv", from_linear(dividend), const(abs(c))))
            if atom == var(self.index):
                if c > 0:
                    self.lowers.append(edge)
                else:
                    self.uppers.append(simplify(add(edge, const(1))))
                return ""
            if atom.op == "floordiv":
                u, k = linear(atom.args[0]), atom.args[1].value
                edge_form = linear(edge)
                if c > 0:  # atom >= edge  <=>  u >= edge * k
                    return self._at_least_zero(u - edge_form.scaled(k), literal)
                # atom <= edge  <=>  u <= edge * k + k - 1
                return self._at_least_zero(edge_form.scaled(k) + Linear((), k - 1) - u, literal)
        return self._by_monotone(gap, literal)

    def _by_monotone(self, gap: Linear, literal: Expr) -> str:
        way = direction(from_linear(gap), self.index, self.facts, self.lo, self.hi)
        holds = simplify(literal)
        if way == "up":  # false, then true
            self.lowers.append(first(self.index, self.lo, self.hi, holds))
            return ""
        if way == "down":  # true, then false
            self.uppers.append(first(self.index, self.lo, self.hi, negate(holds)))
            return ""
        return self._why(literal)

    def _why(self, literal: Expr) -> str:
        for term in walk(literal):
            if term.op == "lookup" and depends(term, self.index):
                return f"nothing says that table '{term.name}' is nondecreasing"
            if term.op == "mod" and depends(term, self.index):
                return f"'{term}' repeats along {self.index}"
        return f"it does not move one way along {self.index}"
