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
    ) -> None:
        """The code runs over index vectors: each of `here` is (argument, the kind of table that it indexes unclamped,
        how it is written). A search is one over `vector`."""
        self.preprocess = preprocess
        self.unclamped = {(argument, kind) for argument, kind, _ in here}
        self.vector = vector
        self.names: dict[SSAValue, str] = {argument: name for argument, _, name in here}
        self.kinds = dict(zip(preprocess.body.block.args, preprocess.kinds, strict=True))
        self.lines: list[str] = []
        self.count = 0
        self.loaded: dict[str, str] = {}

    def preamble(self) -> Iterator[str]:
        """Loads of the scalars that were used."""
        for name, local in self.loaded.items():
            yield f"{local} = {self.scalar(name)}"

    def scalar(self, name: str) -> str:
        """The load of a scalar."""
        argument = next(a for a, (named, _) in self.kinds.items() if named == name)
        return f"{self._as_read(argument)}(scalar_entry(meta_{name}, stride_{name}, pointer_{name}, z))"

    def block(self, block: Block, depth: int = 1) -> None:
        """Every op of the block but its terminator."""
        for op in block.ops:
            if op.next_op is not None:
                self._op(op, depth)

    def one(self, op: Operation) -> None:
        """One op."""
        self._op(op, 1)

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

    def _text(self, op: Operation) -> str:
        args = [self.name(v) for v in op.operands if not isinstance(v.type, TableType)]
        match op:
            case arith.CmpiOp():
                return f"{args[0]} {COMPARISON[op.predicate.value.data]} {args[1]}"
            case arith.XOrIOp():
                return f"{args[0]} != {args[1]}"
            case LookupOp():
                return self._lookup(op)
            case arith.FloorDivSIOp() | ModOp() if not isinstance(op.operands[1].owner, arith.ConstantOp):
                return TEXT[type(op)].format(args[0], f"tl.maximum({args[1]}, 1)")
            case _:
                return TEXT[type(op)].format(*args)

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
            index, length = f"{index} * {width} + {self._number(op.indices[1], width)}", f"{length} * {width}"
        load = f"table_entry({table}, {index}, z)" if valid else f"nearest_entry({table}, {index}, {length}, z)"
        return f"{self._as_read(op.result)}({load})"

    def _as_read(self, value: SSAValue) -> str:
        """How a metadatum is read as int64: what is only compared, whatever it is; what is reckoned with, saturated."""
        return "wide" if value in compared(self.preprocess) else "saturate"

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
        self._line(f"{low} = tl.zeros_like({self.vector}) + {lo}", depth, op)
        self._line(f"{high} = tl.zeros_like({self.vector}) + tl.maximum({lo}, {hi})", depth)
        # As many steps as halve the longest range of all to nothing: then no other has anything left to search.
        one = (_uniform(op.lo) and _uniform(op.hi)) or self.vector == "z"
        self._line(f"{steps} = {hi} - {lo}" if one else f"{steps} = tl.max({high} - {low})", depth)
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
        self._line(f"{result} = tl.where({lo} < {hi}, {low}, {hi})", depth)

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
