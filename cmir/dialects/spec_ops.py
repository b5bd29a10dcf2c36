"""The spec itself, its Regions, and the clauses of a Region in normal form.

A Region is a contiguous range of rows with a rule. As written, the rule is SSA over `%i` and `%j` (`spec_rules.py`)
that ends in `maskspec.visible`; after `--dnf-normalize` it is a list of `maskspec.clause`, of which one must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, lazy_traits_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import KEYWORDS, Expr, ExprAttr, is_forall, lt, parse_expr, show, walk
from cmir.dialects.spec_items import AssumeOp, LayoutOp, MonotoneOp
from cmir.dialects.spec_scope import ConstantsOp, Declarations, check_names, declarations, enclosing_declarations
from cmir.dialects.spec_syntax import parse_body, parse_range, print_body, print_range
from cmir.dialects.spec_types import IDENTIFIER, INDEX, Parameter, TableType, length_name


@irdl_op_definition
class ClauseOp(IRDLOperation):
    """`maskspec.clause j < history and i <= j`: a conjunction of literals, one disjunct of the Region's rule."""

    name = "maskspec.clause"
    condition = prop_def(ExprAttr)
    traits = lazy_traits_def(lambda: (HasParent(RegionOp),))

    def __init__(self, condition: Expr):
        super().__init__(properties={"condition": ExprAttr(condition)})

    @property
    def literals(self) -> tuple[Expr, ...]:
        e = self.condition.data
        return e.args if e.op == "and" else (e,)

    @classmethod
    def parse(cls, parser: Parser) -> ClauseOp:
        return cls(parse_expr(parser, "bool"))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {show(self.condition.data)}")

    def verify_(self) -> None:
        check_names(self, self.condition.data)
        # What a `select` within a comparison asks may be any condition, once its quantifiers are expanded.
        tried = (term for term in walk(self.condition.data) if term.op == "exists" or is_forall(term))
        for term in (*self.literals, *tried):
            if term.op == "not" and term.args[0].op == "eq":
                a, b = term.args[0].args
                raise VerifyException(
                    f"a clause is a conjunction of comparisons, and '!=' is two of them: write two clauses, one with "
                    f"{show(lt(a, b))} and one with {show(lt(b, a))}"
                )
            if term.op in ("or", "not", "exists"):
                written = "forall" if is_forall(term) else term.op
                instead = "write a second clause, or the rule in SSA" if term.op == "or" else "write the rule in SSA"
                raise VerifyException(
                    f"a clause is a conjunction of comparisons; '{written}' belongs in the surface rule: {instead}"
                )


@irdl_op_definition
class RegionOp(IRDLOperation):
    """A contiguous range of rows and the rule that says what they see; surface (SSA) or normal form (clauses)."""

    name = "maskspec.region"
    sym_name = prop_def(SymbolNameConstraint())
    lo = prop_def(ExprAttr)
    hi = prop_def(ExprAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(Declarations), SymbolOpInterface(), NoTerminator()))

    def __init__(self, name: str, lo: Expr, hi: Expr, body: Region | Sequence[Expr]):
        """`body` is a surface rule (a one-block region over %i, %j) or the clauses of a normal form."""
        if not isinstance(body, Region):
            body = Region(Block([ClauseOp(c) for c in body]))
        super().__init__(
            properties={"sym_name": StringAttr(name), "lo": ExprAttr(lo), "hi": ExprAttr(hi)}, regions=[body]
        )

    @property
    def is_normal(self) -> bool:
        return not self.body.block.args

    @property
    def clauses(self) -> tuple[ClauseOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, ClauseOp))

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        name = parser.parse_symbol_name().data
        start = parser.pos
        if parser.parse_optional_keyword("rows") is None:
            parser.raise_error("expected the row guard: rows [lo, hi)", start, start + 1)
        lo, hi = parse_range(parser)
        args = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(INDEX)
        )
        return cls(name, lo.data, hi.data, parse_body(parser, args or []))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" rows ")
        print_range(printer, self.lo, self.hi)
        if not self.is_normal:
            printer.print_string(" ")
            with printer.in_parens():
                printer.print_list(self.body.block.args, printer.print_ssa_value)
        printer.print_string(" ")
        print_body(printer, self.body)

    def verify_(self) -> None:
        if not IDENTIFIER.match(self.sym_name.data):
            raise VerifyException(f"an identifier (letters, digits, _) names a Region, not '{self.sym_name.data}'")
        for end in (self.lo.data, self.hi.data):
            check_names(self, end, index=False)
        ops = list(self.body.block.ops)
        if self.is_normal:
            if stray := next((op for op in ops if not isinstance(op, ClauseOp)), None):
                raise VerifyException(f"a Region without (%i, %j) holds clauses only, found '{stray.name}'")
            return
        if len(self.body.block.args) != 2 or any(a.type != INDEX for a in self.body.block.args):
            raise VerifyException("a rule is over (%i, %j): the row and the column")
        if not ops or ops[-1].name != "maskspec.visible":
            raise VerifyException("a rule ends in 'maskspec.visible': the condition under which row %i sees column %j")


