"""Proof by linear forms: forms known to be >= 0 are subtracted from a claim, one after another, until a number is left.

history <= start[i],  start[i] <= i   |-   history <= i + 1
as  i + 1 - history = (i - start[i]) + (start[i] - history) + 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import gcd

from cmir.analysis.linear import Linear, inequalities, linear, negate
from cmir.dialects.expr import TRUE, Expr, minimum, mul

STEPS = 800  # forms that are looked at for one claim; proofs that are found take a few hundred
DISJUNCTS = 8  # of a claim that is proved by assuming all but one of them false


class Hypotheses:
    """Forms known to be >= 0, by the atoms that they mention."""

    def __init__(self, forms: Iterable[Linear] = ()) -> None:
        self._about: dict[Expr, list[Linear]] = {}
        for form in forms:
            self._add(form)

    def _add(self, form: Linear) -> None:
        for atom, _ in form.terms:
            self._about.setdefault(atom, []).append(form)

    def about(self, atom: Expr) -> Sequence[Linear]:
        """Forms >= 0 that mention an atom: hypotheses, and what the atom means."""
        return [*self._about.get(atom, ()), *_meaning(atom)]

    def extended(self, forms: Iterable[Linear]) -> Hypotheses:
        """These and some more."""
        out = Hypotheses()
        out._about = {atom: list(known) for atom, known in self._about.items()}
        for form in forms:
            out._add(form)
        return out


@cache
def _meaning(atom: Expr) -> tuple[Linear, ...]:
    """The range of a `first`, the meaning of a division: forms >= 0 that mention the atom."""
    out: list[Linear] = []
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
    return tuple(out)


class Forms:
    """Proof by linear forms: a claim follows from hypotheses (forms >= 0) that are subtracted one after another."""

    def __init__(self, hypotheses: Hypotheses) -> None:
        self.hypotheses = hypotheses
        self.steps = STEPS
        self.failed: dict[tuple[object, int], int] = {}
        """Forms that do not follow, with the number of hypotheses tried: these may be subtracted in any order."""

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
        outer = self.hypotheses, self.failed
        self.hypotheses = self.hypotheses.extended(inequalities([negate(b) for b in claim.args if b != a]))
        self.failed = {}
        found = self.holds(a, depth)
        self.hypotheses, self.failed = outer
        return found

    def _nonnegative(self, form: Linear, depth: int) -> bool:
        """Whether `form >= 0` follows by replacing min and max by operands and subtracting what is known to be >= 0."""
        if form.is_constant:
            return form.constant >= 0
        key = form.key, form.constant
        if self.failed.get(key, -1) >= depth:
            return False
        found = self._search(form, depth)
        if not found:
            self.failed[key] = depth
        return found

    def _search(self, form: Linear, depth: int) -> bool:
        self.steps -= 1
        if self.steps < 0:
            return False
        for atom, c in form.terms:
            if atom.op in ("min", "max", "select"):
                rest = form.without(atom)
                cases = atom.args[1:] if atom.op == "select" else atom.args
                # min(a, b) <= a: a negative multiple of it is bounded below by any operand, a positive one needs all.
                some = (atom.op == "min" and c < 0) or (atom.op == "max" and c > 0)
                results = (self._nonnegative(rest.plus(linear(a), c), depth) for a in cases)
                return any(results) if some else all(results)
        if depth == 0:
            return False
        for atom, c in form.terms:
            for known in self.hypotheses.about(atom):
                k = known.coefficient(atom)
                if (k > 0) != (c > 0):
                    continue
                # n * form > -n is form >= 0, for integers: n makes the coefficient a multiple of k.
                n = abs(k) // gcd(k, c)
                rest = (form if n == 1 else form.scaled(n)).plus(known, -(c * n // k), n - 1)
                if self._nonnegative(rest, depth - 1):
                    return True
        return False
