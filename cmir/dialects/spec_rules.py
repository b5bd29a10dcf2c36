"""The ops that a surface rule is made of, beside `arith`: what SSA over `%i` and `%j` may say.

`rows`, `cols` and `position` say where a row stands, `lookup` reads a table or a constant table, `mod` is the remainder
of floor division, `exists` tries a static range of numbers, and `visible` ends the rule. They are what SSA lacks to say
every expression of `cmir.dialects.expr`, which is what passes make of a rule (`cmir.analysis.rules`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IndexType,
    StringAttr,
    i1,
)
from xdsl.ir import (
    BlockArgument,
    Operation,
    Region,
    SSAValue,
)
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
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import (
    COLS,
    ROWS,
    Expr,
    ExprAttr,
    add,
    free_names,
    sub,
)
from cmir.dialects.spec_names import check_axis, check_indices, unknown
from cmir.dialects.spec_ops import RegionOp, enclosing_spec, spec_of
from cmir.dialects.spec_syntax import parse_body, parse_range, parse_value, print_body, print_range
from cmir.dialects.spec_types import (
    ALIGNMENTS,
    INDEX,
    Parameter,
    TableType,
)


def check_condition(value: SSAValue, what: str) -> None:
    if value.type != i1:
        raise VerifyException(f"{what} must be a condition (i1), got {value.type}")


@irdl_op_definition
class VisibleOp(IRDLOperation):
    """`maskspec.visible %p`: row %i sees column %j iff %p."""

    name = "maskspec.visible"
    condition = operand_def()
    traits = lazy_traits_def(lambda: (HasParent(RegionOp), IsTerminator()))

    def __init__(self, condition: SSAValue | Operation):
        super().__init__(operands=[condition])

    @classmethod
    def parse(cls, parser: Parser) -> VisibleOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)

    def verify_(self) -> None:
        check_condition(self.condition, "the visibility rule")


class _Length(IRDLOperation):
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class RowsOp(_Length):
    """`%n = maskspec.rows`: the number of rows."""

    name = "maskspec.rows"


@irdl_op_definition
class ColsOp(_Length):
    """`%n = maskspec.cols`: the number of columns."""

    name = "maskspec.cols"


def position(alignment: str, row: Expr) -> Expr:
    """The column that a row is aligned with."""
    return row if alignment == "top_left" else add(row, sub(COLS, ROWS))


@irdl_op_definition
class PositionOp(IRDLOperation):
    """`%p = maskspec.position bottom_right %i`: the column that row %i is aligned with, where rows and cols differ.

    `top_left`: %i itself. `bottom_right`: %i + cols - rows.
    """

    name = "maskspec.position"
    alignment = prop_def(StringAttr)
    index = operand_def(IndexType)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, alignment: str, index: SSAValue | Operation):
        super().__init__(operands=[index], properties={"alignment": StringAttr(alignment)}, result_types=[INDEX])

    @classmethod
    def parse(cls, parser: Parser) -> PositionOp:
        start = parser.pos
        alignment = parser.parse_optional_identifier()
        if alignment not in ALIGNMENTS:
            given = "" if alignment is None else f", got '{alignment}'"
            parser.raise_error(f"expected an alignment: {' or '.join(ALIGNMENTS)}{given}", start, parser.pos)
        return cls(alignment, parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.alignment.data} ")
        printer.print_operand(self.index)

    def verify_(self) -> None:
        if self.alignment.data not in ALIGNMENTS:
            raise VerifyException(f"an alignment is {' or '.join(ALIGNMENTS)}, got '{self.alignment.data}'")


@irdl_op_definition
class ModOp(IRDLOperation):
    """`%r = maskspec.mod %a, %b`: the remainder of floor division, never negative (arith.remsi may be)."""

    name = "maskspec.mod"
    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[INDEX])


@irdl_op_definition
class LookupOp(IRDLOperation):
    """`%s = maskspec.lookup %start[%i]` or `maskspec.lookup @half[%d]`: an entry; outside the table, the nearest.

    `%s = maskspec.lookup %sel[%i, %t]` is number %t of an entry that holds several integers.
    """

    name = "maskspec.lookup"
    arguments = var_operand_def()  # the table, unless `constants` names one, and its indices
    constants = opt_prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, table: SSAValue | str, *indices: SSAValue | Operation):
        named = isinstance(table, str)
        super().__init__(
            operands=[[*([] if named else [table]), *indices]],
            properties={"constants": StringAttr(table)} if named else {},
            result_types=[INDEX],
        )

    @property
    def table(self) -> SSAValue | None:
        """The metadatum that is read; None: `constants` names a constant table."""
        return self.arguments[0] if self.constants is None and self.arguments else None

    @property
    def indices(self) -> tuple[SSAValue, ...]:
        """The entry that is read and, where entries hold several integers, which of them."""
        return tuple(self.arguments[0 if self.constants is not None else 1 :])

    @property
    def index(self) -> SSAValue:
        """The entry that is read."""
        return self.indices[0]

    @classmethod
    def parse(cls, parser: Parser) -> LookupOp:
        symbol = parser.parse_optional_symbol_name()
        table = symbol.data if symbol is not None else parse_value(parser)
        with parser.in_square_brackets():
            indices = [parse_value(parser)]
            if parser.parse_optional_punctuation(","):
                indices.append(parse_value(parser))
            return cls(table, *indices)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.table is not None:
            printer.print_operand(self.table)
        elif self.constants is not None:
            printer.print_symbol_name(self.constants.data)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_operand)

    def verify_(self) -> None:
        if self.constants is None and (self.table is None or not isinstance(self.table.type, TableType)):
            raise VerifyException("a look-up needs a table")
        if not self.indices:
            raise VerifyException("a look-up needs an index")
        if wrong := next((v for v in self.indices if v.type != INDEX), None):
            raise VerifyException(f"a table is read by integers (index), got {wrong.type}")
        spec = enclosing_spec(self)
        if spec is None:  # in a preprocess kernel: constant tables are gone, and it was verified as a rule
            return
        if self.table is None:
            assert self.constants is not None
            if self.constants.data not in spec.constant_tables():
                raise VerifyException(unknown(self.constants.data, [*spec.constant_tables()]))
            check_indices(Parameter(self.constants.data, "free"), len(self.indices))
            return
        if not isinstance(self.table, BlockArgument) or self.table.owner is not spec.body.block:
            raise VerifyException("a look-up reads a table that the spec declares")
        check_indices(spec.parameters[self.table.index], len(self.indices))
        region = self.parent_op()
        while region is not None and not isinstance(region, RegionOp):
            region = region.parent_op()
        if region is not None and len(region.body.block.args) == 2:
            names = {n for n, a in zip("ij", region.body.block.args, strict=True) if a in _sources(self.index)}
            check_axis(spec.parameters[self.table.index], names, "j" if "j" in names else "i")


def _sources(value: SSAValue) -> set[BlockArgument]:
    """The block arguments that a value is computed from."""
    todo, seen, found = [value], set[SSAValue](), set[BlockArgument]()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        if isinstance(v, BlockArgument):
            found.add(v)
        elif isinstance(v.owner, Operation):
            todo.extend(v.owner.operands)
    return found


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`maskspec.yield %p`: the condition of an `exists`."""

    name = "maskspec.yield"
    condition = operand_def()
    traits = lazy_traits_def(lambda: (HasParent(ExistsOp), IsTerminator()))

    def __init__(self, condition: SSAValue | Operation):
        super().__init__(operands=[condition])

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        return cls(parse_value(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)

    def verify_(self) -> None:
        check_condition(self.condition, "the body of 'exists'")


@irdl_op_definition
class ExistsOp(IRDLOperation):
    """`%p = maskspec.exists %d in [1 - r, r - 1] { ... maskspec.yield %q }`: %q holds for some %d; static ends."""

    name = "maskspec.exists"
    lo = prop_def(ExprAttr)
    hi = prop_def(ExprAttr)
    body = region_def("single_block")
    result = result_def(i1)
    traits = traits_def(Pure())

    def __init__(self, lo: Expr, hi: Expr, body: Region):
        super().__init__(properties={"lo": ExprAttr(lo), "hi": ExprAttr(hi)}, regions=[body], result_types=[i1])

    @classmethod
    def parse(cls, parser: Parser) -> ExistsOp:
        argument = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_keyword("in")
        lo, hi = parse_range(parser, "]")
        return cls(lo.data, hi.data, parse_body(parser, [argument]))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(" in ")
        print_range(printer, self.lo, self.hi, "]")
        printer.print_string(" ")
        print_body(printer, self.body)

    def verify_(self) -> None:
        if len(self.body.block.args) != 1:
            raise VerifyException("'exists' binds one index")
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("the body of 'exists' ends in 'maskspec.yield'")
        statics = {p.name for p in spec_of(self).parameters if p.kind == "static"}
        for end in (self.lo.data, self.hi.data):
            if stray := free_names(end) - statics:
                raise VerifyException(f"the ends of 'exists' are known at compile time: '{min(stray)}' is not static")