@irdl_op_definition
class SpecOp(Declarations):
    """A mask: metadata, facts, Regions. The names of the parameters are the names that expressions use."""

    name = "maskspec.spec"
    traits = traits_def(SymbolOpInterface(), SymbolTable(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, parameters: Sequence[Parameter], body: Region, packed: bool = False):
        """`body` has one block argument per parameter: `index` for scalars and statics, a table type for tables."""
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "names": ArrayAttr([StringAttr(p.name) for p in parameters]),
                "statics": ArrayAttr(
                    [StringAttr("") if p.value is None else IntegerAttr(p.value, INDEX) for p in parameters]
                ),
                "packed": UnitAttr() if packed else None,
            },
            regions=[body],
        )
        for p, a in zip(parameters, body.block.args, strict=True):
            a.name_hint = p.name

    @property
    def regions_of_rows(self) -> tuple[RegionOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, RegionOp))

    @property
    def facts(self) -> Iterator[AssumeOp | MonotoneOp]:
        return (op for op in self.body.block.ops if isinstance(op, AssumeOp | MonotoneOp))

    @property
    def layouts(self) -> tuple[LayoutOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, LayoutOp))

    @classmethod
    def parse(cls, parser: Parser) -> SpecOp:
        name = parser.parse_symbol_name().data
        packed = parser.parse_optional_keyword("packed") is not None
        parameters: list[Parameter] = []

        def parameter() -> Parser.Argument:
            arg = parser.parse_argument()
            value = parser.parse_integer() if parser.parse_optional_punctuation("=") else None
            kind = arg.type.per.data if isinstance(arg.type, TableType) else "scalar" if value is None else "static"
            parameters.append(Parameter(arg.name.text[1:], kind, value))  # pyright: ignore[reportArgumentType]
            return arg

        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parameter)
        return cls(name, parameters, parse_body(parser, args), packed)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.is_packed:
            printer.print_string(" packed ")
        with printer.in_parens():
            for n, (static, arg) in enumerate(zip(self.statics, self.body.block.args, strict=True)):
                printer.print_string(", " if n else "")
                printer.print_block_argument(arg)
                if isinstance(static, IntegerAttr):
                    printer.print_string(f" = {static.value.data}")
        printer.print_string(" ")
        print_body(printer, self.body)

    def verify_(self) -> None:
        if not IDENTIFIER.match(self.sym_name.data):
            raise VerifyException(f"a spec is named by an identifier (letters, digits, _), got '{self.sym_name.data}'")
        args = self.body.block.args
        if not len(self.names) == len(self.statics) == len(args):
            raise VerifyException("a spec needs one name for each parameter")
        names = [n.data for n in self.names]
        for name, static, arg in zip(names, self.statics, args, strict=True):
            if not IDENTIFIER.match(name) or name in KEYWORDS:
                raise VerifyException(
                    f"'{name}' cannot name metadata: it is a keyword or no identifier (letters, digits, _)"
                )
            if arg.type != INDEX and not isinstance(arg.type, TableType):
                raise VerifyException(
                    f"metadata '{name}' must be an index (a scalar) or a !maskspec.table, got {arg.type}"
                )
            if isinstance(static, IntegerAttr) and not -(2**31) <= static.value.data < 2**31:
                raise VerifyException(f"static '{name}' is {static.value.data}, which does not fit 32 bits")
            if isinstance(arg.type, TableType) and isinstance(static, IntegerAttr):
                raise VerifyException(f"table '{name}' cannot be static; use maskspec.constants")
        # A nondecreasing fact about a whole free table reads its length by this name.
        lengths = [length_name(p.name) for p in self.parameters if p.kind == "free"]
        taken = [*names, *lengths, *self.constant_tables()]
        if twice := next((n for n in taken if taken.count(n) > 1), None):
            if twice in lengths:
                raise VerifyException(f"'{twice}' is the length of a free table; give the metadatum another name")
            raise VerifyException(f"'{twice}' is declared twice")
        items = (AssumeOp, MonotoneOp, ConstantsOp, LayoutOp, RegionOp)
        if stray := next((op for op in self.body.block.ops if not isinstance(op, items)), None):
            raise VerifyException(f"a spec holds facts, constants, layouts and Regions; found '{stray.name}'")
        if self.is_packed and self.regions_of_rows:
            raise VerifyException("a packed spec has no Regions: its rule is in its interval tables")


def enclosing_spec(op: Operation) -> SpecOp | None:
    """The spec that an op stands in, if any."""
    spec = enclosing_declarations(op)
    return spec if isinstance(spec, SpecOp) else None


def spec_of(op: Operation) -> SpecOp:
    """The spec that an op belongs to."""
    spec = declarations(op)
    assert isinstance(spec, SpecOp)
    return spec
