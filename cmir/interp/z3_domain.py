"""Expressions as z3 terms: integers are unbounded, tables are uninterpreted functions read at clamped indices.

What is known when the term is built is a number: a table of constants (`TableValue`) becomes a choice among its
entries, `exists` between known ends a disjunction, `isqrt` of a known number its value.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

import z3

from cmir.interp.domain import TableValue, Value

MOST = 4096
"""Values of an `exists` and entries of a table of constants that a term is built of."""


@dataclass(frozen=True)
class Z3Table:
    """A table of unknown entries and (possibly unknown) length; `width` is set where an entry holds several integers,
    and `entries` then takes two indices. A part of a table has entries that shift the index."""

    entries: Callable[..., Any]
    length: Any
    width: int | None = None
    name: str = ""


@dataclass(frozen=True)
class First:
    """A `first` term: its witness, its range and its predicate, for whoever instantiates the axioms."""

    witness: Any
    lo: Any
    hi: Any
    predicate: Callable[[Value], Value]


@dataclass(frozen=True)
class Division:
    """`x` divided by `k`, an unknown that is at least 1; `quotient` and `remainder` are not linear, and free."""

    x: Any
    k: Any
    quotient: Any
    remainder: Any


@dataclass
class Z3Domain:
    """Records, while terms are built, the index terms that facts must be instantiated at and the `first` terms met.

    Every domain has a context of its own: what z3 finds does not depend on what other domains were asked.
    """

    context: z3.Context = field(default_factory=z3.Context)
    valid: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])  # ids: an index below a length
    indices: dict[int, Any] = field(default_factory=dict[int, Any])
    firsts: list[First] = field(default_factory=list[First])
    axioms: list[Any] = field(default_factory=list[Any])  # what is known of divisions by unknowns
    divisions: dict[tuple[int, int], Division] = field(default_factory=dict[tuple[int, int], "Division"])
    """Those by unknowns, by the ids of what is divided and of the divisor."""

    def integer(self, name: str) -> Any:
        """An unknown integer."""
        return z3.Int(name, self.context)

    def table(self, name: str, length: Any, width: int | None = None) -> Z3Table:
        """A table of unknown entries."""
        sort = z3.IntSort(self.context)
        return Z3Table(z3.Function(name, *[sort] * (2 if width is None else 3)), length, width, name)

    def const(self, value: int) -> Value:
        return z3.IntVal(value, self.context)

    def boolean(self, value: bool) -> Value:
        return z3.BoolVal(value, self.context)

    def apply(self, op: str, args: Sequence[Value]) -> Value:
        match op:
            case "add":
                return args[0] + args[1]
            case "sub":
                return args[0] - args[1]
            case "mul":
                return args[0] * args[1]
            case "neg":
                return -args[0]
            case "floordiv" | "mod":
                return self._divide(op, *args)
            case "abs":
                return z3.If(args[0] >= 0, args[0], -args[0])
            case "lt":
                return args[0] < args[1]
            case "le":
                return args[0] <= args[1]
            case "eq":
                return args[0] == args[1]
            case "not":
                return z3.Not(args[0])
            case "and":
                return z3.And(*args)
            case "or":
                return z3.Or(*args)
            case "select":
                return z3.If(args[0], args[1], args[2])
            case "min" | "max":
                out = args[0]
                for a in args[1:]:
                    out = z3.If(out <= a, out, a) if op == "min" else z3.If(out >= a, out, a)
                return out
            case "isqrt":
                return self.const(isqrt(self.number(args[0], "the operand of 'isqrt'")))
            case _:
                raise z3.Z3Exception(f"no meaning for '{op}'")

    def number(self, term: Any, what: str) -> int:
        """The value of a term that is known by now."""
        term = z3.simplify(term)
        if not z3.is_int_value(term):
            raise z3.Z3Exception(f"{what} is not known: {term}")
        return term.as_long()

    def _divide(self, op: str, x: Any, divisor: Any) -> Any:
        """z3's division rounds down for positive divisors. One by an unknown is not linear: a function of which z3
        knows the sign and the range."""
        k: Any = z3.simplify(divisor)
        if z3.is_int_value(k):
            k = max(k.as_long(), 1)
            return x / k if op == "floordiv" else x % k
        one = self.const(1)
        k = z3.If(k < one, one, k)
        sort = z3.IntSort(self.context)
        quotient, remainder = (z3.Function(f"{name}!", sort, sort, sort)(x, k) for name in ("floordiv", "mod"))
        self.divisions.setdefault((x.get_id(), k.get_id()), Division(x, k, quotient, remainder))
        out: Any = quotient if op == "floordiv" else remainder
        if op == "mod":
            self.axioms += [out >= 0, out < k]
        else:
            self.axioms.append(z3.If(x >= 0, z3.And(out >= 0, out <= x), z3.And(out < 0, out >= x)))
        return out

    def lookup(self, table: Z3Table | TableValue, index: Value, number: Value | None = None) -> Value:
        if isinstance(table, TableValue):
            return self._constant(table, index)
        index, rest = self.note(index), []
        if number is not None:
            assert table.width is not None
            low, high = self.const(0), self.const(table.width - 1)
            rest = [z3.simplify(z3.If(number < low, low, z3.If(number > high, high, number)))]
        if (index.get_id(), table.length.get_id()) in self.valid:
            return table.entries(index, *rest)
        last = self.note(table.length - 1)
        zero = self.note(self.const(0))
        nearest = z3.If(index < 0, zero, z3.If(index > last, last, index))
        return z3.If(table.length <= 0, zero, table.entries(nearest, *rest))

    def _constant(self, table: TableValue, index: Any) -> Any:
        """The nearest entry of a table of constants."""
        entries, index = table.values.tolist(), z3.simplify(index)
        if z3.is_int_value(index):
            return self.const(entries[min(max(index.as_long() - table.base, 0), len(entries) - 1)])
        if len(entries) > MOST:
            raise z3.Z3Exception(f"a table of {len(entries)} constants")
        out = self.const(entries[-1])
        for k in range(len(entries) - 2, -1, -1):
            out = z3.If(index <= table.base + k, self.const(entries[k]), out)
        return out

    def note(self, index: Any) -> Any:
        """Facts about tables will be instantiated at this index; the index, simplified."""
        index = z3.simplify(index)
        return self.indices.setdefault(index.get_id(), index)

    def quantify(
        self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[[Value], Value]
    ) -> Value:
        """`first`: its witness. `exists`, whose ends are known: any of its cases."""
        if op == "exists":
            start, stop = (self.number(end, "an end of 'exists'") for end in (lo, hi))
            if stop - start >= MOST:
                raise z3.Z3Exception(f"'exists' tries {stop - start + 1} values")
            return z3.Or(self.boolean(False), *(body(self.const(k)) for k in range(start, stop + 1)))
        witness = self.integer(f"first!{len(self.firsts)}")
        self.firsts.append(First(witness, lo, hi, body))
        self.note(witness)
        self.note(witness - 1)
        return witness
