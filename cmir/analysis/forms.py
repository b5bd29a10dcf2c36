"""Proof by linear forms: forms known to be >= 0 are subtracted from a claim, one after another, until a number is left.

history <= start[i],  start[i] <= i   |-   history <= i + 1        as  i + 1 - history = (i - start) + (start - history)
+ 1
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from cmir.analysis.linear import Linear, inequalities, linear, negate
from cmir.dialects.expr import TRUE, Expr, minimum, mul

STEPS = 3_000  # sums of facts that are looked at for one claim
DISJUNCTS = 8  # of a claim that is proved by assuming all but one of them false


class Forms:
    """Proof by linear forms: a claim follows from hypotheses (forms >= 0) that are subtracted one after another."""

    def __init__(self, hypotheses: Sequence[Linear]) -> None:
        self.hypotheses = hypotheses
        self.steps = STEPS

    def holds(self, claim: Expr, depth: int) -> bool:
        """Whether the claim follows from at most `depth` hypotheses for each inequality in it."""
        match claim.op:
            case "and":
                return all(self.holds(a, depth) for a in claim.args)
            case "or" if depth == 0 or len(claim.args) > DISJUNCTS:
                return any(self.holds(a, depth) for a in claim.args)
            case "or":
                return any(self._under_negation(a, claim, depth) for a in claim.args)
            case "lt" | "le" | "eq":
                return all(self._nonnegative(form, depth) for form in inequalities([claim]))
            case _:
                return claim == TRUE

    def _under_negation(self, a: Expr, claim: Expr, depth: int) -> bool:
        """`a or b` holds if `a` does wherever `b` does not."""
        outer = self.hypotheses
        self.hypotheses = [*outer, *inequalities([negate(b) for b in claim.args if b != a])]
        found = self.holds(a, depth)
        self.hypotheses = outer
        return found

    def _nonnegative(self, form: Linear, depth: int) -> bool:
        """Whether `form >= 0` follows by replacing min and max by operands and subtracting what is known to be >= 0."""
        if form.is_constant:
            return form.constant >= 0
        for atom, c in form.terms:
            if atom.op in ("min", "max", "select"):
                rest = form.without(atom)
                cases = atom.args[1:] if atom.op == "select" else atom.args
                # min(a, b) <= a: a negative multiple of it is bounded below by any operand, a positive one needs all.
                some = (atom.op == "min" and c < 0) or (atom.op == "max" and c > 0)
                results = (self._nonnegative(rest + linear(a).scaled(c), depth) for a in cases)
                return any(results) if some else all(results)
        self.steps -= 1
        if depth == 0 or self.steps < 0:
            return False
        for atom, c in form.terms:
            for known in self._known_about(atom):
                k = known.coefficient(atom)
                if (k > 0) != (c > 0):
                    continue
                # n * form > -n is form >= 0, for integers: n makes the coefficient a multiple of k.
                n = abs(k) // gcd(k, c)
                rest = form.scaled(n) + Linear((), n - 1) - known.scaled(c * n // k)
                if self._nonnegative(rest, depth - 1):
                    return True
        return False

    def _known_about(self, atom: Expr) -> Sequence[Linear]:
        """Forms >= 0 that mention an atom: hypotheses, the meaning of a division, the range of a `first`."""
        out = [f for f in self.hypotheses if f.coefficient(atom)]
        if atom.op == "first":
            lo, hi, _ = atom.args
            out += [linear(hi) - linear(atom), linear(atom) - linear(minimum(lo, hi))]
        if atom.op == "mod":
            out += [linear(atom), linear(atom.args[1]) - Linear((), 1) - linear(atom)]
        # A quotient by a scalar comes as the product with it.
        quotients = [a for a in (atom, *(atom.args if atom.op == "mul" else ())) if a.op == "floordiv"]
        for quotient in quotients:
            u, k = quotient.args
            rest = linear(u) - linear(mul(quotient, k))
            if rest.coefficient(atom):
                out += [rest, linear(k) - Linear((), 1) - rest]
        return out
