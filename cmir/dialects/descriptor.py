"""`descriptor`: the preprocess kernel, as the code it computes per row, per column and per fact.

    preprocess ::= `descriptor.preprocess` symbol `of` symbol `(` metadata `)` `symmetric`? `{` part* `}`
    part       ::= slots | hull | pair | fact
    metadata   ::= (`%`name `:` type (`,` `%`name `:` type)*)?
    slots      ::= `descriptor.slots` (`rows` | `cols`) `(%i)` `{` SSA endpoints `}`             // once a bounded axis
    endpoints  ::= `descriptor.endpoints` slot*                                                  // slot 0, slot 1, ...
    slot       ::= `[` `%`lo `,` `%`hi `)` (`from` string (`,` string)*)?                        // clauses that use it
    hull       ::= `descriptor.hull` `(%i)` `{` SSA endpoints `}`                                // one slot
    pair       ::= `descriptor.pair` `(%i, %j)` `{` SSA holds `}`
    fact       ::= `descriptor.fact` integer string `over` domain (`(%i)`)? `{` SSA holds `}`
    domain     ::= `scalar` | `row` | `col` | `entry`
    holds      ::= `descriptor.holds` `%`p
    first      ::= `%`r `=` `descriptor.first` `%`k `in` `[` `%`lo `,` `%`hi `)` `{` SSA holds `}` // a binary search
    length     ::= `%`n `=` `descriptor.length` `%`table                                         // of a free table

A mask has slots on an axis or two, or it has `hull` and `pair`: then it is tested by packed bits. `pair` is the mask
itself, row %i sees column %j; only columns in the row's hull are asked about. Where a mask is `symmetric` and has as
many rows as columns, the slots of rows are stored for columns too.

The index `%i` of a row, column or entry is a vector: the code runs for many at once. The SSA is `arith` on `index`,
`maskspec.lookup`, `maskspec.mod`, `maskspec.rows`, `maskspec.cols` and the ops above.
Endpoints are clamped into the other axis and empty slots are [0, 0), so that no metadata, however wrong, makes a kernel
leave its tables. What the kernel does around this code (tile states, schedules, area, status) is the same for every
mask: `cmir/lowering/skeletons/preprocess.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, StringAttr, SymbolNameConstraint, UnitAttr, i1
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.interval import AXES
from cmir.dialects.maskspec import IDENTIFIER, INDEX, Parameter, TableType, parse_value

DOMAINS = ("scalar", "row", "col", "entry")


def _print_body(printer: Printer, body: Region) -> None:
    """`(%i) { ... }`, the parentheses only where the block has arguments."""
    if body.block.args:
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(body.block.args, printer.print_ssa_value)
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False)


def _parse_body(parser: Parser) -> Region:
    args = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(INDEX)
    )
    return parser.parse_region(args or [])


def _binds_one_index(body: Region) -> bool:
    return [a.type for a in body.block.args] == [INDEX]


@irdl_op_definition
class HoldsOp(IRDLOperation):
    """`descriptor.holds %p`: the condition of a fact, a search or a pair."""

    name = "descriptor.holds"
    condition = operand_def(i1)
    traits = lazy_traits_def(lambda: (HasParent(FactOp, FirstOp, PairOp), IsTerminator()))

    def __init__(self, condition: SSAValue | Operation):
        super().__init__(operands=[condition])

    @classmethod
    def parse(cls, parser: Parser) -> HoldsOp:
        return cls(parser.parse_operand(i1))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)


@irdl_op_definition
class FirstOp(IRDLOperation):
    """`%r = descriptor.first %k in [%lo, %hi) { ... }`: the least %k for which the body holds, %hi if none does.

    The body is false up to some point and true from there on (the pass that makes the op has proved it), so a binary
    search finds it.
    """

    name = "descriptor.first"
    lo = operand_def(IndexType)
    hi = operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, lo: SSAValue, hi: SSAValue, body: Region):
        super().__init__(operands=[lo, hi], regions=[body], result_types=[INDEX])

    @classmethod
    def parse(cls, parser: Parser) -> FirstOp:
        argument = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_keyword("in")
        parser.parse_punctuation("[")
        lo = parser.parse_operand(INDEX)
        parser.parse_punctuation(",")
        hi = parser.parse_operand(INDEX)
        parser.parse_punctuation(")")
        return cls(lo, hi, parser.parse_region([argument]))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(" in [")
        printer.print_operand(self.lo)
        printer.print_string(", ")
        printer.print_operand(self.hi)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        if not _binds_one_index(self.body) or not isinstance(self.body.block.last_op, HoldsOp):
            raise VerifyException("a search binds one index and ends in 'descriptor.holds'")


@irdl_op_definition
class LengthOp(IRDLOperation):
    """`%n = descriptor.length %table`: how many entries a free table has."""

    name = "descriptor.length"
    table = operand_def(TableType)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, table: SSAValue):
        super().__init__(operands=[table], result_types=[INDEX])

    @classmethod
    def parse(cls, parser: Parser) -> LengthOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.table)


@irdl_op_definition
class EndpointsOp(IRDLOperation):
    """`descriptor.endpoints [%lo, %hi) from "candidate.0"`: the slots of one row or column."""

    name = "descriptor.endpoints"
    ends = var_operand_def(IndexType)
    origins = prop_def(ArrayAttr[ArrayAttr[StringAttr]])
    traits = lazy_traits_def(lambda: (HasParent(SlotsOp, HullOp), IsTerminator()))

    def __init__(self, slots: Sequence[tuple[SSAValue, SSAValue]], origins: Sequence[Sequence[str]]):
        super().__init__(
            operands=[[e for pair in slots for e in pair]],
            properties={"origins": ArrayAttr([ArrayAttr([StringAttr(o) for o in names]) for names in origins])},
        )

    @property
    def slots(self) -> list[tuple[SSAValue, SSAValue]]:
        ends = list(self.ends)
        return list(zip(ends[::2], ends[1::2], strict=True))

    @classmethod
    def parse(cls, parser: Parser) -> EndpointsOp:
        slots: list[tuple[SSAValue, SSAValue]] = []
        origins: list[list[str]] = []
        while parser.parse_optional_punctuation("["):
            lo = parser.parse_operand(INDEX)
            parser.parse_punctuation(",")
            slots.append((lo, parser.parse_operand(INDEX)))
            parser.parse_punctuation(")")
            names = [parser.parse_str_literal()] if parser.parse_optional_keyword("from") else []
            while names and parser.parse_optional_punctuation(","):
                names.append(parser.parse_str_literal())
            origins.append(names)
        return cls(slots, origins)

    def print(self, printer: Printer) -> None:
        for (lo, hi), names in zip(self.slots, self.origins, strict=True):
            printer.print_string(" [")
            printer.print_operand(lo)
            printer.print_string(", ")
            printer.print_operand(hi)
            printer.print_string(")")
            if names:
                printer.print_string(" from ")
                printer.print_list(names, lambda o: printer.print_string_literal(o.data))

    def verify_(self) -> None:
        if len(self.ends) != 2 * len(self.origins):
            raise VerifyException("each slot has two ends and its origins")


@irdl_op_definition
class SlotsOp(IRDLOperation):
    """`descriptor.slots rows (%i) { ... }`: the endpoints of every slot at row %i (cols: at column %j)."""

    name = "descriptor.slots"
    axis = prop_def(StringAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(PreprocessOp),))

    def __init__(self, axis: str, body: Region):
        super().__init__(properties={"axis": StringAttr(axis)}, regions=[body])

    @property
    def endpoints(self) -> EndpointsOp:
        last = self.body.block.last_op
        assert isinstance(last, EndpointsOp)
        return last

    @classmethod
    def parse(cls, parser: Parser) -> SlotsOp:
        return cls(parser.parse_keyword_in(AXES, " in descriptor.slots"), _parse_body(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis.data}")
        _print_body(printer, self.body)

    def verify_(self) -> None:
        if self.axis.data not in AXES:
            raise VerifyException(f"slots are of {' or '.join(AXES)}, got '{self.axis.data}'")
        if not _binds_one_index(self.body) or not isinstance(self.body.block.last_op, EndpointsOp):
            raise VerifyException("slots are computed at one index and end in 'descriptor.endpoints'")


@irdl_op_definition
class HullOp(IRDLOperation):
    """`descriptor.hull (%i) { ... }`: an interval of columns beyond which row %i sees nothing."""

    name = "descriptor.hull"
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(PreprocessOp),))

    def __init__(self, body: Region):
        super().__init__(regions=[body])

    @property
    def endpoints(self) -> EndpointsOp:
        last = self.body.block.last_op
        assert isinstance(last, EndpointsOp)
        return last

    @classmethod
    def parse(cls, parser: Parser) -> HullOp:
        return cls(_parse_body(parser))

    def print(self, printer: Printer) -> None:
        _print_body(printer, self.body)

    def verify_(self) -> None:
        last = self.body.block.last_op
        if not _binds_one_index(self.body) or not isinstance(last, EndpointsOp) or len(last.slots) != 1:
            raise VerifyException("a hull is computed at one index and ends in 'descriptor.endpoints' of one slot")


@irdl_op_definition
class PairOp(IRDLOperation):
    """`descriptor.pair (%i, %j) { ... }`: whether row %i sees column %j."""

    name = "descriptor.pair"
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(PreprocessOp),))

    def __init__(self, body: Region):
        super().__init__(regions=[body])

    @property
    def holds(self) -> HoldsOp:
        last = self.body.block.last_op
        assert isinstance(last, HoldsOp)
        return last

    @classmethod
    def parse(cls, parser: Parser) -> PairOp:
        return cls(_parse_body(parser))

    def print(self, printer: Printer) -> None:
        _print_body(printer, self.body)

    def verify_(self) -> None:
        two = [a.type for a in self.body.block.args] == [INDEX, INDEX]
        if not two or not isinstance(self.body.block.last_op, HoldsOp):
            raise VerifyException("a pair binds a row and a column and ends in 'descriptor.holds'")


@irdl_op_definition
class FactOp(IRDLOperation):
    """`descriptor.fact 2 "history <= start[i]" over row (%i) { ... }`: fact number 2, checked at every row."""

    name = "descriptor.fact"
    number = prop_def(IntAttr)
    text = prop_def(StringAttr)
    over = prop_def(StringAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(PreprocessOp),))

    def __init__(self, number: int, text: str, over: str, body: Region):
        super().__init__(
            properties={"number": IntAttr(number), "text": StringAttr(text), "over": StringAttr(over)}, regions=[body]
        )

    @classmethod
    def parse(cls, parser: Parser) -> FactOp:
        number = parser.parse_integer()
        text = parser.parse_str_literal()
        parser.parse_keyword("over")
        return cls(number, text, parser.parse_keyword_in(DOMAINS, " in descriptor.fact"), _parse_body(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number.data} ")
        printer.print_string_literal(self.text.data)
        printer.print_string(f" over {self.over.data}")
        _print_body(printer, self.body)

    def verify_(self) -> None:
        if self.over.data not in DOMAINS:
            raise VerifyException(f"a fact is over {', '.join(DOMAINS)}, got '{self.over.data}'")
        if self.body.block.args if self.over.data == "scalar" else not _binds_one_index(self.body):
            raise VerifyException("a fact over rows, columns or entries binds one index, a scalar fact none")
        if not isinstance(self.body.block.last_op, HoldsOp):
            raise VerifyException("a fact ends in 'descriptor.holds'")


@irdl_op_definition
class PreprocessOp(IRDLOperation):
    """The preprocess kernel of a spec: slots of each bounded axis, or the mask pair by pair; and the facts to check."""

    name = "descriptor.preprocess"
    sym_name = prop_def(SymbolNameConstraint())
    spec = prop_def(SymbolNameConstraint())
    names = prop_def(ArrayAttr[StringAttr])
    symmetric = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, spec: str, names: Sequence[str], body: Region, symmetric: bool = False):
        properties: dict[str, Attribute | None] = {
            "sym_name": StringAttr(name),
            "spec": StringAttr(spec),
            "names": ArrayAttr([StringAttr(n) for n in names]),
        }
        if symmetric:
            properties["symmetric"] = UnitAttr()
        super().__init__(properties=properties, regions=[body])
        for name_, a in zip(names, body.block.args, strict=True):
            a.name_hint = name_

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """(name, kind) of every metadatum: kind is scalar, row, col or free."""
        return [(p.name, p.kind) for p in self.parameters]

    @property
    def parameters(self) -> list[Parameter]:
        """Every metadatum, in the order of declaration."""
        return [
            Parameter(n.data, a.type.per.data, entries=a.type.entries)  # pyright: ignore[reportArgumentType]
            if isinstance(a.type, TableType)
            else Parameter(n.data, "scalar")
            for n, a in zip(self.names, self.body.block.args, strict=True)
        ]

    @property
    def facts(self) -> tuple[FactOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, FactOp))

    def slots_of(self, axis: str) -> SlotsOp | None:
        """The slots of an axis; None where it is unbounded."""
        return next((op for op in self.body.block.ops if isinstance(op, SlotsOp) and op.axis.data == axis), None)

    @property
    def hull(self) -> HullOp | None:
        return next((op for op in self.body.block.ops if isinstance(op, HullOp)), None)

    @property
    def pair(self) -> PairOp | None:
        """The mask pair by pair; None where it is tested by slots."""
        return next((op for op in self.body.block.ops if isinstance(op, PairOp)), None)

    def slot_count(self, axis: str) -> int | None:
        slots = self.slots_of(axis)
        return None if slots is None else len(slots.endpoints.slots)

    @classmethod
    def parse(cls, parser: Parser) -> PreprocessOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("of")
        spec = parser.parse_symbol_name().data
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        symmetric = parser.parse_optional_keyword("symmetric") is not None
        return cls(name, spec, [a.name.text[1:] for a in args], parser.parse_region(args), symmetric)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" of ")
        printer.print_symbol_name(self.spec.data)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" " if self.symmetric is None else " symmetric ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        if self.symmetric is not None and (
            self.slot_count("rows") is None or self.slot_count("rows") != self.slot_count("cols")
        ):
            raise VerifyException("slots of rows serve columns too only if both axes have as many")
        if len(self.names) != len(self.body.block.args):
            raise VerifyException("the preprocess kernel needs one name for each metadatum")
        # The names become parts of names in generated source.
        if stray_name := next((n.data for n in self.names if not IDENTIFIER.match(n.data)), None):
            raise VerifyException(f"'{stray_name}' cannot name metadata: it is no identifier (letters, digits, _)")
        if len(set(self.names)) != len(self.names):
            raise VerifyException("two metadata have one name")
        if not all(a.type == INDEX or isinstance(a.type, TableType) for a in self.body.block.args):
            raise VerifyException("metadata are of type index or !maskspec.table<...>")
        if stray := next((op for op in self.body.block.ops if not isinstance(op, PARTS)), None):
            raise VerifyException(
                f"a preprocess kernel holds slots or a hull and a pair, and facts, found '{stray.name}'"
            )
        numbers = [f.number.data for f in self.facts]
        if numbers != list(range(1, len(numbers) + 1)):
            raise VerifyException(f"facts are numbered from 1 in order, got {numbers}")
        axes = [op.axis.data for op in self.body.block.ops if isinstance(op, SlotsOp)]
        if len(set(axes)) != len(axes):
            raise VerifyException("an axis has its slots once")
        kinds = sorted(op.name for op in self.body.block.ops if isinstance(op, HullOp | PairOp))
        if kinds not in ([], ["descriptor.hull", "descriptor.pair"]):
            raise VerifyException("a mask that is tested by bits has one hull and one pair")
        if bool(axes) == bool(kinds):
            raise VerifyException("a mask needs the slots of a bounded axis, or a hull and a pair, and not both")


PARTS = (SlotsOp, HullOp, PairOp, FactOp)

Descriptor = Dialect("descriptor", [PreprocessOp, *PARTS, EndpointsOp, HoldsOp, FirstOp, LengthOp], [])
