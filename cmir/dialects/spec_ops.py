"""The ops that a `maskspec.spec` is made of: facts, constant tables, layouts, Regions, and the spec itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
)
from xdsl.ir import (
    Attribute,
    Block,
    Operation,
    Region,
)
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
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import (
    COLS,
    KEYWORDS,
    ROWS,
    Expr,
    ExprAttr,
    const,
    free_names,
    parse_expr,
    show,
    substitute,
    var,
    walk,
)
from cmir.dialects.spec_names import check_binding, check_term, unknown
from cmir.dialects.spec_syntax import parse_body, parse_range, parse_where, print_body, print_range
from cmir.dialects.spec_types import (
    IDENTIFIER,
    INDEX,
    Parameter,
    TableType,
    length_name,
)


def check_where(spec: SpecOp, where: tuple[str, Expr] | None, *bound: str) -> None:
    """The name of an abbreviation means nothing else, and what it stands for can be said."""
    if where is not None:
        check_binding(where[0], {p.name: p for p in spec.parameters})
        check_expr(spec, where[1], *bound)


def check_names(op: Operation, e: Expr, *bound: str, index: bool = True) -> None:
    """`check_expr` against the spec that an op stands in; `first` is not for specs, but for packed ones."""
    spec = spec_of(op)
    if not spec.is_packed and any(term.op == "first" for term in walk(e)):
        raise VerifyException("'first' is what the compiler makes of a monotone table; a spec cannot say it")
    check_expr(spec, e, *bound, index=index)


def check_expr(spec: SpecOp, e: Expr, *bound: str, index: bool = True) -> None:
    """Every name in `e` is declared (or bound), is used as what it is, and tables are indexed along their own axis."""
    known = {p.name: p for p in spec.parameters} | {t: Parameter(t, "free") for t in spec.constant_tables()}
    if spec.is_packed:  # a table per row is read where its sequence stands, in the tables of columns too
        known |= {p.name: replace(p, kind="free") for p in spec.parameters if p.is_table}
        known |= {n: Parameter(n, "scalar") for p in spec.parameters if p.kind == "free" for n in [length_name(p.name)]}
    check_term(e, known, frozenset(bound), {"i", "j"} if index else set[str]())


def enclosing_spec(op: Operation) -> SpecOp | None:
    """The spec that an op stands in, if any."""
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, SpecOp):
        parent = parent.parent_op()
    return parent


def spec_of(op: Operation) -> SpecOp:
    """The spec that an op belongs to."""
    parent = enclosing_spec(op)
    if parent is None:
        raise VerifyException(f"'{op.name}' stands outside a maskspec.spec")
    return parent


# Facts.


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """`maskspec.assume for i in [history, rows) : history <= start[i]`: a promise, checked at run time."""

    name = "maskspec.assume"
    condition = prop_def(ExprAttr)
    bound = opt_prop_def(StringAttr)
    lo = opt_prop_def(ExprAttr)
    hi = opt_prop_def(ExprAttr)
    short = opt_prop_def(StringAttr)  # the text, and nothing but the text, says `short` where `long` is meant
    long = opt_prop_def(ExprAttr)
    text = opt_prop_def(StringAttr)
    traits = lazy_traits_def(lambda: (HasParent(SpecOp),))

    def __init__(
        self,
        condition: Expr,
        over: tuple[str, Expr, Expr] | None = None,
        where: tuple[str, Expr] | None = None,
        text: str = "",
    ):
        properties: dict[str, Attribute | None] = {"condition": ExprAttr(condition)}
        if over is not None:
            properties |= {"bound": StringAttr(over[0]), "lo": ExprAttr(over[1]), "hi": ExprAttr(over[2])}
        if where is not None:
            properties |= {"short": StringAttr(where[0]), "long": ExprAttr(where[1])}
        if text:
            properties["text"] = StringAttr(text)
        super().__init__(properties=properties)

    @property
    def where(self) -> tuple[str, Expr] | None:
        return None if self.short is None or self.long is None else (self.short.data, self.long.data)

    @property
    def over(self) -> tuple[str, Expr, Expr] | None:
        """The variable the fact ranges over and its half-open range; None for a fact about scalars."""
        if self.bound is not None and self.lo is not None and self.hi is not None:
            return self.bound.data, self.lo.data, self.hi.data
        names = free_names(self.condition.data)
        for index, length in (("i", ROWS), ("j", COLS)):
            if index in names:
                return index, const(0), length
        return None

    @classmethod
    def parse(cls, parser: Parser) -> AssumeOp:
        over = None
        if parser.parse_optional_keyword("for"):
            name = parser.parse_identifier(context_msg=" after 'for'")
            parser.parse_keyword("in")
            lo, hi = parse_range(parser)
            parser.parse_punctuation(":")
            over = (name, lo.data, hi.data)
        condition = parse_expr(parser, "bool")
        if (where := parse_where(parser)) is not None:
            condition = substitute(condition, {var(where[0]): where[1]})
        text = parser.parse_str_literal() if parser.parse_optional_keyword("as") else ""
        return cls(condition, over, where, text)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.bound is not None and self.lo is not None and self.hi is not None:
            printer.print_string(f"for {self.bound.data} in ")
            print_range(printer, self.lo, self.hi)
            printer.print_string(" : ")
        where = self.where
        short = {} if where is None else {where[1]: var(where[0])}
        printer.print_string(show(substitute(self.condition.data, short)))
        if where is not None:
            printer.print_string(f" where {where[0]} = {show(where[1])}")
        if self.text is not None:
            printer.print_string(" as ")
            printer.print_string_literal(self.text.data)

    def verify_(self) -> None:
        names = free_names(self.condition.data)
        if self.bound is None and {"i", "j"} <= names:
            raise VerifyException("a fact ranges over rows (i) or columns (j), not both")
        bound = () if self.bound is None else (self.bound.data,)
        check_where(spec_of(self), self.where, *bound)
        if bound and {"i", "j"} & (names - {*bound}):
            raise VerifyException(f"a fact for {bound[0]} may not read another index")
        if self.lo is not None and self.hi is not None:
            _check_range_of_fact(self, self.lo.data, self.hi.data)
            if bound:
                self._check_entries(bound[0])
        check_names(self, self.condition.data, *bound)

    def _check_entries(self, bound: str) -> None:
        """A fact with an index of its own is about the entries of free tables, which is where it is checked."""
        kinds = {p.name: p.kind for p in spec_of(self).parameters}
        check_binding(bound, {p.name: p for p in spec_of(self).parameters})
        if bound in ("i", "j") or spec_of(self).is_packed:
            return
        read = {t.name for t in walk(self.condition.data) if t.op == "lookup" and bound in free_names(t.args[0])}
        if wrong := next((name for name in sorted(read) if kinds.get(name) in ("row", "col")), None):
            raise VerifyException(f"'{wrong}' is read along rows or columns: write the fact with i or j")
        if not any(kinds.get(name) == "free" for name in read):
            raise VerifyException(f"a fact for {bound} is about entries of a free table: it must read one at {bound}")


class MonotoneOp(IRDLOperation):
    """A fact about neighbouring entries of a table, or of a range of it; of lists, about each of their integers.

    The base of `maskspec.nondecreasing` and of `maskspec.contiguous`, which says more.
    """

    table = prop_def(StringAttr)
    lo = opt_prop_def(ExprAttr)
    hi = opt_prop_def(ExprAttr)
    traits = lazy_traits_def(lambda: (HasParent(SpecOp),))

    def __init__(self, table: str, over: tuple[Expr, Expr] | None = None):
        properties: dict[str, Attribute | None] = {"table": StringAttr(table)}
        if over is not None:
            properties |= {"lo": ExprAttr(over[0]), "hi": ExprAttr(over[1])}
        super().__init__(properties=properties)

    @property
    def over(self) -> tuple[Expr, Expr] | None:
        return None if self.lo is None or self.hi is None else (self.lo.data, self.hi.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        table = parser.parse_identifier(context_msg=": the table")
        if parser.parse_optional_keyword("over"):
            lo, hi = parse_range(parser)
            return cls(table, (lo.data, hi.data))
        return cls(table)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.table.data}")
        if self.lo is not None and self.hi is not None:
            printer.print_string(" over ")
            print_range(printer, self.lo, self.hi)

    def verify_(self) -> None:
        tables = {p.name for p in spec_of(self).parameters if p.is_table}
        if self.table.data not in tables:
            raise VerifyException(unknown(self.table.data, sorted(tables)))
        _check_range_of_fact(self, *(self.over or ()))


@irdl_op_definition
class NondecreasingOp(MonotoneOp):
    """`maskspec.nondecreasing start over [history, rows)`: entries never fall along the table (or a range of it)."""

    name = "maskspec.nondecreasing"


@irdl_op_definition
class ContiguousOp(MonotoneOp):
    """`maskspec.contiguous seg`: ids of segments, from any one on; each is that before it or the next one."""

    name = "maskspec.contiguous"


def _check_range_of_fact(op: Operation, *ends: Expr) -> None:
    """The ends of a fact's range are numbers of the sequence: a fact about a table must not depend on another entry."""
    for end in ends:
        check_names(op, end, index=False)
        if table := next((t.name for t in walk(end) if t.op == "lookup"), None):
            raise VerifyException(f"the range of a fact reads no table: give '{table}[..]' as a scalar of its own")


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
    traits = lazy_traits_def(lambda: (HasParent(SpecOp), SymbolOpInterface()))

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
        statics = {p.name for p in spec_of(self).parameters if p.kind == "static"} | (
            {self.bound.data} if self.bound else set[str]()
        )
        for attr in (self.lo, self.hi, self.entry):
            if attr is not None and (stray := free_names(attr.data) - statics):
                raise VerifyException(f"a constant table is computed at compile time: '{min(stray)}' is not static")


