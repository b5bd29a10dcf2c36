"""SSA of a preprocess kernel as Triton statements: one op, one line, with the clause it came from.

The table `TEXT` says how an op is written; constants and lengths are written where they are used. Names are made from
numbers and from checked identifiers with a prefix, so that no name of a spec can be a Python name of the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, NameLoc, i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cmir.dialects.descriptor import FirstOp, LengthOp, PreprocessOp
from cmir.dialects.maskspec import ColsOp, LookupOp, ModOp, RowsOp, TableType
from cmir.lowering.saturation import compared
from cmir.lowering.widths import Widths

TEXT: Mapping[type[Operation], str] = {
    arith.AddiOp: "{0} + {1}",
    arith.SubiOp: "{0} - {1}",
    arith.MuliOp: "{0} * {1}",
    arith.FloorDivSIOp: "floor_div({0}, {1})",
    ModOp: "floor_mod({0}, {1})",
    arith.MinSIOp: "tl.minimum({0}, {1})",
    arith.MaxSIOp: "tl.maximum({0}, {1})",
    arith.AndIOp: "{0} & {1}",
    arith.OrIOp: "{0} | {1}",
    arith.SelectOp: "tl.where({0}, {1}, {2})",
}
COMPARISON = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}
INDENT = "    "
WIDTH = 120


class Statements:
    """Prints the ops of one block, nested searches included."""

    def __init__(
        self,
        preprocess: PreprocessOp,
        here: Sequence[tuple[BlockArgument, str | None, str]],
        vector: str,
        widths: Widths | None = None,
    ) -> None:
        """The code runs over index vectors: each of `here` is (argument, the kind of table that it indexes unclamped,
        how it is written). A search is one over `vector`. Numbers are int64, or where `widths` says so int32."""
        self.preprocess = preprocess
        self.widths = widths
        self.unclamped = {(argument, kind) for argument, kind, _ in here}
        self.vector = vector
        self.names: dict[SSAValue, str] = {argument: name for argument, _, name in here}
        self.kinds = dict(zip(preprocess.body.block.args, preprocess.kinds, strict=True))
        self.lines: list[str] = []
        self.count = 0
        self.loaded: dict[str, str] = {}
        self.nearest: dict[SSAValue, str] = {}

    def preamble(self) -> Iterator[str]:
        """Loads of the scalars that were used."""
        for name, local in self.loaded.items():
            yield f"{local} = {self.scalar(name)}"

    def scalar(self, name: str) -> str:
        """The load of a scalar."""
        argument = next(a for a, (named, _) in self.kinds.items() if named == name)
        return self._read(argument, f"scalar_entry(meta_{name}, stride_{name}, pointer_{name}, z)")

    def block(self, block: Block, depth: int = 1) -> None:
        """Every op of the block but its terminator."""
        for op in block.ops:
            if op.next_op is not None:
                self._op(op, depth)

    def one(self, op: Operation) -> None:
        """One op."""
        self._op(op, 1)

    def noted(self, text: str, op: Operation) -> None:
        """A line of one's own, with what `op` says it belongs to."""
        self._line(text, 1, op)

    def fresh_name(self, stem: str) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{stem}_{self.count}"

    def name(self, value: SSAValue) -> str:
        """How a value is written: a constant in place, a length or metadatum by its name."""
        if value in self.names:
            return self.names[value]
        if isinstance(value, BlockArgument):
            name, _ = self.kinds[value]
            self.loaded[name] = f"value_{name}"
            return self.loaded[name]
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as attr):
                number = attr.value.data
                return str(number != 0) if value.type == i1 else str(number) if number >= 0 else f"({number})"
            case RowsOp():
                return "rows"
            case ColsOp():
                return "cols"
            case LengthOp() as length:
                return f"length_{self.kinds[_argument(length.table)][0]}"
            case owner:
                raise AssertionError(f"{owner} has not been printed yet")

    def _op(self, op: Operation, depth: int) -> None:
        if isinstance(op, arith.ConstantOp | RowsOp | ColsOp | LengthOp):
            return
        if isinstance(op, FirstOp):
            self._first(op, depth)
            return
        result = self._fresh(op)
        self._line(f"{result} = {self._text(op)}", depth, op)
        self._keep_nearest(op, result, depth)

    def _text(self, op: Operation) -> str:
        args = [self.name(v) for v in op.operands if not isinstance(v.type, TableType)]
        match op:
            case arith.CmpiOp():
                left, right = self._side(op.lhs, op.rhs), self._side(op.rhs, op.lhs)
                return f"{left} {COMPARISON[op.predicate.value.data]} {right}"
            case arith.XOrIOp():
                return f"{args[0]} != {args[1]}"
            case LookupOp():
                return self._lookup(op)
            case arith.FloorDivSIOp() | ModOp():
                return self._held(op, self.divided(op, args[0]))
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp():
                return TEXT[type(op)].format(self.widened(op, args[0]), args[1])
            case _:
                return self._held(op, TEXT[type(op)].format(*args))

    def divided(self, op: arith.FloorDivSIOp | ModOp, number: str) -> str:
        """A number, written `number` and from where the operand of `op` is, divided as `op` divides."""
        divisor, text = self.name(op.rhs), TEXT[type(op)]
        if not isinstance(op.rhs.owner, arith.ConstantOp):
            divisor = f"tl.maximum({divisor}, 1)"
        if self.widths is None:
            return text.format(number, divisor)
        (low, _), (least, most) = self.widths.of(op.lhs), self.widths.of(op.rhs)
        quotient = isinstance(op, arith.FloorDivSIOp)
        if least == most and least > 0 and least & (least - 1) == 0:  # of any sign
            return f"{number} >> {least.bit_length() - 1}" if quotient else f"{number} & {least - 1}"
        if low >= 0:
            return f"{number} {'//' if quotient else '%'} {divisor}"
        if self.widths.narrow(op.lhs) and most - 1 - low >= 2**31:  # what `floor_div` makes on its way
            number = f"wide({number})"
        return text.format(number, divisor)

    def widened(self, op: Operation, operand: str) -> str:
        """The first operand of a sum, difference or product whose result does not fit where its operands do."""
        narrow = self.widths is None or self.widths.narrow(op.results[0])
        return operand if narrow or not all(map(self._in_32_bits, op.operands)) else f"wide({operand})"

    def _held(self, op: Operation, text: str) -> str:
        """The text of a result that is narrower than what it is made of."""
        wide = self.widths is None or not self.widths.narrow(op.results[0])
        return text if wide or all(map(self._in_32_bits, op.operands)) else f"({text}).to(tl.int32)"

    def _in_32_bits(self, value: SSAValue) -> bool:
        """Whether a value is, or becomes, an int32: a constant is of the type of what stands beside it."""
        return self.widths is not None and (self.widths.narrow(value) or isinstance(value.owner, arith.ConstantOp))

    def _side(self, value: SSAValue, other: SSAValue) -> str:
        """One side of a comparison: beside a narrow number, the narrow one that compares as it does."""
        if self.widths is None or self._in_32_bits(value) or not self.widths.narrow(other):
            return self.name(value)
        return self.nearest.get(value) or f"narrow({self.name(value)})"

    def _keep_nearest(self, op: Operation, name: str, depth: int) -> None:
        """Of a wide number that is compared with narrow ones, the nearest narrow one is found where it is made."""
        (value,) = op.results
        if self.widths is None or self.widths.narrow(value):
            return
        users = [use.operation for use in value.uses]
        if any(isinstance(user, arith.CmpiOp) and any(map(self.widths.narrow, user.operands)) for user in users):
            self.nearest[value] = f"{name}_near"
            self._line(f"{name}_near = narrow({name})", depth, op)

    def _lookup(self, op: LookupOp) -> str:
        assert op.table is not None, "constant tables are folded"
        name, kind = self.kinds[_argument(op.table)]
        table = f"meta_{name}, stride_{name}"
        length = {"row": "rows", "col": "cols"}.get(kind, f"length_{name}")
        valid = (op.index, kind) in self.unclamped  # the caller keeps the index itself in range
        index = self.name(op.index)
        if len(op.indices) == 2:
            assert isinstance(op.table, BlockArgument) and isinstance(op.table.type, TableType)
            width = op.table.type.entries or 1
            index = index if valid else f"tl.minimum(tl.maximum({index}, 0), {length} - 1)"
            if self.widths is not None:
                index, length = f"wide({index})", f"wide({length})"
            index, length = f"{index} * {width} + {self._number(op.indices[1], width)}", f"{length} * {width}"
        load = f"table_entry({table}, {index}, z)" if valid else f"nearest_entry({table}, {index}, {length}, z)"
        return self._read(op.result, load)

    def _read(self, value: SSAValue, load: str) -> str:
        """A metadatum as it is read: what is only compared, as it is; what is reckoned with, as int64, saturated."""
        if value not in compared(self.preprocess):
            return f"saturate({load})"
        return f"wide({load})" if self.widths is None else load

    def _number(self, value: SSAValue, width: int) -> str:
        """Which of `width` integers of an entry is read: the nearest that exists."""
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as attr):
                return str(min(max(attr.value.data, 0), width - 1))
            case _:
                return f"tl.minimum(tl.maximum({self.name(value)}, 0), {width - 1})"

    def _first(self, op: FirstOp, depth: int) -> None:
        """A binary search: the answer lies in [low, high], which halves until it is one place."""
        result = self._fresh(op)
        low, high, middle, steps = (f"{result}_{part}" for part in ("low", "high", "middle", "steps"))
        lo, hi = self.name(op.lo), self.name(op.hi)
        # Wide whatever its ends: their sums are.
        vector, last = (self.vector, hi) if self.widths is None else (f"wide({self.vector})", f"wide({hi})")
        self._line(f"{low} = tl.zeros_like({vector}) + {lo}", depth, op)
        self._line(f"{high} = tl.zeros_like({vector}) + tl.maximum({lo}, {hi})", depth)
        # As many steps as halve the longest range of all to nothing: then no other has anything left to search.
        one = (_uniform(op.lo) and _uniform(op.hi)) or self.vector == "z"
        self._line(f"{steps} = {last} - {lo}" if one else f"{steps} = tl.max({high} - {low})", depth)
        self._line(f"while {steps} > 0:", depth)
        self._line(f"{middle} = ({low} + {high}) // 2", depth + 1)
        self.names[op.body.block.args[0]] = middle
        self.block(op.body.block, depth + 1)
        terminator = op.body.block.last_op
        assert terminator is not None
        holds = self.name(terminator.operands[0])
        self._line(f"{result}_open = {low} < {high}", depth + 1)
        self._line(f"{result}_found = {result}_open & {holds}", depth + 1)
        self._line(f"{low} = tl.where({result}_open & ({result}_found == 0), {middle} + 1, {low})", depth + 1)
        self._line(f"{high} = tl.where({result}_found, {middle}, {high})", depth + 1)
        self._line(f"{steps} = {steps} // 2", depth + 1)
        held = self.widths is not None and self.widths.narrow(op.result)
        self._line(f"{result} = tl.where({lo} < {hi}, {low}, {hi}){'.to(tl.int32)' if held else ''}", depth)
        self._keep_nearest(op, result, depth)

    def _fresh(self, op: Operation) -> str:
        name = self.fresh_name("first" if isinstance(op, FirstOp) else "seen" if op.results[0].type == i1 else "at")
        self.names[op.results[0]] = name
        return name

    def _line(self, text: str, depth: int, op: Operation | None = None) -> None:
        # The op says what it belongs to; nothing but printable characters of it reaches the source.
        words = op.location.desc.data if op is not None and isinstance(op.location, NameLoc) else ""
        note = re.sub(r"[^ -~]", "?", words)
        line = INDENT * depth + text
        if note and len(line) + len(note) + 4 > WIDTH:
            self.lines.append(f"{INDENT * depth}# {note}")
        elif note:
            line += f"  # {note}"
        self.lines.append(line)


def _uniform(value: SSAValue) -> bool:
    """Whether a value is one number, whatever the index that the code runs at: it reads scalars and lengths alone."""
    if isinstance(value, BlockArgument):
        parent = value.owner.parent_op()
        return isinstance(parent, PreprocessOp)
    owner = value.owner
    return isinstance(owner, Operation) and not isinstance(owner, FirstOp) and all(map(_uniform, owner.operands))


def _argument(value: SSAValue) -> BlockArgument:
    assert isinstance(value, BlockArgument)
    return value
