"""Expressions as z3 terms: integers are unbounded, tables are uninterpreted functions read at clamped indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import z3

from cmir.interp.domain import Value


@dataclass(frozen=True)
class Z3Table:
    """A table of unknown entries and (possibly unknown) length."""

    entries: z3.FuncDeclRef
    length: z3.ArithRef


@dataclass
class First:
    """A `first` term: its witness, its range and its predicate, for whoever instantiates the axioms."""

    witness: z3.ArithRef
    lo: z3.ArithRef
    hi: z3.ArithRef
    predicate: Callable[[Value], Value]


@dataclass
class Z3Domain:
    """Records, while terms are built, the index terms that facts must be instantiated at and the `first` terms met."""

    in_range: set[int] = field(default_factory=set[int])  # ids of terms known to be valid indices of every row / column table
    indices: dict[int, z3.ArithRef] = field(default_factory=dict[int, z3.ArithRef])
    firsts: list[First] = field(default_factory=list[First])

    def const(self, value: int) -> Value:
        return z3.IntVal(value)

    def boolean(self, value: bool) -> Value:
        return z3.BoolVal(value)

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
            case "floordiv":  # z3's div rounds down for positive divisors, which is all the language has
                return args[0] / args[1]
            case "mod":
                return args[0] % args[1]
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
            case _:
                raise z3.Z3Exception(f"no meaning for '{op}'")

    def lookup(self, table: Z3Table, index: Value) -> Value:
        index = z3.simplify(index)
        self.note(index)
        if index.get_id() in self.in_range:
            return table.entries(index)
        last = table.length - 1
        nearest = z3.If(index < 0, z3.IntVal(0), z3.If(index > last, last, index))
        self.note(z3.IntVal(0))
        self.note(last)
        return z3.If(table.length <= 0, z3.IntVal(0), table.entries(nearest))

    def note(self, index: z3.ArithRef) -> None:
        """Facts about tables will be instantiated at this index."""
        index = z3.simplify(index)
        self.indices.setdefault(index.get_id(), index)

    def quantify(self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[[Value], Value]) -> Value:
        if op == "exists":  # static ends: dnf-normalize has expanded it, or the ends are numerals here
            ends = [z3.simplify(e).as_long() for e in (lo, hi)]
            return z3.Or(*(z3.And(lo <= d, d <= hi, body(z3.IntVal(d))) for d in range(ends[0], ends[1] + 1)))
        witness = z3.Int(f"first!{len(self.firsts)}")
        self.firsts.append(First(witness, lo, hi, body))
        self.note(witness)
        self.note(witness - 1)
        return witness