# Token orders.

ORDERS: Mapping[str, Mapping[str, Literal["number", "list", "name"]]] = {
    "patch": {"grid": "list", "size": "list", "after": "number"},
    "zigzag": {"of": "number", "rank": "number"},
    "striped": {"of": "number", "rank": "number"},
    "residue": {"of": "number"},
    "table": {"name": "name"},
}
"""The orders of `maskspec.layout` with their arguments; `after` and `rank` may be left out."""

OPTIONAL_ARGUMENTS = ("after", "rank")


@irdl_op_definition
class LayoutOp(IRDLOperation):
    """`maskspec.layout rows, cols = patch(grid = [64, 64], size = [8, 16])`: how tokens are stored along an axis."""

    name = "maskspec.layout"
    axes = prop_def(ArrayAttr[StringAttr])
    order = prop_def(StringAttr)
    arguments = prop_def(DictionaryAttr)
    traits = lazy_traits_def(lambda: (HasParent(SpecOp),))

    def __init__(self, axes: Sequence[str], order: str, arguments: Mapping[str, Expr | Sequence[Expr]]):
        given: dict[str, Attribute] = {
            name: ExprAttr(value) if isinstance(value, Expr) else ArrayAttr([ExprAttr(e) for e in value])
            for name, value in arguments.items()
        }
        super().__init__(
            properties={
                "axes": ArrayAttr([StringAttr(a) for a in axes]),
                "order": StringAttr(order),
                "arguments": DictionaryAttr(given),
            }
        )

    @property
    def values(self) -> dict[str, Expr | tuple[Expr, ...]]:
        """The arguments: an expression, or a tuple of them for a list."""
        out: dict[str, Expr | tuple[Expr, ...]] = {}
        for name, value in self.arguments.data.items():
            if isinstance(value, ExprAttr):
                out[name] = value.data
            elif isinstance(value, ArrayAttr):
                out[name] = tuple(e.data for e in value.data if isinstance(e, ExprAttr))  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return out

    @classmethod
    def parse(cls, parser: Parser) -> LayoutOp:
        axes = [parser.parse_identifier(context_msg=": an axis, rows or cols")]
        while parser.parse_optional_punctuation(","):
            axes.append(parser.parse_identifier(context_msg=": an axis, rows or cols"))
        parser.parse_punctuation("=", " before the order of the tokens")
        order = parser.parse_identifier(context_msg=": the order of the tokens")
        arguments: dict[str, Expr | Sequence[Expr]] = {}

        def argument() -> None:
            start = parser.pos
            name = parser.parse_identifier(context_msg=": an argument of the order")
            if name in arguments:
                parser.raise_error(f"'{name}' is given twice", start, parser.pos)
            parser.parse_punctuation("=")
            values = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_expr(parser, "int")
            )
            arguments[name] = parse_expr(parser, "int") if values is None else values

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        return cls(axes, order, arguments)

    def print(self, printer: Printer) -> None:
        def text(value: Expr | tuple[Expr, ...]) -> str:
            return show(value) if isinstance(value, Expr) else f"[{', '.join(map(show, value))}]"

        given = ", ".join(f"{name} = {text(value)}" for name, value in self.values.items())
        printer.print_string(f" {', '.join(a.data for a in self.axes)} = {self.order.data}({given})")

    def verify_(self) -> None:
        axes = [a.data for a in self.axes]
        if not axes or len({*axes}) < len(axes) or not {*axes} <= {"rows", "cols"}:
            raise VerifyException(f"a layout is of rows, of cols, or of rows, cols; got {', '.join(axes) or 'nothing'}")
        order, values = self.order.data, self.values
        if order not in ORDERS:
            raise VerifyException(f"unknown order '{order}'; the orders are {', '.join(ORDERS)}")
        takes = ORDERS[order]
        for name, value in values.items():
            if name not in takes:
                raise VerifyException(f"'{order}' takes {', '.join(takes)}; got '{name}'")
            if isinstance(value, tuple) != (takes[name] == "list"):
                form = "list: [8, 16]" if takes[name] == "list" else f"single {takes[name]}"
                raise VerifyException(f"'{name}' of '{order}' is a {form}")
            self._check_value(name, value, takes[name] == "name")
        if missing := next((n for n in takes if n not in values and n not in OPTIONAL_ARGUMENTS), None):
            raise VerifyException(f"'{order}' needs '{missing}'")
        others = [o for o in spec_of(self).layouts if o is not self]
        if twice := next((a for o in others for a in axes if a in [x.data for x in o.axes]), None):
            raise VerifyException(f"the {twice} have two layouts; a spec gives each axis one at most")

    def _check_value(self, name: str, value: Expr | tuple[Expr, ...], is_name: bool) -> None:
        parameters = spec_of(self).parameters
        if is_name:
            assert isinstance(value, Expr)
            if value.op != "var" or not IDENTIFIER.match(value.name) or value.name in KEYWORDS:
                raise VerifyException(
                    f"'{name}' is the name of the table that will give the order, got '{show(value)}'"
                )
            if value.name in [p.name for p in parameters] or value.name in spec_of(self).constant_tables():
                raise VerifyException(f"'{value.name}' is declared already: the layout declares the table of its order")
            return
        statics = {p.name for p in parameters if p.kind == "static"}
        for e in value if isinstance(value, tuple) else (value,):
            if stray := free_names(e) - statics:
                raise VerifyException(f"a layout is known at compile time: '{min(stray)}' is not static")


