"""`attention`: the attention kernels as structure. What they share is in the skeletons; what a mask decides, here.

    tests   ::= `attention.tests` `of` symbol `forward` test `,` `dq` test `,` `dkv` test `symmetric`?
    test    ::= `rows` | `cols` | `bits`
    kernel  ::= `attention.kernel` symbol (`forward` | `dq` | `dkv` | `backward`) `of` symbol `{` tiles tiles `}`
    tiles   ::= `attention.tiles` (`partial` | `full`) `schedule` (`rows` | `cols`) `{` visible? `}`
    visible ::= `attention.visible` (`axis` (`rows` | `cols`) `slots` integer mode | `bits`)
    mode    ::= `unrolled` | `live` | `words` | `live` `words`

A kernel walks the partial tiles of its schedule, then the full ones. Only partial tiles test visibility. Against the
interval table of an `axis` that is one unsigned compare per slot: `unrolled` tests every slot, `live` those that touch
the tile. `bits` reads the words that the preprocess kernel packed: bit j % 32 of word (i, j // 32) says whether row i
sees column j. With `words` the slots, or the `live` ones, become such words first, and no pair is compared. forward and
dq own a tile of rows and walk the row schedule; dkv and backward, which computes all three gradients, own a tile of
columns and walk the column schedule.

`attention.tests` stands beside the interval tables of a mask and says which of the three each kernel tests. Bits serve
all kernels of a mask or none. Where a mask is `symmetric` and has as many rows as columns, the table of rows is that of
columns too, and the descriptor has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.interval import AXES, TableOp

Role = Literal["forward", "dq", "dkv"]
ROLES: Final[tuple[Role, ...]] = ("forward", "dq", "dkv")

WordRole = Literal["forward", "backward"]
WORD_ROLES: Final[tuple[WordRole, ...]] = ("forward", "backward")
"""The kernels that test words; the others compare pairs, or read bits."""

SCHEDULE: Final[Mapping[Role | WordRole, str]] = {"forward": "rows", "dq": "rows", "dkv": "cols", "backward": "cols"}

MODES: Final[tuple[str, ...]] = ("unrolled", "live", "words", "live words")

Test = Literal["rows", "cols", "bits"]
TESTS: Final[tuple[Test, ...]] = ("rows", "cols", "bits")


@irdl_op_definition
class TestsOp(IRDLOperation):
    """`attention.tests of @hstu forward rows, dq rows, dkv cols`: what each kernel of a mask tests in partial tiles."""

    name = "attention.tests"
    spec = prop_def(SymbolNameConstraint())
    chosen = prop_def(ArrayAttr[StringAttr])
    symmetric = opt_prop_def(UnitAttr)

    def __init__(self, spec: str, chosen: Sequence[str], symmetric: bool = False):
        """`chosen` is in the order of ROLES."""
        properties: dict[str, Attribute | None] = {
            "spec": StringAttr(spec),
            "chosen": ArrayAttr([StringAttr(test) for test in chosen]),
        }
        if symmetric:
            properties["symmetric"] = UnitAttr()
        super().__init__(properties=properties)

    @property
    def tests(self) -> dict[Role, Test]:
        return {role: cast(Test, test.data) for role, test in zip(ROLES, self.chosen, strict=True)}

    @property
    def bits(self) -> bool:
        return "bits" in self.tests.values()

    @classmethod
    def parse(cls, parser: Parser) -> TestsOp:
        parser.parse_keyword("of")
        spec = parser.parse_symbol_name().data
        chosen: list[str] = []
        for role in ROLES:
            if chosen:
                parser.parse_punctuation(",")
            parser.parse_keyword(role)
            chosen.append(parser.parse_keyword_in(TESTS, " in attention.tests"))
        return cls(spec, chosen, symmetric=parser.parse_optional_keyword("symmetric") is not None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" of ")
        printer.print_symbol_name(self.spec.data)
        printer.print_string(" " + ", ".join(f"{role} {test}" for role, test in self.tests.items()))
        if self.symmetric is not None:
            printer.print_string(" symmetric")

    def verify_(self) -> None:
        if len(self.chosen) != len(ROLES) or not all(test.data in TESTS for test in self.chosen):
            raise VerifyException(f"{', '.join(ROLES)} each test one of {', '.join(TESTS)}")
        if self.bits and set(self.tests.values()) != {"bits"}:
            raise VerifyException("bits serve all kernels of a mask or none")
        slots = {t.axis.data: None if t.slots is None else t.slots.data for t in self._tables()}
        if self.symmetric is not None and (self.bits or len(set(slots.values())) > 1):
            raise VerifyException(f"one table serves both axes only if both have as many slots; they have {slots}")
        for role, test in self.tests.items():
            if any(t.axis.data == test and t.residual_span is not None for t in self._tables()):
                raise VerifyException(f"{role} tests {test}, which no number of intervals says")

    def _tables(self) -> list[TableOp]:
        block = self.parent_block()
        return [op for op in block.ops if isinstance(op, TableOp) and op.spec == self.spec] if block else []


@irdl_op_definition
class VisibleOp(IRDLOperation):
    """`attention.visible axis rows slots 2 unrolled`, or `attention.visible bits`: the test of a partial tile."""

    name = "attention.visible"
    axis = opt_prop_def(StringAttr)
    slots = opt_prop_def(IntAttr)
    mode = prop_def(StringAttr)
    traits = lazy_traits_def(lambda: (HasParent(TilesOp),))

    def __init__(self, mode: str, axis: str | None = None, slots: int | None = None):
        properties: dict[str, Attribute | None] = {"mode": StringAttr(mode)}
        if axis is not None and slots is not None:
            properties |= {"axis": StringAttr(axis), "slots": IntAttr(slots)}
        super().__init__(properties=properties)

    @property
    def table(self) -> tuple[str, int] | None:
        """The axis and the slots of the interval table that is tested; None for bits."""
        return None if self.axis is None or self.slots is None else (self.axis.data, self.slots.data)

    @classmethod
    def parse(cls, parser: Parser) -> VisibleOp:
        if parser.parse_optional_keyword("bits"):
            return cls("bits")
        parser.parse_keyword("axis", " or 'bits'")
        axis = parser.parse_keyword_in(AXES, " in attention.visible")
        parser.parse_keyword("slots")
        slots = parser.parse_integer()
        mode = parser.parse_keyword_in(("unrolled", "live", "words"), " in attention.visible")
        if mode == "live" and parser.parse_optional_keyword("words"):
            mode = "live words"
        return cls(mode, axis, slots)

    def print(self, printer: Printer) -> None:
        where = "" if self.table is None else " axis {} slots {}".format(*self.table)
        printer.print_string(f"{where} {self.mode.data}")

    def verify_(self) -> None:
        if self.mode.data == "bits" and self.axis is None and self.slots is None:
            return
        axis, slots = self.table or ("", -1)
        if self.mode.data not in MODES or axis not in AXES or slots < 0:
            raise VerifyException(
                f"visibility is tested by bits, or on an axis for a number of slots: {', '.join(MODES)}"
            )


@irdl_op_definition
class TilesOp(IRDLOperation):
    """`attention.tiles partial schedule rows { ... }`: one loop over listed tiles."""

    name = "attention.tiles"
    state = prop_def(StringAttr)
    schedule = prop_def(StringAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(KernelOp), NoTerminator()))

    def __init__(self, state: str, schedule: str, body: Region | Sequence[Operation]):
        super().__init__(
            properties={"state": StringAttr(state), "schedule": StringAttr(schedule)},
            regions=[body if isinstance(body, Region) else Region(Block(body))],
        )

    @property
    def visible(self) -> VisibleOp | None:
        return next((op for op in self.body.block.ops if isinstance(op, VisibleOp)), None)

    @classmethod
    def parse(cls, parser: Parser) -> TilesOp:
        state = parser.parse_keyword_in(("partial", "full"), " in attention.tiles")
        parser.parse_keyword("schedule")
        schedule = parser.parse_keyword_in(AXES, " in attention.tiles")
        body = parser.parse_region()
        return cls(state, schedule, body if body.blocks else Region(Block()))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.state.data} schedule {self.schedule.data} ")
        printer.print_region(self.body, print_empty_block=False)

    def verify_(self) -> None:
        ops = list(self.body.block.ops)
        wanted = 1 if self.state.data == "partial" else 0
        if len(ops) != wanted or not all(isinstance(op, VisibleOp) for op in ops):
            raise VerifyException("partial tiles test visibility once, full tiles not at all")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """`attention.kernel @hstu_forward forward of @hstu_preprocess { ... }`."""

    name = "attention.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    role = prop_def(StringAttr)
    preprocess = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, role: str, preprocess: str, body: Region | Sequence[TilesOp]):
        super().__init__(
            properties={"sym_name": StringAttr(name), "role": StringAttr(role), "preprocess": StringAttr(preprocess)},
            regions=[body if isinstance(body, Region) else Region(Block(body))],
        )

    @property
    def visible(self) -> VisibleOp:
        """The visibility test of the partial tiles."""
        found = next(op for t in self.body.block.ops if isinstance(t, TilesOp) for op in [t.visible] if op is not None)
        return found

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name().data
        role = parser.parse_keyword_in(tuple(SCHEDULE), " in attention.kernel")
        parser.parse_keyword("of")
        return cls(name, role, parser.parse_symbol_name().data, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" {self.role.data} of ")
        printer.print_symbol_name(self.preprocess.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)

    def verify_(self) -> None:
        if self.role.data not in SCHEDULE:
            raise VerifyException(f"a kernel is {', '.join(SCHEDULE)}, got '{self.role.data}'")
        loops = [op for op in self.body.block.ops if isinstance(op, TilesOp)]
        if [t.state.data for t in loops] != ["partial", "full"] or len(loops) != len(list(self.body.block.ops)):
            raise VerifyException("a kernel walks its partial tiles, then its full tiles")
        want = SCHEDULE[self.role.data]
        if any(t.schedule.data != want for t in loops):
            raise VerifyException(f"a {self.role.data} kernel walks the {want} schedule")


Attention = Dialect("attention", [TestsOp, KernelOp, TilesOp, VisibleOp], [])
