"""What a spec declares, and what an expression in it may therefore read.

`Declarations` is the part of `maskspec.spec` that the ops in it look up; `maskspec.spec` itself (`spec_ops.py`) is
built on top of them. Every name in an expression must be declared, or bound by the expression, and used as what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, lazy_traits_def, opt_prop_def, prop_def, region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import BINDERS, KEYWORDS, OPERATORS, Expr, ExprAttr, free_names, parse_expr, show, walk
from cmir.dialects.spec_names import check_binding, check_term, instead_of_square
from cmir.dialects.spec_syntax import parse_range, print_range
from cmir.dialects.spec_types import IDENTIFIER, Parameter, TableType, length_name


class Declarations(IRDLOperation):
    """What a spec declares: the part of `maskspec.spec` that the ops in it read. The names of the parameters are the
    names that expressions use."""

    name = "maskspec.spec"
    sym_name = prop_def(SymbolNameConstraint())
    names = prop_def(ArrayAttr[StringAttr])
    statics = prop_def(ArrayAttr)  # an IntegerAttr for each static parameter, a unit string otherwise
    packed = opt_prop_def(UnitAttr)
    body = region_def("single_block")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        out: list[Parameter] = []
        for name, static, t in zip(self.names, self.statics, self.types, strict=True):
            if isinstance(t, TableType):
                out.append(Parameter(name.data, t.per.data, entries=t.entries))  # pyright: ignore[reportArgumentType]
            elif isinstance(static, IntegerAttr):
                out.append(Parameter(name.data, "static", static.value.data))
            else:
                out.append(Parameter(name.data, "scalar"))
        return tuple(out)

    @property
    def types(self) -> tuple[Attribute, ...]:
        """The types of the parameters: those of the arguments, with a number where one names a static.

        Raises:
            VerifyException: what is named is no static, or no number of integers.
        """
        names = [n.data for n in self.names]
        pairs = zip(names, self.statics, strict=True)
        statics = {name: value.value.data for name, value in pairs if isinstance(value, IntegerAttr)}
        return tuple(
            arg.type.with_statics(statics, names) if isinstance(arg.type, TableType) else arg.type
            for arg in self.body.block.args
        )

    @property
    def is_packed(self) -> bool:
        return self.packed is not None

    def constant_tables(self) -> Mapping[str, ConstantsOp]:
        return {op.sym_name.data: op for op in self.body.block.ops if isinstance(op, ConstantsOp)}


def enclosing_declarations(op: Operation) -> Declarations | None:
    """The spec that an op stands in, if any."""
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, Declarations):
        parent = parent.parent_op()
    return parent


def declarations(op: Operation) -> Declarations:
    """The spec that an op belongs to."""
    parent = enclosing_declarations(op)
    if parent is None:
        raise VerifyException(f"'{op.name}' stands outside a maskspec.spec")
    return parent


def check_where(spec: Declarations, where: tuple[str, Expr] | None, *bound: str) -> None:
    """The name of an abbreviation means nothing else, and what it stands for can be said."""
    if where is not None:
        check_binding(where[0], {p.name: p for p in spec.parameters})
        check_expr(spec, where[1], *bound)


def check_names(op: Operation, e: Expr, *bound: str, index: bool = True) -> None:
    """`check_expr` against the spec that an op stands in; `first` is not for specs, but for packed ones."""
    spec = declarations(op)
    if not spec.is_packed and any(term.op == "first" for term in walk(e)):
        raise VerifyException("'first' is what the compiler makes of a monotone table; a spec cannot say it")
    check_expr(spec, e, *bound, index=index)
    if not spec.is_packed:  # checked before: its scalars are tables now
        statics = {p.name for p in spec.parameters if p.kind == "static"}
        _check_factors(e, frozenset({*statics, *spec.constant_tables()}))


def _check_factors(e: Expr, known: frozenset[str]) -> None:
    """Of a product, one factor is made of what is known at compile time: `known`, and what a quantifier tries.

    A product of two unknowns need not fit the integers of a kernel, whatever fits of its factors.
    """
    if e.op in BINDERS:
        known |= {e.name}
    if e.op == "mul" and not any(free_names(factor) <= known for factor in e.args):
        symbol = OPERATORS[e.op].symbol
        instead = instead_of_square(*e.args)
        raise VerifyException(f"'{symbol}' multiplies by an integer known at compile time, got {show(e)}{instead}")
    for a in e.args:
        _check_factors(a, known)


def check_expr(spec: Declarations, e: Expr, *bound: str, index: bool = True) -> None:
    """Every name in `e` is declared (or bound), is used as what it is, and tables are indexed along their own axis."""
    known = {p.name: p for p in spec.parameters} | {t: Parameter(t, "free") for t in spec.constant_tables()}
    if spec.is_packed:  # a table per row is read where its sequence stands, in the tables of columns too
        known |= {p.name: replace(p, kind="free") for p in spec.parameters if p.is_table}
        known |= {n: Parameter(n, "scalar") for p in spec.parameters if p.kind == "free" for n in [length_name(p.name)]}
    check_term(e, known, frozenset(bound), {"i", "j"} if index else set[str]())


@irdl_op_definition
class ConstantsOp(IRDLOperation):
    """`maskspec.constants @half for d in [0, 4) : isqrt(16 - d * d)`: a table known at compile time."""

    name = "maskspec.constants"
    sym_name = prop_def(SymbolNameConstraint())
    values = opt_prop_def(ArrayAttr[IntAttr])
    bound = opt_prop_def(StringAttr)
    lo = opt_prop_def(ExprAttr)
    hi = opt_prop_def(ExprAttr)
    entry = opt_prop_def(ExprAttr)
    traits = lazy_traits_def(lambda: (HasParent(Declarations), SymbolOpInterface()))

    def __init__(
        self, name: str, values: Sequence[int] | None = None, entry: tuple[str, Expr, Expr, Expr] | None = None
    ):
        properties: dict[str, Attribute | None] = {"sym_name": StringAttr(name)}
        if values is not None:
            properties["values"] = ArrayAttr([IntAttr(v) for v in values])
        if entry is not None:
            bound, lo, hi, e = entry
            properties |= {"bound": StringAttr(bound), "lo": ExprAttr(lo), "hi": ExprAttr(hi), "entry": ExprAttr(e)}
        super().__init__(properties=properties)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantsOp:
        name = parser.parse_symbol_name().data
        if parser.parse_optional_keyword("for"):
            bound = parser.parse_identifier(context_msg=" after 'for'")
            parser.parse_keyword("in")
            lo, hi = parse_range(parser)
            parser.parse_punctuation(":")
            return cls(name, entry=(bound, lo.data, hi.data, parse_expr(parser, "int")))
        return cls(name, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.values is not None:
            printer.print_string(f" [{', '.join(str(v.data) for v in self.values)}]")
        elif self.bound is not None and self.lo is not None and self.hi is not None and self.entry is not None:
            printer.print_string(f" for {self.bound.data} in ")
            print_range(printer, self.lo, self.hi)
            printer.print_string(f" : {show(self.entry.data)}")

    def verify_(self) -> None:
        if not IDENTIFIER.match(self.sym_name.data) or self.sym_name.data in KEYWORDS:
            raise VerifyException(f"'{self.sym_name.data}' cannot name a table: it is a keyword or no identifier")
        if self.values is None and self.entry is None:
            raise VerifyException("a constant table needs its entries: [1, 2, 3] or 'for d in [lo, hi) : expr'")
        if self.values is not None and not self.values.data:
            raise VerifyException("a constant table needs at least one entry")
        statics = {p.name for p in declarations(self).parameters if p.kind == "static"} | (
            {self.bound.data} if self.bound else set[str]()
        )
        for attr in (self.lo, self.hi, self.entry):
            if attr is not None and (stray := free_names(attr.data) - statics):
                raise VerifyException(f"a constant table is computed at compile time: '{min(stray)}' is not static")