# Regions.


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
        for term in walk(self.condition.data):
            if term.op in ("or", "not", "exists"):
                raise VerifyException(
                    f"a clause is a conjunction of comparisons; '{term.op}' belongs in the surface rule"
                )


@irdl_op_definition
class RegionOp(IRDLOperation):
    """A contiguous range of rows and the rule that says what they see; surface (SSA) or normal form (clauses)."""

    name = "maskspec.region"
    sym_name = prop_def(SymbolNameConstraint())
    lo = prop_def(ExprAttr)
    hi = prop_def(ExprAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(SpecOp), SymbolOpInterface(), NoTerminator()))

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


# The spec.


@irdl_op_definition
class SpecOp(IRDLOperation):
    """A mask: metadata, facts, Regions. The names of the parameters are the names that expressions use."""

    name = "maskspec.spec"
    sym_name = prop_def(SymbolNameConstraint())
    names = prop_def(ArrayAttr[StringAttr])
    statics = prop_def(ArrayAttr)  # an IntegerAttr for each static parameter, a unit string otherwise
    packed = opt_prop_def(UnitAttr)
    body = region_def("single_block")
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
    def parameters(self) -> tuple[Parameter, ...]:
        out: list[Parameter] = []
        for name, static, arg in zip(self.names, self.statics, self.body.block.args, strict=True):
            if isinstance(arg.type, TableType):
                out.append(Parameter(name.data, arg.type.per.data, entries=arg.type.entries))  # pyright: ignore[reportArgumentType]
            elif isinstance(static, IntegerAttr):
                out.append(Parameter(name.data, "static", static.value.data))
            else:
                out.append(Parameter(name.data, "scalar"))
        return tuple(out)

    @property
    def is_packed(self) -> bool:
        return self.packed is not None

    @property
    def regions_of_rows(self) -> tuple[RegionOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, RegionOp))

    @property
    def facts(self) -> Iterator[AssumeOp | MonotoneOp]:
        return (op for op in self.body.block.ops if isinstance(op, AssumeOp | MonotoneOp))

    @property
    def layouts(self) -> tuple[LayoutOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, LayoutOp))

    def constant_tables(self) -> Mapping[str, ConstantsOp]:
        return {op.sym_name.data: op for op in self.body.block.ops if isinstance(op, ConstantsOp)}

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
