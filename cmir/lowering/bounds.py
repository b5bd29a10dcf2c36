"""Which tiles a row tile may see: the rule of a pair on ranges of rows and of columns, as Triton statements.

    a < b   may hold for some pair of a tile   only if   least a < greatest b
            may fail for some pair of a tile   only if   greatest a >= least b

What a rule computes of the row alone is reduced to its least and greatest value once for the rows of a tile; what it
computes of the column alone, for the columns of every tile of a chunk. The rest is interval arithmetic on those (Moore
1966): a few scalars a tile instead of every pair. Tiles that may not hold a visible pair are passed over, tiles that
must hold nothing else are full without a look. What has no bounds (a table that is read at a place of both indices)
may be anything, and its tiles are asked pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cmir.dialects.descriptor import FirstOp
from cmir.dialects.maskspec import ModOp
from cmir.lowering.ssa import INDENT, Statements

Reads = Literal["nothing", "row", "column", "both"]


@dataclass(frozen=True)
class Range:
    """Least and greatest value, as text."""

    low: str
    high: str


@dataclass(frozen=True)
class Chance:
    """Whether a condition may hold and whether it may fail, as text; None: it may."""

    holds: str | None = None
    fails: str | None = None


class Bounds:
    """Prints one block over a row `i`, written as a vector, and a column `j`, written as a matrix of a tile a line."""

    def __init__(self, statements: Statements, row: SSAValue, column: SSAValue) -> None:
        self.statements = statements
        self.reads: dict[SSAValue, Reads] = {row: "row", column: "column"}
        self.ranges: dict[SSAValue, Range | None] = {}
        self.chances: dict[SSAValue, Chance] = {}

    def block(self, block: Block) -> None:
        """Every op of the block but its terminator."""
        for op in block.ops:
            if op.next_op is None:
                return
            reads = self._reads_of(op)
            column_search = isinstance(op, FirstOp) and reads == "column"  # a search is written for a vector of rows
            for result in op.results:
                self.reads[result] = "both" if column_search else reads
            if reads != "both" and not column_search:
                self.statements.one(op)
            elif op.results[0].type == i1:
                self.chances[op.results[0]] = self._condition(op)
            else:
                self.ranges[op.results[0]] = self._integer(op)

    def chance(self, value: SSAValue) -> Chance:
        """Whether a condition may hold, and may fail, in each tile."""
        if value not in self.chances:
            name, reads = self.statements.name(value), self.reads.get(value, "nothing")
            if reads == "nothing":
                self.chances[value] = Chance(name, f"{name} != True")
            else:
                some, axis = self._new(f"({name}).to(tl.int32)"), self._axis(reads)
                holds, fails = f"tl.max({some}{axis}) > 0", f"tl.min({some}{axis}) < 1"
                self.chances[value] = Chance(self._new(holds), self._new(fails))
        return self.chances[value]

    def _range(self, value: SSAValue) -> Range | None:
        if value not in self.ranges:
            name, reads = self.statements.name(value), self.reads.get(value, "nothing")
            shifted = self._shifted(value)
            if reads == "nothing":
                self.ranges[value] = Range(name, name)
            elif shifted is not None:
                self.ranges[value] = shifted
            else:
                axis = self._axis(reads)
                self.ranges[value] = self._named(f"tl.min({name}{axis})", f"tl.max({name}{axis})")
        return self.ranges[value]

    def _shifted(self, value: SSAValue) -> Range | None:
        """The range of what is a constant more or less than another value: that one is reduced once for all of them."""
        op = value.owner
        if not isinstance(op, arith.AddiOp | arith.SubiOp) or _constant(op.rhs) is None:
            return None
        base, k = self._range(op.lhs), _constant(op.rhs)
        sign = "+" if isinstance(op, arith.AddiOp) else "-"
        return None if base is None else self._named(f"{base.low} {sign} {k}", f"{base.high} {sign} {k}")

    @staticmethod
    def _axis(reads: Reads) -> str:
        return ", axis=1" if reads == "column" else ""

    def _reads_of(self, op: Operation) -> Reads:
        """Which indices an op depends on, through its operands and what its body reads."""
        found: set[Reads] = set()
        for inner in op.walk():
            found |= {self.reads.get(v, "nothing") for v in inner.operands if _outside(v, op)}
        found.discard("nothing")
        return "nothing" if not found else found.pop() if len(found) == 1 else "both"

    def _new(self, text: str) -> str:
        """A name for the value of a text."""
        name = self.statements.fresh_name("bound")
        self.statements.lines.append(f"{INDENT}{name} = {text}")
        return name

    def _named(self, low: str, high: str) -> Range:
        return Range(self._new(low), self._new(high))

    def _integer(self, op: Operation) -> Range | None:
        """The range of an integer of both indices; None: it may be any."""
        if isinstance(op, ModOp):
            k = _constant(op.rhs)
            return None if k is None else Range("0", str(k - 1))
        if isinstance(op, arith.SelectOp):
            return self._hull([self._range(v) for v in op.operands[1:]])
        if not isinstance(op, _ARITHMETIC):
            return None
        a, b = (self._range(v) for v in op.operands)
        if a is None or b is None:
            return None
        match op:
            case arith.AddiOp():
                return self._named(f"{a.low} + {b.low}", f"{a.high} + {b.high}")
            case arith.SubiOp():
                return self._named(f"{a.low} - {b.high}", f"{a.high} - {b.low}")
            case arith.MinSIOp() | arith.MaxSIOp():
                name = "tl.minimum" if isinstance(op, arith.MinSIOp) else "tl.maximum"
                return self._named(f"{name}({a.low}, {b.low})", f"{name}({a.high}, {b.high})")
            case arith.MuliOp():
                k = _constant(op.rhs) if _constant(op.rhs) is not None else _constant(op.lhs)
                x = a if _constant(op.rhs) is not None else b
                if k is None:
                    return None
                low, high = (x.low, x.high) if k >= 0 else (x.high, x.low)
                return self._named(f"{low} * ({k})", f"{high} * ({k})")
            case _:  # floor division moves one way
                k = _constant(op.operands[1])
                return None if k is None else self._named(f"floor_div({a.low}, {k})", f"floor_div({a.high}, {k})")

    def _hull(self, ranges: Sequence[Range | None]) -> Range | None:
        a, b = ranges
        if a is None or b is None:
            return None
        return self._named(f"tl.minimum({a.low}, {b.low})", f"tl.maximum({a.high}, {b.high})")

    def _condition(self, op: Operation) -> Chance:
        match op:
            case arith.CmpiOp() if op.lhs.type != i1:
                a, b = self._range(op.lhs), self._range(op.rhs)
                return Chance() if a is None or b is None else self._comparison(op.predicate.value.data, a, b)
            case arith.AndIOp() | arith.OrIOp():
                a, b = (self.chance(v) for v in op.operands)
                both, either = (self._all(a.holds, b.holds), self._any(a.fails, b.fails))
                if isinstance(op, arith.OrIOp):
                    return Chance(self._any(a.holds, b.holds), self._all(a.fails, b.fails))
                return Chance(both, either)
            case arith.XOrIOp():
                a, b = (self.chance(v) for v in op.operands)
                holds = self._any(self._all(a.holds, b.fails), self._all(a.fails, b.holds))
                return Chance(holds, self._any(self._all(a.holds, b.holds), self._all(a.fails, b.fails)))
            case _:
                return Chance()

    def _comparison(self, predicate: int, a: Range, b: Range) -> Chance:
        match predicate:
            case 0 | 1:
                same = self._new(f"({a.low} <= {b.high}) & ({b.low} <= {a.high})")
                differ = self._new(f"({a.low} < {b.high}) | ({b.low} < {a.high})")
                return Chance(same, differ) if predicate == 0 else Chance(differ, same)
            case 2:
                return Chance(self._new(f"{a.low} < {b.high}"), self._new(f"{a.high} >= {b.low}"))
            case 3:
                return Chance(self._new(f"{a.low} <= {b.high}"), self._new(f"{a.high} > {b.low}"))
            case 4:
                return self._comparison(2, b, a)
            case 5:
                return self._comparison(3, b, a)
            case _:
                return Chance()

    def _all(self, a: str | None, b: str | None) -> str | None:
        return b if a is None else a if b is None else self._new(f"({a}) & ({b})")

    def _any(self, a: str | None, b: str | None) -> str | None:
        return None if a is None or b is None else self._new(f"({a}) | ({b})")


_ARITHMETIC = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.FloorDivSIOp, arith.MinSIOp, arith.MaxSIOp)


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made outside of an op."""
    where = value.owner.parent_op() if isinstance(value, BlockArgument) else value.owner
    while isinstance(where, Operation):
        if where is op:
            return False
        where = where.parent_op()
    return True
