"""Which tiles a row tile may see: the rule of a pair on ranges of rows and of columns, as Triton statements.

    a < b   may hold for some pair of a tile   only if   least a < greatest b
            may fail for some pair of a tile   only if   greatest a >= least b

What a rule computes of the row alone is reduced to its least and greatest value once for the rows of a tile (those
statements are apart, in `rows`); what it computes of the column alone, for the columns of every tile of a chunk. The
rest is interval arithmetic on those (Moore 1966): a few scalars a tile instead of every pair. Tiles that may not hold a
visible pair are passed over, tiles that must hold nothing else are full without a look. What has no bounds (a table
that is read at a place of both indices) may be anything, and its tiles are asked pair by pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cmir.dialects.descriptor import FirstOp
from cmir.dialects.maskspec import ModOp
from cmir.lowering.ssa import INDENT, Statements

Reads = Literal["nothing", "row", "column", "both"]


def reads_of(op: Operation, known: Mapping[SSAValue, Reads]) -> Reads:
    """Which indices an op depends on, through its operands and what its body reads."""
    found: set[Reads] = set()
    for inner in op.walk():
        found |= {known.get(v, "nothing") for v in inner.operands if _outside(v, op)}
    found.discard("nothing")
    return "nothing" if not found else found.pop() if len(found) == 1 else "both"


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
    """Prints one block over a row `i`, written as a vector, and a column `j`, written as a matrix of a column of it a
    tile."""

    def __init__(self, statements: Statements, row: SSAValue, column: SSAValue) -> None:
        self.statements = statements
        self.rows: list[str] = []
        """The lines that read no column."""
        self.reads: dict[SSAValue, Reads] = {row: "row", column: "column"}
        self.ranges: dict[SSAValue, Range | None] = {}
        self.chances: dict[SSAValue, Chance] = {}

    def block(self, block: Block) -> None:
        """Every op of the block but its terminator."""
        for op in block.ops:
            if op.next_op is None:
                return
            reads = reads_of(op, self.reads)
            column_search = isinstance(op, FirstOp) and reads == "column"  # a search is written for a vector of rows,
            reads = "row" if isinstance(op, FirstOp) and reads == "nothing" else reads  # even one of no index
            for result in op.results:
                self.reads[result] = "both" if column_search else reads
            if reads in ("nothing", "row"):
                self.statements.lines, tiles = self.rows, self.statements.lines
                self.statements.one(op)
                self.statements.lines = tiles
            elif reads == "column" and not column_search:
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
                some, axis = self._new(f"({name}).to(tl.int32)", reads), self._axis(reads)
                holds, fails = f"tl.max({some}{axis}) > 0", f"tl.min({some}{axis}) < 1"
                self.chances[value] = Chance(self._new(holds, reads), self._new(fails, reads))
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
                self.ranges[value] = self._named(f"tl.min({name}{axis})", f"tl.max({name}{axis})", reads)
        return self.ranges[value]

    def _shifted(self, value: SSAValue) -> Range | None:
        """The range of what is a constant more or less than another value: that one is reduced once for all of them."""
        op = value.owner
        if not isinstance(op, arith.AddiOp | arith.SubiOp) or _constant(op.rhs) is None:
            return None
        base, k = self._range(op.lhs), _constant(op.rhs)
        if base is None:
            return None
        sign, low, high = "+" if isinstance(op, arith.AddiOp) else "-", *self._widened(op, base)
        return self._named(f"{low} {sign} {k}", f"{high} {sign} {k}", self.reads.get(value, "nothing"))

    def _widened(self, op: Operation, first: Range) -> tuple[str, str]:
        """The ends of the first operand of an op, wide where its result is and its operands are not."""
        return self.statements.widened(op, first.low), self.statements.widened(op, first.high)

    @staticmethod
    def _axis(reads: Reads) -> str:
        return ", axis=0" if reads == "column" else ""

    def _new(self, text: str, reads: Reads = "both") -> str:
        """A name for the value of a text."""
        name = self.statements.fresh_name("bound")
        lines = self.rows if reads in ("nothing", "row") else self.statements.lines
        lines.append(f"{INDENT}{name} = {text}")
        return name

    def _named(self, low: str, high: str, reads: Reads = "both") -> Range:
        return Range(self._new(low, reads), self._new(high, reads))

    def _integer(self, op: Operation) -> Range | None:
        """The range of an integer of both indices; None: it may be any."""
        if isinstance(op, ModOp):
            k = _constant(op.rhs)
            return None if k is None else Range("0", str(k - 1))
        if isinstance(op, arith.SelectOp):
            return self._choice(self.chance(op.cond), *(self._range(v) for v in op.operands[1:]))
        if not isinstance(op, _ARITHMETIC):
            return None
        a, b = (self._range(v) for v in op.operands)
        if a is None or b is None:
            return None
        match op:
            case arith.AddiOp():
                low, high = self._widened(op, a)
                return self._named(f"{low} + {b.low}", f"{high} + {b.high}")
            case arith.SubiOp():
                low, high = self._widened(op, a)
                return self._named(f"{low} - {b.high}", f"{high} - {b.low}")
            case arith.MinSIOp() | arith.MaxSIOp():
                name = "tl.minimum" if isinstance(op, arith.MinSIOp) else "tl.maximum"
                low = f"{name}({a.low}, {b.low})"
                return self._named(f"tl.maximum({low}, 0)" if _is_size(op) else low, f"{name}({a.high}, {b.high})")
            case arith.MuliOp():
                k = _constant(op.rhs) if _constant(op.rhs) is not None else _constant(op.lhs)
                x = a if _constant(op.rhs) is not None else b
                if k is None:
                    return None
                low, high = self._widened(op, x if k >= 0 else Range(x.high, x.low))
                return self._named(f"{low} * ({k})", f"{high} * ({k})")
            case _:  # floor division moves one way
                if _constant(op.rhs) is None:
                    return None
                return self._named(self.statements.divided(op, a.low), self.statements.divided(op, a.high))

    def _choice(self, condition: Chance, a: Range | None, b: Range | None) -> Range | None:
        """The range of what is a where a condition holds, and b where it fails."""
        if a is None or b is None:
            return None

        def end(name: str, x: str, y: str) -> str:
            x_or_y = x if condition.holds is None else f"tl.where({condition.holds}, {x}, {y})"
            y_or_x = y if condition.fails is None else f"tl.where({condition.fails}, {y}, {x})"
            return f"{name}({x_or_y}, {y_or_x})"

        return self._named(end("tl.minimum", a.low, b.low), end("tl.maximum", a.high, b.high))

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


def _is_size(op: Operation) -> bool:
    """Whether an op is max(x, 0 - x), which is never negative."""
    x, y = op.operands
    minus = y.owner
    return (
        isinstance(op, arith.MaxSIOp)
        and isinstance(minus, arith.SubiOp)
        and minus.rhs is x
        and _constant(minus.lhs) == 0
    )


def _outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made outside of an op."""
    where = value.owner.parent_op() if isinstance(value, BlockArgument) else value.owner
    while isinstance(where, Operation):
        if where is op:
            return False
        where = where.parent_op()
    return True
