"""`attention`: the attention kernels as structure. What they share is in the skeletons; what a mask decides, here.

    kernel ::= `attention.kernel` symbol (`forward` | `dq` | `dkv`) `of` symbol `{` tiles tiles `}`
    tiles  ::= `attention.tiles` (`partial` | `full`) `schedule` (`rows` | `cols`) `{` visible? `}`
    visible ::= `attention.visible` `axis` (`rows` | `cols`) `slots` integer (`unrolled` | `live`)

A kernel walks the partial tiles of its schedule, then the full ones. Only partial tiles test visibility, by one
unsigned compare per slot against the interval table of `axis`: `unrolled` tests every slot, `live` those that touch the
tile. forward and dq own a tile of rows and walk the row schedule; dkv owns a tile of columns and walks the column
schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from xdsl.dialects.builtin import IntAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, lazy_traits_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.interval import AXES

Role = Literal["forward", "dq", "dkv"]
ROLES: Final[tuple[Role, ...]] = ("forward", "dq", "dkv")
SCHEDULE: Final[Mapping[Role, str]] = {"forward": "rows", "dq": "rows", "dkv": "cols"}


@irdl_op_definition
class VisibleOp(IRDLOperation):
    """`attention.visible axis rows slots 2 unrolled`: the test of a partial tile."""

    name = "attention.visible"
    axis = prop_def(StringAttr)
    slots = prop_def(IntAttr)
    mode = prop_def(StringAttr)
    traits = lazy_traits_def(lambda: (HasParent(TilesOp),))

    def __init__(self, axis: str, slots: int, mode: str):
        super().__init__(properties={"axis": StringAttr(axis), "slots": IntAttr(slots), "mode": StringAttr(mode)})

    @classmethod
    def parse(cls, parser: Parser) -> VisibleOp:
        parser.parse_keyword("axis")
        axis = parser.parse_keyword_in(AXES, " in attention.visible")
        parser.parse_keyword("slots")
        slots = parser.parse_integer()
        return cls(axis, slots, parser.parse_keyword_in(("unrolled", "live"), " in attention.visible"))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" axis {self.axis.data} slots {self.slots.data} {self.mode.data}")

    def verify_(self) -> None:
        if self.axis.data not in AXES or self.mode.data not in ("unrolled", "live") or self.slots.data < 0:
            raise VerifyException("visibility is tested on an axis, for a number of slots, unrolled or live")


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
        role = parser.parse_keyword_in(ROLES, " in attention.kernel")
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
        if self.role.data not in ROLES:
            raise VerifyException(f"a kernel is {', '.join(ROLES)}, got '{self.role.data}'")
        loops = [op for op in self.body.block.ops if isinstance(op, TilesOp)]
        if [t.state.data for t in loops] != ["partial", "full"] or len(loops) != len(list(self.body.block.ops)):
            raise VerifyException("a kernel walks its partial tiles, then its full tiles")
        want = SCHEDULE[self.role.data]  # pyright: ignore[reportArgumentType]
        if any(t.schedule.data != want for t in loops):
            raise VerifyException(f"a {self.role.data} kernel walks the {want} schedule")


Attention = Dialect("attention", [KernelOp, TilesOp, VisibleOp], [])
