"""The rule of a pair on eight columns at once: a byte of bits a row, as Triton statements.

    row i sees column 8m + c  =  bit c of the byte (i, m),  c = 0 .. 7

Every number is printed once for the eight columns, at the first of them; what else is known is how it moves from there:

    number     =  line                 `text` + slope * c at column 8m + c, where `text` is `rest` modulo `modulus`
               |  max(number, number) | min(number, number)
               |  condition ? number : number
               |  remainder            (text + slope * c) mod divisor, `text` already reduced
    condition  =  flag                 true or false of all eight
               |  byte                 an int32; only its low eight bits mean anything

    j                                  slope 1, 0 modulo 8
    x + y, x - y, x * constant         slopes add, or are multiplied
    x floordiv d                       where x stays between two multiples of d: slope 0
    x mod d                            and there the slope of x
    line <= line                       a flag where slopes are equal or x meets y only between two bytes;
                                       else columns before, or from, the one where the lines meet: -1 << place
    line == line                       one bit, 1 << place
    remainder == number                every divisor-th bit from a place
    remainder <= constant              a constant pattern, shifted, where the divisor is small
    max(x, y) <= z                     x <= z and y <= z, and so on: comparisons distribute

It is a part of printing `-t triton`, after `--lower-descriptor`. Of the Sparse Transformer's mask, before and after:

    %19 = arith.subi %i, %j                        at_8 = i - j
    %20 = arith.cmpi sle, 0, %19                   byte_9 = ~(-1 << tl.minimum(tl.maximum(at_8 + 1, 0), 8))
    %22 = arith.cmpi sle, %19, 127                 byte_10 = -1 << tl.minimum(tl.maximum(at_8 - 127, 0), 8)
    %24 = maskspec.mod %19, 128                    at_11 = at_8 & 127
    %25 = arith.cmpi eq, %24, 0                    byte_12 = 1 << tl.minimum(at_11, 8)
    %26 = arith.ori %22, %25                       byte_13 = byte_10 | byte_12
    %27 = arith.andi %20, %26                      byte_14 = byte_9 & byte_13
    descriptor.holds %27                           return byte_14

This is SIMD within a register (Lamport 1975, Multiple byte processing with full-word instructions), and what is known
of remainders is a congruence (Granger 1989). The rule of a patch `(j mod 128) floordiv 16` is one number for eight
columns, so that a byte costs little more than a pair. What is none of these (a table that is read at a column, a
product of two columns) has no byte, and a rule that needs it is asked pair by pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from cmir.dialects.descriptor import FirstOp
from cmir.dialects.maskspec import ModOp, TableType
from cmir.lowering.bounds import Reads
from cmir.lowering.ssa import COMPARISON, Statements
from cmir.lowering.widths import ANY, POSITION, Interval, Widths

COLUMNS = 8
"""Of a byte."""

LARGEST = 2**62
"""Numbers below it either way have a difference in int64."""

MOST_PARTS = 64
"""Lines that are compared in one comparison: beyond, to ask eight times is not much more."""

EQ, NE, LT, LE, GT, GE = range(6)


@dataclass(frozen=True)
class Line:
    """`text` + slope * c at column c; `text` is `rest` modulo `modulus`, or is `rest` where that is 0. Both ends of
    `interval` hold `text` and the numbers of all columns that exist."""

    text: str
    slope: int = 0
    modulus: int = 1
    rest: int = 0
    interval: Interval = ANY
    of_row: bool = False
    """No column is read."""

    @property
    def constant(self) -> int | None:
        """The number, if it is known."""
        return self.rest if self.modulus == 0 and self.slope == 0 else None

    def stays(self, divisor: int) -> bool:
        """Whether all eight numbers lie between two multiples of a divisor."""
        block = gcd(self.modulus, divisor)
        return 0 <= self.rest % block + self.slope * (COLUMNS - 1) < block


@dataclass(frozen=True)
class Extreme:
    """The greater or the lesser of two numbers."""

    greater: bool
    x: Number
    y: Number


@dataclass(frozen=True)
class Choice:
    """`x` where a condition holds, else `y`."""

    condition: Condition
    x: Number
    y: Number


@dataclass(frozen=True)
class Remainder:
    """(`first` + slope * c) mod `divisor`: `first` is the remainder at the first column."""

    first: Line
    slope: int
    divisor: int


@dataclass(frozen=True)
class Flag:
    """One truth of all eight columns."""

    text: str


@dataclass(frozen=True)
class Byte:
    """A bit a column; what stands above the eighth bit means nothing."""

    text: str


Number = Line | Extreme | Choice | Remainder
Condition = Flag | Byte


class Bytes:
    """Prints the part of one block over a row and a column that reads the column, of which the other part is printed.

    The names of the row and of what is read of it alone are those that `statements` has.
    """

    def __init__(self, statements: Statements, reads: Mapping[SSAValue, Reads], rows: list[str]) -> None:
        assert statements.widths is not None, "what fits 32 bits is proved"
        self.statements = statements
        self.widths: Widths = statements.widths
        self.reads = reads
        self.rows = rows
        """The lines of what is of the row alone: numbers that are clamped are added to them."""
        self.lines: list[str] = []
        self.known: dict[SSAValue, Number | Condition | None] = {}
        self.clamped: dict[tuple[str, Interval], Line] = {}
        self.op: Operation | None = None

    def byte(self, block: Block, condition: SSAValue) -> str | None:
        """The lines of the block, in `lines`, and how its condition is written as a byte; None: it has none."""
        i, j = block.args
        self.known[i] = Line(self.statements.name(i), interval=POSITION, of_row=True)
        self.known[j] = Line(self.statements.name(j), 1, COLUMNS, 0, POSITION)
        for self.op in block.ops:
            if self.op.next_op is not None and (result := self.op.results[0]) not in self.known:
                found = self.known[result] = self._class(self.op)
                if isinstance(found, Flag):  # ops that take it are printed with its name
                    self.statements.names[result] = found.text
        found = self._of(condition)
        return self._as_byte(found) if isinstance(found, Flag | Byte) else None

    def _of(self, value: SSAValue) -> Number | Condition | None:
        if value not in self.known:
            owner = value.owner
            match owner:
                case arith.ConstantOp(value=IntegerAttr() as attr) if value.type != i1:
                    self.known[value] = self._constant(attr.value.data)
                case _:
                    self.known[value] = self._named(value)
        return self.known[value]

    @staticmethod
    def _constant(number: int) -> Line:
        text = str(number) if number >= 0 else f"({number})"
        return Line(text, 0, 0, number, Interval(number, number), of_row=True)

    def _named(self, value: SSAValue, slope: int = 0, modulus: int = 1, rest: int = 0) -> Line | Flag:
        """A value that has a name."""
        name = self.statements.name(value)
        if value.type == i1:
            return Flag(name)
        rest = rest % modulus if modulus else rest
        return Line(name, slope, modulus, rest, self.widths.of(value), self._is_of_row(value))

    def _is_of_row(self, value: SSAValue) -> bool:
        """Whether a value reads no column."""
        return self.reads.get(value, "nothing") in ("nothing", "row")

    def _new(self, text: str, stem: str = "byte", of_row: bool = False) -> str:
        """A name for what a text says."""
        name = self.statements.fresh_name(stem)
        self._print(f"{name} = {text}", of_row)
        return name

    def _print(self, text: str, of_row: bool) -> None:
        assert self.op is not None
        self.statements.lines = self.rows if of_row else self.lines
        self.statements.noted(text, self.op)

    def _one(self, op: Operation) -> None:
        """An op at the first column, unless it is of the row alone and printed."""
        if not self._is_of_row(op.results[0]):
            self.statements.lines = self.lines
            self.statements.one(op)

    # What an op is.

    def _class(self, op: Operation) -> Number | Condition | None:
        result = op.results[0]
        if isinstance(op, arith.ConstantOp):
            return self._of(result)
        if self._is_of_row(result) and result.type == i1:
            return self._named(result)
        operands = [self._of(v) for v in op.operands if not isinstance(v.type, TableType)]
        if any(x is None for x in operands):
            return None
        truths = [x for x in operands if isinstance(x, Condition)]
        numbers = [x for x in operands if isinstance(x, Number)]
        if sum(map(_parts, numbers)) > MOST_PARTS:
            return None
        match op, truths, numbers:
            case arith.CmpiOp(), [x, y], []:
                return self._same(op, x, y)
            case arith.CmpiOp(), [], [x, y]:
                return self._comparison(op, x, y)
            case arith.AndIOp() | arith.OrIOp() | arith.XOrIOp(), [x, y], []:
                return self._joined(op, x, y)
            case arith.SelectOp(), [Flag(), Flag(), Flag()], []:
                self._one(op)
                return self._named(result)
            case arith.SelectOp(), [p, x, y], []:
                return self._either(p, x, y)
            case arith.SelectOp(), [p], [x, y]:
                return self._chosen(op, isinstance(p, Flag), x, y) or Choice(p, x, y)
            case arith.MinSIOp() | arith.MaxSIOp(), [], [x, y]:
                return self._chosen(op, True, x, y) or Extreme(isinstance(op, arith.MaxSIOp), x, y)
            case arith.FloorDivSIOp() | ModOp(), [], [Line() as x, Line() as y]:
                return self._divided(op, x, y)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp(), [], [Line() as x, Line() as y]:
                return self._arithmetic(op, x, y)
            case FirstOp(), _, _ if not self._is_of_row(result):
                return None  # its body reads columns too
            case _ if all(isinstance(x, Flag) or (isinstance(x, Line) and not x.slope) for x in operands):
                self._one(op)
                return self._named(result)
            case _:
                return None

    def _arithmetic(self, op: Operation, x: Line, y: Line) -> Line | None:
        modulus, rest = 1, 0
        match op:
            case arith.AddiOp():
                slope, modulus, rest = x.slope + y.slope, gcd(x.modulus, y.modulus), x.rest + y.rest
            case arith.SubiOp():
                slope, modulus, rest = x.slope - y.slope, gcd(x.modulus, y.modulus), x.rest - y.rest
            case _:
                factor = x.constant if y.slope else y.constant
                if (x.slope or y.slope) and factor is None:
                    return None
                slope = (y.slope or x.slope) * (factor or 0)
                modulus, rest = gcd(x.modulus * y.modulus, x.modulus * y.rest, y.modulus * x.rest), x.rest * y.rest
        self._one(op)
        return self._line(op, slope, modulus, rest)

    def _line(self, op: Operation, slope: int, modulus: int, rest: int) -> Line:
        found = self._named(op.results[0], slope, modulus, rest)
        assert isinstance(found, Line)
        return found

    def _divided(self, op: Operation, x: Line, y: Line) -> Number | None:
        divisor, quotient = y.constant, isinstance(op, arith.FloorDivSIOp)
        if divisor is None or divisor < 1:
            if x.slope or y.slope:
                return None
            self._one(op)
            return self._line(op, 0, 1, 0)
        multiple, moves = x.modulus % divisor == 0, x.slope % divisor != 0
        if not moves or x.stays(divisor):
            self._one(op)
            if quotient:
                slope = 0 if moves else x.slope // divisor
                return self._line(op, slope, *((x.modulus // divisor, x.rest // divisor) if multiple else (1, 0)))
            return self._line(op, x.slope if moves else 0, gcd(x.modulus, divisor), x.rest % divisor)
        if quotient or not self.widths.of(op.results[0]).narrow:
            return None
        self._one(op)
        return Remainder(self._line(op, 0, gcd(x.modulus, divisor), x.rest % divisor), x.slope, divisor)

    def _chosen(self, op: Operation, one: bool, x: Number, y: Number) -> Line | None:
        """What an op chooses of two numbers where it chooses the same of all eight: lines of one slope, if `one`."""
        if not one or not isinstance(x, Line) or not isinstance(y, Line) or x.slope != y.slope:
            return None
        self._one(op)
        return self._line(op, x.slope, gcd(x.modulus, y.modulus, x.rest - y.rest), x.rest)

    # Conditions of conditions.

    def _as_byte(self, x: Condition) -> str:
        if isinstance(x, Byte):
            return x.text
        return {"True": "-1", "False": "0"}.get(x.text) or f"tl.where({x.text}, -1, 0)"

    def _not(self, x: Condition) -> Condition:
        if isinstance(x, Byte):
            return Byte(self._new(f"~{x.text}"))
        return Flag(self._new(f"{x.text} != True", "seen"))

    def _and(self, x: Condition, y: Condition) -> Condition:
        match x, y:
            case Flag(), Flag():
                return Flag(self._new(f"{x.text} & {y.text}", "seen"))
            case Byte(), Byte():
                return Byte(self._new(f"{x.text} & {y.text}"))
            case _:
                flag, byte = (x, y) if isinstance(x, Flag) else (y, x)
                return Byte(self._new(f"tl.where({flag.text}, {byte.text}, 0)"))

    def _or(self, x: Condition, y: Condition) -> Condition:
        match x, y:
            case Flag(), Flag():
                return Flag(self._new(f"{x.text} | {y.text}", "seen"))
            case Byte(), Byte():
                return Byte(self._new(f"{x.text} | {y.text}"))
            case _:
                flag, byte = (x, y) if isinstance(x, Flag) else (y, x)
                return Byte(self._new(f"tl.where({flag.text}, -1, {byte.text})"))

    def _joined(self, op: Operation, x: Condition, y: Condition) -> Condition | None:
        if isinstance(x, Flag) and isinstance(y, Flag):
            self._one(op)
            found = self._named(op.results[0])
            assert isinstance(found, Flag)
            return found
        match op:
            case arith.AndIOp():
                return self._and(x, y)
            case arith.OrIOp():
                return self._or(x, y)
            case _:
                return self._differ(x, y)

    def _differ(self, x: Condition, y: Condition) -> Condition:
        for one, other in ((x, y), (y, x)):
            if one == Flag("True"):
                return self._not(other)
        return Byte(self._new(f"{self._as_byte(x)} ^ {self._as_byte(y)}"))

    def _same(self, op: arith.CmpiOp, x: Condition, y: Condition) -> Condition | None:
        if isinstance(x, Flag) and isinstance(y, Flag):
            return self._joined(op, x, y)
        if op.predicate.value.data not in (EQ, NE):
            return None
        differ = self._differ(x, y)
        return differ if op.predicate.value.data == NE else self._not(differ)

    def _either(self, p: Condition, x: Condition, y: Condition) -> Condition:
        """`x` where p holds, else `y`."""
        if x == y:
            return x
        if isinstance(p, Flag):
            if isinstance(x, Flag) and isinstance(y, Flag):
                return Flag(self._new(f"tl.where({p.text}, {x.text}, {y.text})", "seen"))
            return Byte(self._new(f"tl.where({p.text}, {self._as_byte(x)}, {self._as_byte(y)})"))
        return self._or(self._and(p, x), self._and(Byte(f"~{p.text}"), y))

    # Comparisons.

    def _comparison(self, op: arith.CmpiOp, x: Number, y: Number) -> Number | Condition | None:
        predicate = op.predicate.value.data
        if predicate not in COMPARISON:
            return None
        if isinstance(x, Line) and isinstance(y, Line) and self._decided(predicate, x, y):
            self._one(op)
            return self._named(op.results[0])
        if _parts(x) * _parts(y) > MOST_PARTS:
            return None
        return self._compared(predicate, x, y)

    def _compared(self, predicate: int, x: Number, y: Number) -> Condition | None:
        if predicate in (GT, GE):
            return self._compared(LT if predicate == GT else LE, y, x)
        if predicate == NE:
            same = self._compared(EQ, x, y)
            return None if same is None else self._not(same)
        for one, other in ((x, y), (y, x)):
            if isinstance(one, Choice):
                parts = [
                    self._compared(predicate, part, other) if one is x else self._compared(predicate, other, part)
                    for part in (one.x, one.y)
                ]
                return None if parts[0] is None or parts[1] is None else self._either(one.condition, parts[0], parts[1])
            if isinstance(one, Remainder):
                if isinstance(other, Line) and other.constant is not None and self._is_short(one):
                    return self._remainder_compared(one, predicate, other.constant, one is x)
                if predicate == EQ and isinstance(other, Line) and not other.slope:
                    return self._remainder_is(one, other)
                turned = self._turned(one)
                if turned is None:
                    return None
                return self._compared(predicate, turned, y) if one is x else self._compared(predicate, x, turned)
        for one, other in ((x, y), (y, x)):
            if isinstance(one, Extreme):
                if predicate == EQ:
                    return self._both(self._compared(LE, x, y), self._compared(LE, y, x))
                parts = [
                    self._compared(predicate, part, other) if one is x else self._compared(predicate, other, part)
                    for part in (one.x, one.y)
                ]
                join = self._both if one.greater == (one is x) else self._any
                return join(*parts)
        assert isinstance(x, Line) and isinstance(y, Line)
        return self._lines(predicate, x, y)

    def _both(self, x: Condition | None, y: Condition | None) -> Condition | None:
        return None if x is None or y is None else self._and(x, y)

    def _any(self, x: Condition | None, y: Condition | None) -> Condition | None:
        return None if x is None or y is None else self._or(x, y)

    @staticmethod
    def _decided(predicate: int, x: Line, y: Line) -> bool:
        """Whether a comparison says of all eight columns what it says of the first."""
        if predicate in (GT, GE):
            return Bytes._decided(LT if predicate == GT else LE, y, x)
        steps = x.slope - y.slope
        if not steps or predicate in (EQ, NE):
            return not steps
        # The place where it turns is (difference + more) // |steps|: see `_lines`.
        difference = y.rest - x.rest if steps > 0 else x.rest - y.rest
        modulus, block = gcd(x.modulus, y.modulus), COLUMNS * abs(steps)
        turn = difference + _more(predicate, steps)
        return modulus % block == 0 and turn % block < abs(steps)

    def _lines(self, predicate: int, x: Line, y: Line) -> Condition | None:
        """x < y, x <= y or x == y, of lines: true before or from the place where they meet."""
        if self._decided(predicate, x, y):
            return Flag(self._new(f"{x.text} {COMPARISON[predicate]} {y.text}", "seen"))
        steps = x.slope - y.slope
        if predicate == EQ:
            if abs(steps) != 1:
                return self._both(self._lines(LE, x, y), self._lines(LE, y, x))
            place = self._place(*((y, x) if steps > 0 else (x, y)), 1, COLUMNS + 1, 1)
            return None if place is None else Byte(self._new(f"(1 << {place}) >> 1"))
        more = _more(predicate, steps)
        place = self._place(*((y, x) if steps > 0 else (x, y)), more, COLUMNS, abs(steps))
        if place is None:
            return None
        return Byte(self._new(f"~(-1 << {place})" if steps > 0 else f"-1 << {place}"))

    def _place(self, x: Line, y: Line, more: int, most: int, steps: int) -> str | None:
        """(x - y + more) // steps at the first column, from 0 to `most`: int32."""

        def fits(x: Line, y: Line) -> Interval:
            low, high = x.interval.low - y.interval.high, x.interval.high - y.interval.low
            return Interval(min(low, low + more), max(high, high + more))

        def near(other: Line) -> Interval:
            """What eight numbers may begin with that are not all on one side of the other one."""
            moved = (COLUMNS - 1) * abs(x.slope - y.slope) + 1
            return Interval(other.interval.low - moved, other.interval.high + moved)

        if not (fits(x, y).narrow and x.interval.narrow and y.interval.narrow) and not (x.slope and y.slope):
            if x.interval.narrow and not y.interval.narrow:
                y = self._held(y, near(x))
            elif y.interval.narrow and not x.interval.narrow:
                x = self._held(x, near(y))
            elif x.slope:
                y = self._held(y, near(x))
            else:
                x = self._held(x, near(y))
        reach, farthest = fits(x, y), most * steps
        if max(map(abs, (*reach, *x.interval, *y.interval, farthest))) >= LARGEST:
            return None
        narrow = all(one.narrow for one in (reach, x.interval, y.interval, Interval(0, farthest)))
        text = x.text if narrow else f"wide({x.text})"
        if y.constant is not None and abs(more - y.constant) < 2**31 - 1:
            more -= y.constant
        else:
            text += f" - {y.text}"
        text += f" + {more}" if more > 0 else f" - {-more}" if more else ""
        text = f"tl.minimum(tl.maximum({text}, 0), {farthest})"
        if steps != 1:
            text = f"({text} // {steps})"
        return text if narrow else f"{text}.to(tl.int32)"

    def _held(self, x: Line, interval: Interval) -> Line:
        """A number that is compared with what lies near an interval, itself in that interval: the nearest."""
        low, high = interval
        if max(-low, high) >= LARGEST or (low <= x.interval.low and x.interval.high <= high):
            return x
        if x.constant is not None:
            return self._constant(min(max(x.constant, low), high))
        key = (x.text, interval)
        if key not in self.clamped:
            ends = Interval(min(max(x.interval.low, low), high), max(min(x.interval.high, high), low))
            narrow = x.interval.narrow and low >= -(2**31) and high < 2**31
            text = f"tl.minimum(tl.maximum({x.text if narrow else f'wide({x.text})'}, {low}), {high})"
            text += ".to(tl.int32)" if ends.narrow and not narrow else ""
            self.clamped[key] = replace(x, text=self._new(text, "at", x.of_row), interval=ends, modulus=1, rest=0)
        return self.clamped[key]

    # Remainders.

    def _remainder_is(self, x: Remainder, y: Line) -> Condition | None:
        """Whether a remainder is a number: every divisor-th bit from the first column where it is."""
        low, high = y.interval
        if abs(x.slope) != 1 or low < 0 or high >= x.divisor:
            turned = self._turned(x)
            return None if turned is None else self._compared(EQ, turned, y)
        ends = (y.text, x.first.text) if x.slope > 0 else (x.first.text, y.text)
        if ends == (x.first.text, "0"):
            place = x.first.text
        else:
            place = self._new(" - ".join(ends), "at")
            around = f"tl.where({place} < 0, {place} + {x.divisor}, {place})"
            place = self._new(f"{place} & {x.divisor - 1}" if x.divisor & (x.divisor - 1) == 0 else around, "at")
        if x.divisor > COLUMNS:
            place = f"tl.minimum({place}, {COLUMNS})"
        return Byte(self._new(f"{sum(1 << c for c in range(0, COLUMNS, x.divisor))} << {place}"))

    @staticmethod
    def _is_short(x: Remainder) -> bool:
        """Whether every remainder, and seven steps more, has a bit of an int32."""
        return abs(x.slope) == 1 and x.divisor + COLUMNS < 31

    def _remainder_compared(self, x: Remainder, predicate: int, number: int, first: bool) -> Byte:
        """Whether a short remainder, `first` or not, is less than a number, and so on: a constant pattern, from where
        the first column stands in it."""

        def holds(remainder: int) -> bool:
            left, right = (remainder, number) if first else (number, remainder)
            return left == right if predicate == EQ else left < right if predicate == LT else left <= right

        pattern = sum(1 << m for m in range(x.divisor + COLUMNS) if holds(x.slope * m % x.divisor))
        place = x.first.text if x.slope > 0 else f"({x.divisor} - {x.first.text})"
        return Byte(self._new(f"{pattern} >> {place}"))

    def _turned(self, x: Remainder) -> Number | None:
        """A remainder as a line that starts anew at most once in eight columns."""
        moved, divisor = (COLUMNS - 1) * abs(x.slope), x.divisor
        reach = Interval(-divisor, 2 * divisor)
        if moved >= divisor or not reach.narrow:
            return None
        line = replace(x.first, slope=x.slope, interval=reach)
        again = f"{line.text} {'-' if x.slope > 0 else '+'} {divisor}"
        other = replace(line, text=self._new(again, "at"))
        ends = (line, self._constant(divisor)) if x.slope > 0 else (self._constant(0), line)
        before = self._lines(LT if x.slope > 0 else LE, *ends)
        return None if before is None else Choice(before, line, other)


def _parts(x: Number) -> int:
    """How many lines a number is made of."""
    match x:
        case Line():
            return 1
        case Remainder():
            return 2
        case Extreme() | Choice():
            return _parts(x.x) + _parts(x.y)


def _more(predicate: int, steps: int) -> int:
    """What is added to the difference of two lines before it is divided by the steps between two columns:

    x + steps * c <= y,  steps > 0:   c < (y - x + steps) // steps
                         steps < 0:   c >= (x - y + |steps| - 1) // |steps|
    """
    strict = int(predicate == LT)
    return steps - strict if steps > 0 else strict - steps - 1
