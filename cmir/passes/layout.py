"""Another order of the tokens: the mask of tokens that are stored patch by patch, in shards, or by residue.

    visible'(i, j)  =  visible(row(i), column(j))       row(i), column(j): the token at place i, j

Before:

    maskspec.spec @window() {
      maskspec.assume rows == cols
      maskspec.layout rows = zigzag(of = 4, rank = 1)
      maskspec.region @all rows [0, rows) {
        maskspec.clause i < j + 128 and j <= i
      }
    }

After: the rows are rank 1's shard, the chunks 1 and 6 of 8; the columns are all tokens, as before.

    maskspec.spec @window() {
      maskspec.assume 4 * rows == cols
      maskspec.assume rows mod 2 == 0
      maskspec.region @all_0 rows [0, rows floordiv 2) {
        maskspec.clause i + rows floordiv 2 < j + 128 and j <= i + rows floordiv 2
      }
      maskspec.region @all_1 rows [rows floordiv 2, rows) {
        maskspec.clause i + rows floordiv 2 * 5 < j + 128 and j <= i + rows floordiv 2 * 5
      }
    }

The orders are those of `cmir.analysis.layouts`. On an axis of rows every Region is cut at the pieces of the order, so
that its rows stay contiguous and each part has one affine expression; along columns the rule is the disjunction over
the pieces. So intervals stay intervals: a causal zig-zag or striped shard has one slot a row. Where a piece is no
affine expression (patches, tables) a Region that holds the whole piece stays, one that holds none of it goes, and those
that hold some of it become one Region whose rule asks for the token's own: what no interval says of such a rule is
left to packed bits.

Metadata keep the order of the tokens: a table per row is read at `row(i)`. Of a shard it has an entry for every token,
more than there are rows, and becomes a free table. `--layout='order="patch(grid = [64, 64], size = [8, 16])"'` says the
layout on the command line instead of in the spec; `axes=rows` that it is of the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import ParseError, VerifyException

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import conjuncts, facts_of
from cmir.analysis.layouts import LENGTH, PLACE, Order, Piece, orders_of
from cmir.analysis.linear import negate, simplify
from cmir.analysis.rules import fold_statics
from cmir.dialects.expr import (
    COLS,
    FALSE,
    ROWS,
    TRUE,
    ZERO,
    Expr,
    I,
    J,
    add,
    and_,
    const,
    free_names,
    le,
    lookup,
    lt,
    make,
    maximum,
    minimum,
    mul,
    or_,
    sub,
    substitute,
    var,
    walk,
)
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import (
    INDEX,
    AssumeOp,
    ColsOp,
    ConstantsOp,
    LayoutOp,
    LookupOp,
    MonotoneOp,
    Parameter,
    PositionOp,
    RegionOp,
    RowsOp,
    SpecOp,
    TableType,
    VisibleOp,
    position,
)
from cmir.errors import SpecError
from cmir.passes.canonicalize_intervals import simplify_under
from cmir.passes.lower_descriptor import BINARY, PREDICATES

MAX_COPIES = 1024
"""Most copies of rules that an order may ask for: pieces of rows times pieces of columns."""


@dataclass(frozen=True)
class Layout(ModulePass):
    """Rewrite a spec for tokens that are stored in another order: patches, shards, residues."""

    name = "layout"

    order: str | None = None
    axes: tuple[str, ...] = ("rows", "cols")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            if self.order is not None:
                _add_layout(ctx, spec, self.axes, self.order)
            if not spec.layouts:
                continue
            for table in [o for o in op.walk() if isinstance(o, TableOp) and o.spec == spec.sym_name]:
                raise SpecError("this table is of the tokens in their own order; run --layout before it is made", table)
            Rewriter.replace_op(spec, with_layout(spec), [])


def _add_layout(ctx: Context, spec: SpecOp, axes: tuple[str, ...], text: str) -> None:
    try:
        op = LayoutOp.parse(Parser(ctx, f"{', '.join(axes)} = {text}", "<layout>"))
        spec.body.block.insert_op_before(op, first) if (first := spec.body.block.first_op) else spec.body.block.add_op(
            op
        )
        op.verify_()
    except ParseError as error:
        raise SpecError(f"the layout '{text}' is no order such as zigzag(of = 4): {error.span.text}", spec) from error
    except VerifyException as error:
        raise SpecError(str(error), spec) from error


def with_layout(spec: SpecOp) -> SpecOp:
    """The spec that the layouts of `spec` make of it; the layouts are gone.

    Raises:
        SpecError: an order that makes no sense, or one with too many pieces.
    """
    orders = {axis: order.at(axis) for axis, order in orders_of(spec.layouts).items()}
    return _Rewrite(spec, orders).run()


class _Rewrite:
    def __init__(self, spec: SpecOp, orders: Mapping[str, Order]) -> None:
        self.spec = spec
        self.orders = orders
        whole = {axis: Piece(ZERO, var(axis), PLACE, (ZERO, var(axis))) for axis in ("rows", "cols")}
        self.pieces = {axis: orders[axis].pieces if axis in orders else (piece,) for axis, piece in whole.items()}
        self.lengths = {
            var(axis): simplify(mul(var(axis), const(order.share))) for axis, order in orders.items() if order.share > 1
        }
        self.sharded = {{"rows": "row", "cols": "col"}[axis]: axis for axis, order in orders.items() if order.share > 1}
        self.kinds = {p.name: p.kind for p in spec.parameters}
        copies = len(self.pieces["rows"]) * len(self.pieces["cols"]) * max(1, len(spec.regions_of_rows))
        if copies > MAX_COPIES:
            raise SpecError(
                f"these layouts need {copies} copies of rules, of every Region for each piece of rows and of columns; "
                f"at most {MAX_COPIES}",
                spec.layouts[0],
            )

    def run(self) -> SpecOp:
        tables = [Parameter(o.table, "free") for o in self.orders.values() if o.table is not None]
        parameters = [replace(p, kind="free") if p.kind in self.sharded else p for p in self.spec.parameters] + list(
            dict.fromkeys(tables)
        )
        block = Block(arg_types=[TableType(p.kind, p.entries) if p.is_table else INDEX for p in parameters])
        self.values: dict[str, SSAValue] = {p.name: a for p, a in zip(parameters, block.args, strict=True)}
        out = SpecOp(self.spec.sym_name.data, parameters, Region(block))
        out.location = self.spec.location
        for op in self._items():
            block.add_op(op)
        self.scalars = Entailment(facts_of(out), None)
        self.pieces = {
            axis: tuple(p for p in pieces if not self._holds(le(p.hi, p.lo))) for axis, pieces in self.pieces.items()
        }
        for op in self._regions():
            block.add_op(op)
        return out

    # Facts.

    def _items(self) -> Iterator[Operation]:
        """Facts and constant tables, and what the orders ask of the lengths."""
        for item in self.spec.body.block.ops:
            if isinstance(item, AssumeOp | MonotoneOp | ConstantsOp):
                new = self._item(item)
                new.location = item.location
                yield new
        added = set[Expr]()
        for layout in self.spec.layouts:
            for axis in layout.axes:
                for new in self._order_facts(self.orders[axis.data], axis.data):
                    if new.condition.data not in added:
                        added.add(new.condition.data)
                        new.location = layout.location
                        yield new

    def _order_facts(self, order: Order, axis: str) -> Iterator[AssumeOp]:
        for fact in order.facts:
            yield AssumeOp(substitute(fact, {LENGTH: var(axis)}))
        if order.table is not None:
            name = self._fresh("place")
            token = lookup(order.table, var(name))
            yield AssumeOp(and_(le(ZERO, token), lt(token, var(axis))), (name, ZERO, var(axis)))

    def _item(self, item: AssumeOp | MonotoneOp | ConstantsOp) -> Operation:
        match item:
            case ConstantsOp():
                return item.clone()
            case MonotoneOp():
                over = None if item.over is None else (self._long(item.over[0]), self._long(item.over[1]))
                return type(item)(item.table.data, over)
            case AssumeOp():
                return self._fact(item)

    def _fact(self, fact: AssumeOp) -> AssumeOp:
        over, condition = fact.over, self._long(fact.condition.data)
        if over is None:
            return AssumeOp(condition)
        name, lo, hi = over[0], self._long(over[1]), self._long(over[2])
        if {"i": "row", "j": "col"}.get(name) not in self.sharded:
            return AssumeOp(condition, None if fact.bound is None else (name, lo, hi))
        # Of a shard, the fact speaks of every token, that is of every entry of the tables.
        if not any(t.op == "lookup" and name in free_names(t.args[0]) for t in walk(condition)):
            raise SpecError(
                f"a shard has no place for every token that this fact speaks of: {fact.condition.data}; leave it out",
                fact,
            )
        entry = self._fresh("token")
        return AssumeOp(substitute(condition, {var(name): var(entry)}), (entry, lo, hi))

    def _fresh(self, name: str) -> str:
        """The name, with a number if it is taken."""
        taken = {*self.kinds, *self.spec.constant_tables(), *(o.table for o in self.orders.values())}
        return next(n for n in chain([name], (f"{name}{k}" for k in count())) if n not in taken)

    def _long(self, e: Expr) -> Expr:
        """An expression about the tokens, with the lengths that there are now."""
        return substitute(e, self.lengths) if self.lengths else e

    # Regions.

    def _regions(self) -> Iterator[RegionOp]:
        """Every Region cut at the pieces of the rows; those that share a piece that is not affine are one."""
        parts: dict[str, list[RegionOp]] = {}
        for piece in self.pieces["rows"]:
            for name, region in self._of_piece(piece):
                parts.setdefault(name, []).append(region)
        for name, regions in parts.items():
            for k, region in enumerate(regions):
                if len(regions) > 1:
                    region.properties["sym_name"] = StringAttr(self._symbol(f"{name}_{k}", parts))
                yield region

    def _symbol(self, name: str, taken: Mapping[str, object]) -> str:
        symbols = {*taken, *self.kinds, *self.spec.constant_tables()}
        return next(n for n in chain([name], (f"{name}_{k}" for k in count())) if n not in symbols)

    def _of_piece(self, piece: Piece) -> Iterator[tuple[str, RegionOp]]:
        affine = piece.affine
        shared: list[tuple[RegionOp, Expr]] = []
        for region in self.spec.regions_of_rows:
            lo, hi = (simplify(self._long(fold_statics(e.data, self.spec, region))) for e in (region.lo, region.hi))
            name = region.sym_name.data
            if affine is not None:
                stride, offset = affine
                # lo <= stride * i + offset  <=>  i >= ceil((lo - offset) / stride)
                first, end = (make("floordiv", add(sub(e, offset), const(stride - 1)), const(stride)) for e in (lo, hi))
                first, end = self._under(maximum(piece.lo, first)), self._under(minimum(piece.hi, end))
                if not self._holds(le(end, first)):
                    yield name, self._region(name, piece, first, end, [(region, TRUE)])
            elif self._holds(or_(le(hi, piece.among[0]), le(piece.among[1], lo), le(hi, lo))):
                continue
            elif self._holds(and_(le(lo, piece.among[0]), le(piece.among[1], hi))):
                yield name, self._region(name, piece, piece.lo, piece.hi, [(region, TRUE)])
            else:
                token = piece.token
                inside = (TRUE if lo == ZERO else le(lo, token), TRUE if hi == self._long(ROWS) else lt(token, hi))
                shared.append((region, and_(*inside)))
        if shared:
            name = "_or_".join(r.sym_name.data for r, _ in shared)
            yield name, self._region(name, piece, piece.lo, piece.hi, shared)

    def _holds(self, claim: Expr) -> bool:
        return self.scalars.prove(claim).proved

    def _under(self, e: Expr) -> Expr:
        return simplify_under(self.scalars, e)

    def _region(self, name: str, piece: Piece, lo: Expr, hi: Expr, sources: list[tuple[RegionOp, Expr]]) -> RegionOp:
        """The rows `[lo, hi)` of a piece: the rules of `sources`, each where its condition on the row holds."""
        token = substitute(piece.token, {PLACE: I})
        parts = [
            (
                region,
                and_(substitute(condition, {PLACE: I}), *self._between(columns)),
                substitute(columns.token, {PLACE: J}),
            )
            for region, condition in sources
            for columns in self.pieces["cols"]
        ]
        if all(region.is_normal for region, _ in sources):
            body: Region | list[Expr] = [
                and_(*conjuncts(where), *conjuncts(self._moved(clause.condition.data, token, column)))
                for region, where, column in parts
                for clause in region.clauses
            ]
        else:
            body = self._surface(parts, token)
        out = RegionOp(name, lo, hi, body)
        out.location = sources[0][0].location
        for clause in out.clauses:
            clause.location = out.location
        return out

    def _between(self, piece: Piece) -> tuple[Expr, Expr]:
        """`lo <= j < hi` of a piece of the columns, less what every column satisfies."""
        return TRUE if piece.lo == ZERO else le(piece.lo, J), TRUE if piece.hi == COLS else lt(J, piece.hi)

    def _moved(self, e: Expr, row: Expr, column: Expr) -> Expr:
        return substitute(e, {I: row, J: column, **self.lengths})

    def _surface(self, parts: list[tuple[RegionOp, Expr, Expr]], token: Expr) -> Region:
        """The same as SSA: the ops of every rule, on the token of the row and on that of the column."""
        block = Block(arg_types=[INDEX, INDEX])
        emit = _Emitter(block, self.values)
        emit.memo |= dict(zip((I, J), block.args, strict=True))
        for argument, hint in zip(block.args, "ij", strict=True):
            argument.name_hint = hint
        seen: SSAValue | None = None
        for region, where, column in parts:
            emit.source = region
            if region.is_normal:
                rule = or_(*(self._moved(c.condition.data, token, column) for c in region.clauses))
                value = emit(rule)
            else:
                value = self._inlined(region, emit, emit.named(token, "row"), emit.named(column, "column"))
            if where != TRUE:
                value = emit.add(arith.AndIOp(emit(where), value))
            seen = value if seen is None else emit.add(arith.OrIOp(seen, value))
        last = VisibleOp(emit(FALSE) if seen is None else seen)
        last.location = parts[0][0].location
        block.add_op(last)
        return Region(block)

    def _inlined(self, region: RegionOp, emit: _Emitter, row: SSAValue, column: SSAValue) -> SSAValue:
        """A copy of the ops of a surface rule, but its last; what that one shows."""
        values: dict[SSAValue, SSAValue] = dict(zip(region.body.block.args, (row, column), strict=True))
        for name, argument in zip(self.kinds, self.spec.body.block.args, strict=True):
            values[argument] = self.values[name]
        for op in region.body.block.ops:
            if isinstance(op, VisibleOp):
                return values[op.condition]
            if isinstance(op, RowsOp | ColsOp) and (length := var(op.name.removeprefix("maskspec."))) in self.lengths:
                values[op.result] = emit(self.lengths[length])
                continue
            if isinstance(op, PositionOp):
                values[op.result] = emit.add(self._position(op, values[op.index], emit))
                continue
            new = op.clone(values)
            for inner in [o for o in new.walk() if isinstance(o, PositionOp)]:
                Rewriter.replace_op(inner, self._position(inner, inner.index, emit))
            for inner in [o for o in new.walk() if isinstance(o, RowsOp | ColsOp)]:
                if inner is not new and (length := var(inner.name.removeprefix("maskspec."))) in self.lengths:
                    Rewriter.replace_op(inner, [], [emit(self.lengths[length])])
            emit.builder.insert(new)
        raise SpecError("a rule ends in 'maskspec.visible'", region)

    def _position(self, op: PositionOp, row: SSAValue, emit: _Emitter) -> Operation:
        """The column that the token of a row is aligned with, as arithmetic on the lengths that there are now."""
        return arith.AddiOp(row, emit(self._long(position(op.alignment.data, ZERO))))


class _Emitter:
    """Expressions as the ops of a surface rule; equal terms once."""

    def __init__(self, block: Block, metadata: Mapping[str, SSAValue]) -> None:
        self.builder = Builder(InsertPoint.at_end(block))
        self.metadata = metadata
        self.memo: dict[Expr, SSAValue] = {}
        self.source: Operation | None = None

    def __call__(self, e: Expr) -> SSAValue:
        if e not in self.memo:
            self.memo[e] = self._emit(e)
        return self.memo[e]

    def named(self, e: Expr, hint: str) -> SSAValue:
        """The value, with a name if it has none."""
        value = self(e)
        value.name_hint = value.name_hint or hint
        return value

    def add(self, op: Operation) -> SSAValue:
        if self.source is not None:
            op.location = self.source.location
        return self.builder.insert(op).results[0]

    def _emit(self, e: Expr) -> SSAValue:
        match e.op:
            case "const":
                return self.add(arith.ConstantOp(IntegerAttr(e.value, INDEX)))
            case "bool":
                return self.add(arith.ConstantOp(BoolAttr.from_bool(bool(e.value))))
            case "var" if e in (ROWS, COLS):
                return self.add(RowsOp() if e == ROWS else ColsOp())
            case "var":
                return self.metadata[e.name]
            case "lookup":
                return self.add(LookupOp(self.metadata.get(e.name, e.name), *map(self, e.args)))
            case "not":
                return self(negate(e.args[0])) if e.args[0].op != "eq" else self._differ(e.args[0])
            case "neg":
                return self(sub(ZERO, e.args[0]))
            case "abs":
                return self(maximum(e.args[0], sub(ZERO, e.args[0])))
            case "select":
                return self.add(arith.SelectOp(*map(self, e.args)))
            case op if op in PREDICATES:
                return self.add(arith.CmpiOp(self(e.args[0]), self(e.args[1]), PREDICATES[op]))
            case op if op in BINARY:
                out = self(e.args[0])
                for a in e.args[1:]:
                    out = self.add(BINARY[op](out, self(a)))  # pyright: ignore[reportCallIssue]
                return out
            case _:
                raise SpecError(f"'{e}' cannot be moved to another order of the tokens", self.source)

    def _differ(self, e: Expr) -> SSAValue:
        return self.add(arith.CmpiOp(self(e.args[0]), self(e.args[1]), "ne"))
