"""What a spec says beside its Regions: facts about its metadata, and the order in which tokens are stored.

A fact is a promise about metadata: proofs use it, and the preprocess kernel checks it. `assume` holds for every row,
every column or every entry of a range; `nondecreasing` and `contiguous` speak of neighbouring entries. A layout says
that token t is stored elsewhere; `--layout` rewrites the rules and takes the op away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, lazy_traits_def, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent
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
from cmir.dialects.spec_names import check_binding, unknown
from cmir.dialects.spec_scope import Declarations, check_names, check_where, declarations
from cmir.dialects.spec_syntax import parse_range, parse_where, print_range
from cmir.dialects.spec_types import IDENTIFIER
from cmir.errors import suggestion


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
    traits = lazy_traits_def(lambda: (HasParent(Declarations),))

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
        check_where(declarations(self), self.where, *bound)
        if bound and {"i", "j"} & (names - {*bound}):
            raise VerifyException(f"a fact for {bound[0]} may not read another index")
        if self.lo is not None and self.hi is not None:
            _check_range_of_fact(self, self.lo.data, self.hi.data)
            if bound:
                self._check_entries(bound[0])
        check_names(self, self.condition.data, *bound)

    def _check_entries(self, bound: str) -> None:
        """A fact with an index of its own is about the entries of free tables, which is where it is checked."""
        kinds = {p.name: p.kind for p in declarations(self).parameters}
        check_binding(bound, {p.name: p for p in declarations(self).parameters})
        if bound in ("i", "j") or declarations(self).is_packed:
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
    traits = lazy_traits_def(lambda: (HasParent(Declarations),))

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
        tables = {p.name for p in declarations(self).parameters if p.is_table}
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
    traits = lazy_traits_def(lambda: (HasParent(Declarations),))

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
            hint = suggestion(order, ORDERS) or f"; the orders are {', '.join(ORDERS)}"
            raise VerifyException(f"unknown order '{order}'{hint}")
        takes = ORDERS[order]
        for name, value in values.items():
            if name not in takes:
                raise VerifyException(f"'{order}' takes {', '.join(takes)}; got '{name}'{suggestion(name, takes)}")
            if isinstance(value, tuple) != (takes[name] == "list"):
                form = "list: [8, 16]" if takes[name] == "list" else f"single {takes[name]}"
                raise VerifyException(f"'{name}' of '{order}' is a {form}")
            self._check_value(name, value, takes[name] == "name")
        if missing := next((n for n in takes if n not in values and n not in OPTIONAL_ARGUMENTS), None):
            raise VerifyException(f"'{order}' needs '{missing}'")
        others = [o for o in declarations(self).body.block.ops if isinstance(o, LayoutOp) and o is not self]
        if twice := next((a for o in others for a in axes if a in [x.data for x in o.axes]), None):
            raise VerifyException(f"the {twice} have two layouts; a spec gives each axis one at most")

    def _check_value(self, name: str, value: Expr | tuple[Expr, ...], is_name: bool) -> None:
        parameters = declarations(self).parameters
        if is_name:
            assert isinstance(value, Expr)
            if value.op != "var" or not IDENTIFIER.match(value.name) or value.name in KEYWORDS:
                raise VerifyException(
                    f"'{name}' is the name of the table that will give the order, got '{show(value)}'"
                )
            if value.name in [p.name for p in parameters] or value.name in declarations(self).constant_tables():
                raise VerifyException(f"'{value.name}' is declared already: the layout declares the table of its order")
            return
        statics = {p.name for p in parameters if p.kind == "static"}
        for e in value if isinstance(value, tuple) else (value,):
            if stray := free_names(e) - statics:
                raise VerifyException(f"a layout is known at compile time: '{min(stray)}' is not static")
