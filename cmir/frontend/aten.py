"""torch's operators on terms: a method for each operator that the rule language has something for, by its aten name.

`OnTerms` takes and gives terms, Python ints and bools. It lets integers and conditions stand for each other as torch
does: a sum counts a condition as 0 or 1, a conjunction takes an integer for "is not 0".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cmir.dialects.spec_names import CIRCLE
from cmir.errors import SpecError
from cmir.frontend.terms import Term

if TYPE_CHECKING:
    from cmir.frontend.spec import MaskSpec

Value = Term | int | bool
"""A term of the spec, or a number or truth value known when the predicate is traced."""

INTEGERS_ONLY = "a mask is integer arithmetic: write // (rounding down), not /"


def is_condition(a: Value) -> bool:
    return isinstance(a, bool) or (isinstance(a, Term) and a.expr.sort == "bool")


class OnTerms:
    """The operators. Arguments are those of aten; shapes, dtypes and devices among them are ignored."""

    def __init__(self, spec: MaskSpec) -> None:
        self._spec = spec

    def operator(self, name: str) -> Any:
        """The method for aten's operator of that name, without the overload; SpecError if there is none."""
        found = None if name in ("operator", "integer", "condition") else getattr(self, name, None)
        if found is None:
            has = "it has integer arithmetic, comparisons, &, |, ~, torch.where, abs, minimum, maximum, clamp, look-ups"
            raise SpecError(f"the rule language has nothing for torch's {name}; {has}")
        return found

    def integer(self, a: Value) -> Any:
        """The value as an integer."""
        if isinstance(a, Term):
            return self._spec.where(a, 1, 0) if is_condition(a) else a
        return int(a)

    def condition(self, a: Value) -> Any:
        """The value as a condition."""
        if isinstance(a, Term):
            return a if is_condition(a) else a != 0
        return bool(a)

    # Arithmetic.

    def add(self, a: Value, b: Value, alpha: int = 1) -> Value:
        return self.integer(a) + self._times(alpha, b)

    def sub(self, a: Value, b: Value, alpha: int = 1) -> Value:
        return self.integer(a) - self._times(alpha, b)

    def _times(self, alpha: int, b: Value) -> Any:
        return self.integer(b) if alpha == 1 else alpha * self.integer(b)

    def rsub(self, a: Value, b: Value, alpha: int = 1) -> Value:
        return self.sub(b, a, alpha)

    def mul(self, a: Value, b: Value) -> Value:
        if is_condition(a) and is_condition(b):
            return self.logical_and(a, b)
        return self.integer(a) * self.integer(b)

    def pow(self, a: Value, b: Value) -> Value:
        if isinstance(a, Term) or isinstance(b, Term) or b < 0:
            raise SpecError(f"a rule has no **; {CIRCLE}")
        return int(a) ** int(b)

    def neg(self, a: Value) -> Value:
        return -self.integer(a)

    def abs(self, a: Value) -> Value:
        return abs(self.integer(a))

    def floor_divide(self, a: Value, b: Value) -> Value:
        return self.integer(a) // self.integer(b)

    def div(self, a: Value, b: Value, rounding_mode: str | None = None) -> Value:
        if rounding_mode != "floor":
            raise SpecError(INTEGERS_ONLY)
        return self.floor_divide(a, b)

    def remainder(self, a: Value, b: Value) -> Value:
        return self.integer(a) % self.integer(b)

    def minimum(self, a: Value, b: Value) -> Value:
        return self._spec.minimum(self.integer(a), self.integer(b))

    def maximum(self, a: Value, b: Value) -> Value:
        return self._spec.maximum(self.integer(a), self.integer(b))

    def clamp(self, a: Value, lo: Value | None = None, hi: Value | None = None) -> Value:
        at_least = a if lo is None else self.maximum(a, lo)
        return at_least if hi is None else self.minimum(at_least, hi)

    def clamp_min(self, a: Value, lo: Value) -> Value:
        return self.maximum(a, lo)

    def clamp_max(self, a: Value, hi: Value) -> Value:
        return self.minimum(a, hi)

    # Comparisons.

    def eq(self, a: Value, b: Value) -> Value:
        if is_condition(a) and is_condition(b):
            return self.logical_not(self.logical_xor(a, b))
        a, b = self.integer(a), self.integer(b)
        if isinstance(a, Term) and not isinstance(b, Term) and b == 0 and (multiple := _of_a_distance(a)):
            a = multiple[0] % multiple[1]
        return a == b

    def ne(self, a: Value, b: Value) -> Value:
        return self.logical_not(self.eq(a, b))

    def lt(self, a: Value, b: Value) -> Value:
        return self.integer(a) < self.integer(b)

    def le(self, a: Value, b: Value) -> Value:
        return self.integer(a) <= self.integer(b)

    def gt(self, a: Value, b: Value) -> Value:
        return self.integer(a) > self.integer(b)

    def ge(self, a: Value, b: Value) -> Value:
        return self.integer(a) >= self.integer(b)

    # Conditions. The bitwise forms mean something else for integers.

    def logical_and(self, a: Value, b: Value) -> Value:
        return self.condition(a) & self.condition(b)

    def logical_or(self, a: Value, b: Value) -> Value:
        return self.condition(a) | self.condition(b)

    def logical_not(self, a: Value) -> Value:
        p = self.condition(a)
        return ~p if isinstance(p, Term) else not p

    def logical_xor(self, a: Value, b: Value) -> Value:
        return self.logical_or(self.logical_and(a, self.logical_not(b)), self.logical_and(self.logical_not(a), b))

    def bitwise_and(self, a: Value, b: Value) -> Value:
        return self.logical_and(*_conditions("&", a, b))

    def bitwise_or(self, a: Value, b: Value) -> Value:
        return self.logical_or(*_conditions("|", a, b))

    def bitwise_xor(self, a: Value, b: Value) -> Value:
        return self.logical_xor(*_conditions("^", a, b))

    def bitwise_not(self, a: Value) -> Value:
        return self.logical_not(*_conditions("~", a))

    def where(self, test: Value, a: Value, b: Value) -> Value:
        if is_condition(a) and is_condition(b):
            return self._spec.where(self.condition(test), self.condition(a), self.condition(b))
        return self._spec.where(self.condition(test), self.integer(a), self.integer(b))

    # What makes a tensor of one number, or changes nothing about it but its form. Dtypes are the importer's matter.

    def scalar_tensor(self, a: Value) -> Value:
        return a

    def full(self, shape: object, value: Value) -> Value:
        return value

    full_like = full

    def new_full(self, a: Value, shape: object, value: Value) -> Value:
        return value

    def ones(self, *rest: object) -> Value:
        return 1

    ones_like = new_ones = ones

    def zeros(self, *rest: object) -> Value:
        return 0

    zeros_like = new_zeros = zeros

    def clone(self, a: Value, *rest: object) -> Value:
        return a

    _to_copy = detach = alias = view = reshape = expand = squeeze = unsqueeze = lift_fresh_copy = lift_fresh = clone


def _of_a_distance(a: Term) -> tuple[Term, Term] | None:
    """x and m, of |x| mod m: it is 0 where x mod m is, of which remainders are taken apart."""
    if a.op != "mod" or a.operands[0].expr.op != "abs":
        return None
    distance, divisor = a.operands
    return distance.operands[0], divisor


def _conditions(symbol: str, *values: Value) -> tuple[Value, ...]:
    if not all(map(is_condition, values)):
        raise SpecError(f"'{symbol}' takes conditions, not integers; bits of a number are // and % by powers of 2")
    return values
