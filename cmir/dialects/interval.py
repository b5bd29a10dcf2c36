"""`interval`: what a row sees (or a column is seen by), as half-open intervals.

    table   ::= `interval.table` symbol `of` symbol `axis` (`rows` | `cols`) (`slots` integer)? where? `{` region* `}`
    where   ::= `where` name `=` expr                          // an abbreviation that the text of the table uses
    region  ::= `interval.region` symbol `[` expr `,` expr `)` (`fuse` `[` pair (`,` pair)* `]`)? `{` span* `}`
    pair    ::= `(` integer `,` integer `)`
    span    ::= `interval.span` `[` expr `,` expr `)` (`when` expr)? (`residual` expr `because` string)?
                `from` string (`,` string)*

A `rows` table is read at a row `i`: the row sees every column of every span of the region that holds `i`. A `cols`
table is read at a column `j` and its spans are intervals of rows. A span whose lower end is not below its upper end is
empty, and so is one whose `when` fails. `residual` is what no interval says: a pair in the span is visible only if it
holds too, and a table with a residual is *unbounded*. After `--merge-slots` the k-th span of a region is slot k,
`slots` is the largest number of spans, and `fuse` names the pairs of slots that nothing proves disjoint: taken in
order, each pair (a, b) that overlaps at a row becomes b, and a is empty there. `from` names the clauses of the spec
that a span came from, as `region.clause`.

A region holds the indices from its lower end on that are below its upper end. In a table of one sequence the ends are
numbers of the sequence; in a table of a packed spec they may depend on the index itself, since an index belongs to one
of many sequences, and each has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, SymbolNameConstraint
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
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import (
    COLS,
    ROWS,
    TRUE,
    ZERO,
    Expr,
    ExprAttr,
    and_,
    free_names,
    le,
    parse_expr,
    show,
    substitute,
    var,
    walk,
)
from cmir.dialects.expr import lt as less
from cmir.dialects.maskspec import (
    SpecOp,
    check_expr,
    check_where,
    parse_body,
    parse_range,
    parse_where,
    print_body,
    print_range,
)

AXES = ("rows", "cols")


@irdl_op_definition
class SpanOp(IRDLOperation):
    """`interval.span [start[i], i + 1) from "candidate.1"`: one interval of the moving index."""

    name = "interval.span"
    lo = prop_def(ExprAttr)
    hi = prop_def(ExprAttr)
    when = opt_prop_def(ExprAttr)
    residual = opt_prop_def(ExprAttr)
    reason = opt_prop_def(StringAttr)
    origin = prop_def(ArrayAttr[StringAttr])
    traits = lazy_traits_def(lambda: (HasParent(RegionOp),))

    def __init__(
        self,
        lo: Expr,
        hi: Expr,
        origin: Sequence[str],
        when: Expr = TRUE,
        residual: Expr = TRUE,
        reason: str = "",
    ):
        properties: dict[str, Attribute | None] = {
            "lo": ExprAttr(lo),
            "hi": ExprAttr(hi),
            "origin": ArrayAttr([StringAttr(o) for o in dict.fromkeys(origin)]),
        }
        if when != TRUE:
            properties["when"] = ExprAttr(when)
        if residual != TRUE:
            properties |= {"residual": ExprAttr(residual), "reason": StringAttr(reason)}
        super().__init__(properties=properties)

    @property
    def condition(self) -> Expr:
        return TRUE if self.when is None else self.when.data

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(o.data for o in self.origin)

    @property
    def nonempty(self) -> Expr:
        return and_(self.condition, less(self.lo.data, self.hi.data))

    def contains(self, position: Expr) -> Expr:
        """Whether the span holds a position of the moving index, the residual included."""
        rest = TRUE if self.residual is None else self.residual.data
        return and_(self.condition, le(self.lo.data, position), less(position, self.hi.data), rest)

    @classmethod
    def parse(cls, parser: Parser) -> SpanOp:
        lo, hi = parse_range(parser)
        when = parse_expr(parser, "bool") if parser.parse_optional_keyword("when") else TRUE
        residual, reason = TRUE, ""
        if parser.parse_optional_keyword("residual"):
            residual = parse_expr(parser, "bool")
            parser.parse_keyword("because")
            reason = parser.parse_str_literal()
        parser.parse_keyword("from", ": the clauses that the span came from")
        origin = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_str_literal)
        return cls(lo.data, hi.data, origin, when, residual, reason)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_range(printer, _short(self, self.lo), _short(self, self.hi))
        if self.when is not None:
            printer.print_string(f" when {show(_short(self, self.when).data)}")
        if self.residual is not None and self.reason is not None:
            printer.print_string(f" residual {show(_short(self, self.residual).data)} because ")
            printer.print_string_literal(self.reason.data)
        printer.print_string(" from ")
        printer.print_list(self.origin, lambda o: printer.print_string_literal(o.data))

    def verify_(self) -> None:
        table = table_of(self)
        spec = spec_of_table(table)
        if spec is None:
            return
        mine, other = ("i", "j") if table.axis.data == "rows" else ("j", "i")
        for attr in (self.lo, self.hi, self.when):
            if attr is not None and other in free_names(attr.data):
                raise VerifyException(
                    f"the ends of a span of a {table.axis.data} table are read at '{mine}' alone, not at '{other}'"
                )
        for attr in (self.lo, self.hi, self.when, self.residual):
            if attr is not None:
                if any(term.op == "exists" for term in walk(attr.data)):
                    raise VerifyException("'exists' belongs in a surface rule, not in a span")
                check_expr(spec, attr.data)


@irdl_op_definition
class RegionOp(IRDLOperation):
    """`interval.region @candidate [history, rows) { ... }`: the spans of a contiguous range of the fixed index."""

    name = "interval.region"
    sym_name = prop_def(SymbolNameConstraint())
    lo = prop_def(ExprAttr)
    hi = prop_def(ExprAttr)
    fuse = opt_prop_def(ArrayAttr[ArrayAttr[IntAttr]])
    body = region_def("single_block")
    traits = lazy_traits_def(lambda: (HasParent(TableOp), SymbolOpInterface(), NoTerminator()))

    def __init__(
        self, name: str, lo: Expr, hi: Expr, spans: Region | Sequence[SpanOp], fuse: Sequence[tuple[int, int]] = ()
    ):
        properties: dict[str, Attribute | None] = {"sym_name": StringAttr(name), "lo": ExprAttr(lo), "hi": ExprAttr(hi)}
        if fuse:
            properties["fuse"] = ArrayAttr([ArrayAttr([IntAttr(a), IntAttr(b)]) for a, b in fuse])
        super().__init__(properties=properties, regions=[spans if isinstance(spans, Region) else Region(Block(spans))])

    @property
    def spans(self) -> tuple[SpanOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, SpanOp))

    @property
    def fused(self) -> tuple[tuple[int, int], ...]:
        return tuple((p.data[0].data, p.data[1].data) for p in self.fuse or ())

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        name = parser.parse_symbol_name().data
        lo, hi = parse_range(parser)
        fuse: list[tuple[int, int]] = []
        if parser.parse_optional_keyword("fuse"):

            def pair() -> tuple[int, int]:
                parser.parse_punctuation("(", " before a pair of slots")
                a = parser.parse_integer()
                parser.parse_punctuation(",", " between the slots of a pair")
                b = parser.parse_integer()
                parser.parse_punctuation(")", " after a pair of slots")
                return a, b

            fuse = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, pair)
        return cls(name, lo.data, hi.data, parse_body(parser), fuse)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        print_range(printer, _short(self, self.lo), _short(self, self.hi))
        if self.fuse is not None:
            printer.print_string(f" fuse [{', '.join(str(p) for p in self.fused)}]")
        printer.print_string(" ")
        print_body(printer, self.body)

    def verify_(self) -> None:
        if stray := next((op for op in self.body.block.ops if not isinstance(op, SpanOp)), None):
            raise VerifyException(f"a region holds spans only, found '{stray.name}'")
        table = table_of(self)
        spec = spec_of_table(table)
        if spec is not None:
            other = "j" if table.axis.data == "rows" else "i"
            for attr in (self.lo, self.hi):
                if spec.is_packed and other in free_names(attr.data):
                    raise VerifyException(
                        f"a region of a {table.axis.data} table holds indices '{table.fixed}': its ends do not depend "
                        f"on '{other}'"
                    )
                check_expr(spec, attr.data, index=spec.is_packed)
        for a, b in self.fused:
            if not 0 <= a < b < len(self.spans):
                raise VerifyException(
                    f"fuse ({a}, {b}): a pair of slots a < b of this region, which has {len(self.spans)}"
                )
        if list(self.fused) != sorted(set(self.fused)):
            raise VerifyException("the pairs of fuse are in order, each once")
        if missing := sorted(closure_of_fuse(self.fused) - set(self.fused)):
            a, b = missing[0]
            raise VerifyException(
                f"fuse needs ({a}, {b}) too: a slot below both may be united with slot {a} and reach {b}"
            )


@irdl_op_definition
class TableOp(IRDLOperation):
    """`interval.table @hstu_rows of @hstu axis rows slots 2 { ... }`: a mask as intervals along one axis."""

    name = "interval.table"
    sym_name = prop_def(SymbolNameConstraint())
    spec = prop_def(SymbolNameConstraint())
    axis = prop_def(StringAttr)
    slots = opt_prop_def(IntAttr)
    short = opt_prop_def(StringAttr)  # the text, and nothing but the text, says `short` where `long` is meant
    long = opt_prop_def(ExprAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), SymbolTable(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        name: str,
        spec: str,
        axis: str,
        regions: Region | Sequence[RegionOp],
        slots: int | None = None,
        where: tuple[str, Expr] | None = None,
    ):
        properties: dict[str, Attribute | None] = {
            "sym_name": StringAttr(name),
            "spec": StringAttr(spec),
            "axis": StringAttr(axis),
        }
        if slots is not None:
            properties["slots"] = IntAttr(slots)
        if where is not None:
            properties |= {"short": StringAttr(where[0]), "long": ExprAttr(where[1])}
        super().__init__(
            properties=properties, regions=[regions if isinstance(regions, Region) else Region(Block(regions))]
        )

    @property
    def where(self) -> tuple[str, Expr] | None:
        return None if self.short is None or self.long is None else (self.short.data, self.long.data)

    @property
    def regions_of_table(self) -> tuple[RegionOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, RegionOp))

    @property
    def fixed(self) -> str:
        """The index the table is read at."""
        return "i" if self.axis.data == "rows" else "j"

    @property
    def moving(self) -> Expr:
        """The index that spans are intervals of."""
        return var("j" if self.axis.data == "rows" else "i")

    @property
    def bounds(self) -> tuple[Expr, Expr]:
        """The range of the moving index."""
        return ZERO, COLS if self.axis.data == "rows" else ROWS

    @property
    def residual_span(self) -> SpanOp | None:
        """A span with a residual: what makes the table unbounded."""
        return next((s for r in self.regions_of_table for s in r.spans if s.residual is not None), None)

    @classmethod
    def parse(cls, parser: Parser) -> TableOp:
        name = parser.parse_symbol_name().data
        parser.parse_keyword("of")
        spec = parser.parse_symbol_name().data
        parser.parse_keyword("axis")
        axis = parser.parse_keyword_in(AXES, " in interval.table")
        slots = parser.parse_integer() if parser.parse_optional_keyword("slots") else None
        where = parse_where(parser)
        table = cls(name, spec, axis, parse_body(parser), slots, where)
        if where is not None:
            for op in table.walk():
                for key, attr in op.properties.items():
                    if isinstance(attr, ExprAttr) and op is not table:
                        op.properties[key] = ExprAttr(substitute(attr.data, {var(where[0]): where[1]}))
        return table

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" of ")
        printer.print_symbol_name(self.spec.data)
        printer.print_string(f" axis {self.axis.data}")
        if self.slots is not None:
            printer.print_string(f" slots {self.slots.data}")
        if (where := self.where) is not None:
            printer.print_string(f" where {where[0]} = {show(where[1])}")
        printer.print_string(" ")
        print_body(printer, self.body)

    def verify_(self) -> None:
        if self.axis.data not in AXES:
            raise VerifyException(f"the axis is rows or cols, got '{self.axis.data}'")
        if stray := next((op for op in self.body.block.ops if not isinstance(op, RegionOp)), None):
            raise VerifyException(f"a table holds regions only, found '{stray.name}'")
        most = max((len(r.spans) for r in self.regions_of_table), default=0)
        if self.slots is not None and self.slots.data != most:
            raise VerifyException(f"slots is the largest number of spans of a region: {most}, not {self.slots.data}")
        spec = spec_of_table(self)
        if self.parent_op() is not None and spec is None:
            raise VerifyException(f"no maskspec.spec @{self.spec.data} stands beside this table")
        if spec is not None:
            check_where(spec, self.where)


def closure_of_fuse(pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs to fuse, in ascending order, so that the slots end up disjoint when `pairs` may overlap at first.

    Fusing (a, b) hands the positions of `a` to `b`, and so hands down whatever else `a` may overlap: to the first of
    them is enough, which hands it on, as in the symbolic factorization of a sparse matrix.
    """
    later: dict[int, set[int]] = {}
    for a, b in pairs:
        later.setdefault(a, set()).add(b)
    for a in range(max((max(bs) for bs in later.values()), default=0)):
        if later.get(a):
            heir = min(later[a])
            later.setdefault(heir, set()).update(later[a] - {heir})
    return {(a, b) for a, bs in later.items() for b in bs}


def _short(op: Operation, attr: ExprAttr) -> ExprAttr:
    """An expression as the text of a table says it: with its abbreviation."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, TableOp):
        parent = parent.parent_op()
    where = None if parent is None else parent.where
    return attr if where is None else ExprAttr(substitute(attr.data, {where[1]: var(where[0])}))


def table_of(op: Operation) -> TableOp:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, TableOp):
        parent = parent.parent_op()
    if parent is None:
        raise VerifyException(f"'{op.name}' stands outside an interval.table")
    return parent


def spec_of_table(table: TableOp) -> SpecOp | None:
    """The spec that a table belongs to: its neighbour in the module."""
    block = table.parent_block()
    if block is None:
        return None
    return next((op for op in block.ops if isinstance(op, SpecOp) and op.sym_name == table.spec), None)


Interval = Dialect("interval", [TableOp, RegionOp, SpanOp], [])
