"""Many sequences in one row of tokens: the tables of a mask of one sequence, composed with cumulative lengths.

    row i of the pack   =   row i - cu_rows[s] of sequence s,      s = the first with i < cu_rows[s + 1]

and likewise for columns, which may be cut differently. Inside a sequence the rule is the one that was written; between
sequences, in rows past `cu_rows[-1]` and in columns past `cu_cols[-1]` (padding) nothing is visible. Before:

    maskspec.spec @window(%w: index) {
      maskspec.assume 0 <= w
      ...
    }
    interval.table @window_rows of @window axis rows slots 1 {
      interval.region @all [0, rows) {
        interval.span [max(0, i - w), min(cols, i + 1)) from "all.0"
      }
    }

After (`s` stands for the search in the text alone):

    maskspec.spec @window packed (%w: !maskspec.table<free>, %cu_rows: !maskspec.table<free>, ...) {
      maskspec.assume for s in [0, cu_rows_length - 1) : 0 <= w[s] as "0 <= w, in every sequence"
      ...
    }
    interval.table @window_rows of @window axis rows slots 1
        where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
      interval.region @all [cu_rows[s], cu_rows[s + 1]) {
        interval.span [max(cu_cols[s], cu_cols[s] + i - cu_rows[s] - w[s]), min(cu_cols[s + 1], ...)) from "all.0"
      }
    }

It comes after `--transpose`, so every proof has been made in the coordinates of one sequence, and slot counts do not
change. A scalar becomes a table with one entry per sequence (a table of one entry serves all); tables per row and per
column stay what they are, those of the sequences one after another. A free table is that of the sequences one after
another too, or one for all: sequence s has the entries from `limit_from[s]` to `limit_to[s]`. Whatever the metadata, a
row sees columns of its own sequence only: ends are clamped into it. Facts are rewritten with the tables: one about
scalars holds in every sequence, one about rows or entries for those of every sequence. Three metadata are added, after
those of the spec and of its free tables: `cu_rows` and `cu_cols`, one entry more than there are sequences, and
`longest`, which no sequence is longer than. That all these make sense is declared, and so checked, like any other fact.

A mask that is symmetric within a sequence need not be so in a pack of as many rows as columns, which may be cut
differently: what `--choose-axis` has found of that is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cmir.analysis.facts import Fact, facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.reads import reads_of
from cmir.dialects.attention import TestsOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.expr import (
    BINDERS,
    COLS,
    KEYWORDS,
    ROWS,
    ZERO,
    Expr,
    add,
    and_,
    const,
    first,
    le,
    lookup,
    lt,
    maximum,
    minimum,
    or_,
    rebuild,
    select,
    sub,
    var,
)
from cmir.dialects.expr import eq as equal
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.dialects.maskspec import INDEX, AssumeOp, Parameter, SpecOp, TableType, length_name
from cmir.errors import SpecError

ADDED = 3
"""Metadata that a packed spec has at its end: cu_rows, cu_cols and longest, whatever their names."""

AXIS_OF = {"i": "rows", "j": "cols"}
_TABLE_INDEX = {"row": "i", "col": "j"}


@dataclass(frozen=True)
class Pack(ModulePass):
    """Put many sequences into one row of tokens: compose the tables with cumulative lengths."""

    name = "pack"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            tables = [t for t in op.walk() if isinstance(t, TableOp) and t.spec == spec.sym_name]
            _require_tables(op, spec, tables)
            packing = Packing(spec)
            packed = [packing.table(t) for t in tables]
            for old, new in zip(tables, packed, strict=True):
                Rewriter.replace_op(old, new, [])
            Rewriter.replace_op(spec, packing.packed_spec(), [])
            for tests in [o for o in op.walk() if isinstance(o, TestsOp) and o.spec == spec.sym_name]:
                tests.properties.pop("symmetric", None)


def _require_tables(module: ModuleOp, spec: SpecOp, tables: list[TableOp]) -> None:
    name = spec.sym_name.data
    if spec.is_packed:
        raise SpecError(f"@{name} is packed already", spec)
    for axis, flags in (("rows", "--lower-intervals"), ("cols", "--transpose")):
        if not any(t.axis.data == axis for t in tables):
            raise SpecError(f"@{name} has no table of {axis} yet; run {flags} first", spec)
    for table in tables:
        if table.slots is None and table.residual_span is None:
            raise SpecError(f"the slots of @{table.sym_name.data} are not numbered yet; run --merge-slots first", table)
    for there in (o for o in module.walk() if isinstance(o, PreprocessOp) and o.spec == spec.sym_name):
        raise SpecError(f"@{name} has a preprocess kernel already", spec, [("it is here", there)])


class Packing:
    """One spec's packed form. All names that it adds differ from the spec's own."""

    def __init__(self, spec: SpecOp) -> None:
        self.spec = spec
        self.facts = facts_of(spec)
        self.kinds = {p.name: p.kind for p in self.facts.parameters}
        self.taken = {p.name for p in spec.parameters} | {*spec.constant_tables()}
        self.taken |= {length_name(p.name) for p in spec.parameters if p.kind == "free"}
        for p in self.facts.parameters:
            if p.kind == "scalar" and length_name(p.name) in self.taken:
                raise SpecError(
                    f"--pack makes a table of '{p.name}', one entry per sequence, whose length is "
                    f"'{length_name(p.name)}', which names something else; rename one of the two",
                    spec,
                )
            if p.kind == "scalar":
                self.taken.add(length_name(p.name))
        self.cu = {"i": self._fresh("cu_rows", table=True), "j": self._fresh("cu_cols", table=True)}
        self.longest = self._fresh("longest")
        self.spans = {  # where the entries of a free table begin and end
            name: (self._fresh(f"{name}_from", table=True), self._fresh(f"{name}_to", table=True))
            for name, kind in self.kinds.items()
            if kind == "free"
        }
        self.sequence = self._fresh("s")
        self.entry = self._fresh("e")

    def _fresh(self, name: str, table: bool = False) -> str:
        while {name, length_name(name)} & self.taken or name in KEYWORDS:
            name += "_"
        self.taken |= {name, length_name(name)} if table else {name}
        return name

    def sequences(self, index: str) -> Expr:
        """How many sequences there are."""
        return sub(var(length_name(self.cu[index])), const(1))

    def owner(self, index: str) -> Expr:
        """The sequence that holds the row `i` or the column `j`; past the last one, their number."""
        s = var(self.sequence)
        end = lookup(self.cu[index], add(s, const(1)))
        return simplify(first(self.sequence, ZERO, self.sequences(index), lt(var(index), end)))

    def owner_of_entry(self, table: str) -> Expr:
        """The sequence that holds the entry `e` of a free table."""
        end = lookup(self.spans[table][1], var(self.sequence))
        return simplify(first(self.sequence, ZERO, self.sequences("i"), lt(var(self.entry), end)))

    def place(self, index: str) -> Place:
        return Place(self, self.owner(index), index)

    # Tables.

    def table(self, table: TableOp) -> TableOp:
        """The packed form of a table."""
        fixed, moving = ("i", "j") if table.axis.data == "rows" else ("j", "i")
        place = replace(self.place(fixed), span_only=True)
        regions = [self._region(region, place, fixed, moving) for region in table.regions_of_table]
        slots = None if table.slots is None else table.slots.data
        name = table.sym_name.data
        out = TableOp(name, table.spec.data, table.axis.data, regions, slots, (self.sequence, place.sequence))
        out.location = table.location
        return out

    def _region(self, region: RegionOp, place: Place, fixed: str, moving: str) -> RegionOp:
        spans: list[SpanOp] = []
        for span in region.spans:
            lo, hi = place.range(moving, span.lo.data, span.hi.data)
            condition = simplify(place(span.condition))
            packed = SpanOp(lo, hi, span.origins, condition)
            if span.residual is not None and span.reason is not None:
                residual = simplify(place(span.residual.data))
                packed = SpanOp(lo, hi, span.origins, condition, residual, span.reason.data)
            packed.location = span.location
            spans.append(packed)
        out = RegionOp(region.sym_name.data, *place.range(fixed, region.lo.data, region.hi.data), spans, region.fused)
        out.location = region.location
        return out

    # Facts.

    def packed_spec(self) -> SpecOp:
        """Metadata and facts of the packed form."""
        parameters = [replace(p, kind="free" if p.kind == "scalar" else p.kind) for p in self.facts.parameters]
        parameters += [Parameter(n, "free") for names in self.spans.values() for n in names]
        parameters += [Parameter(self.cu["i"], "free"), Parameter(self.cu["j"], "free")]
        parameters.append(Parameter(self.longest, "scalar"))
        types = [INDEX if p.kind == "scalar" else TableType(p.kind, p.entries) for p in parameters]
        declared = (*self.facts.facts, *reads_of(self.spec))
        facts = [*self._added_facts(), *(packed for fact in declared for packed in self._fact(fact))]
        for fact in facts:
            fact.location = self.spec.location
        out = SpecOp(self.spec.sym_name.data, parameters, Region(Block(facts, arg_types=types)), packed=True)
        out.location = self.spec.location
        return out

    def _every(self, index: str) -> tuple[str, Expr, Expr]:
        """Of every sequence."""
        return self.sequence, ZERO, self.sequences(index)

    def _added_facts(self) -> Iterator[AssumeOp]:
        """That the cumulative lengths start at 0, never fall, end within the rows (columns), and keep the promise."""
        s = var(self.sequence)
        for index, length, name in (("i", ROWS, "cu_seqlens"), ("j", COLS, "cu_seqlens_k")):
            cu = self.cu[index]
            here, after = lookup(cu, s), lookup(cu, add(s, const(1)))
            yield AssumeOp(equal(lookup(cu, ZERO), ZERO), text=f"{name}[0] == 0")
            yield AssumeOp(le(here, after), self._every(index), text=f"{name} nondecreasing")
            yield AssumeOp(le(lookup(cu, self.sequences(index)), length), text=f"{name}[-1] <= {length}")
            longest = add(here, var(self.longest))
            yield AssumeOp(le(after, longest), self._every(index), text=f"{name}[s + 1] - {name}[s] <= max_seqlen")

        for table, (start, end) in self.spans.items():
            here, after = lookup(start, s), lookup(end, s)
            inside = and_(le(ZERO, here), le(here, after), le(after, var(length_name(table))))
            yield AssumeOp(inside, self._every("i"), text=f"0 <= cu[s] <= cu[s + 1] <= length of table '{table}'")

    def _fact(self, fact: Fact) -> Iterator[AssumeOp]:
        over = () if fact.over is None else fact.over[1:]
        text = f"{fact.text}, in every sequence"
        if fact.kind in ("row", "col"):
            index = "i" if fact.kind == "row" else "j"
            place = self.place(index)
            lo, hi = place.range(index, *over)
            here = var(index)
            condition = or_(lt(here, lo), le(hi, here), place(fact.condition))
            yield AssumeOp(simplify(condition), where=(self.sequence, place.sequence), text=text)
        elif fact.over is None:
            place = Place(self, var(self.sequence))
            yield AssumeOp(simplify(place(fact.condition)), self._every("i"), text=text)
        else:  # of the entries of each table that it reads
            for table in fact.tables:
                place = Place(self, self.owner_of_entry(table), entry=(fact.over[0], table))
                start, end = place.span(table)
                here, lo, hi = var(self.entry), *(add(start, place(e)) for e in over)
                condition = or_(lt(here, maximum(start, lo)), le(minimum(end, hi), here), place(fact.condition))
                length = self.entry, ZERO, var(length_name(table))
                yield AssumeOp(simplify(condition), length, (self.sequence, place.sequence), text)


@dataclass(frozen=True)
class Place:
    """A place in the pack: rewrites what an expression of one sequence says into what it says there.

    `sequence` is the sequence at that place. With `index` (i or j) the place is a row or a column of it, with `entry`
    an entry of a free table, which the expression gives a name: such a place is in its sequence, so that tables are
    read there as they are. A sequence's part of another table may be empty, and then reads 0: in a span of a table this
    makes a difference for free tables only, since a sequence without rows or columns shows nothing anyway.
    """

    packing: Packing
    sequence: Expr
    index: str | None = None
    entry: tuple[str, str] | None = None
    span_only: bool = False

    def start(self, index: str) -> Expr:
        return lookup(self.packing.cu[index], self.sequence)

    def end(self, index: str) -> Expr:
        return lookup(self.packing.cu[index], add(self.sequence, const(1)))

    def span(self, table: str) -> tuple[Expr, Expr]:
        """Where the sequence's entries of a free table begin and end."""
        start, end = (lookup(name, self.sequence) for name in self.packing.spans[table])
        return start, end

    def range(self, index: str, lo: Expr, hi: Expr) -> tuple[Expr, Expr]:
        """The rows (columns) from lo to hi of the sequence, in the pack; never one of another sequence."""
        start, end = self.start(index), self.end(index)
        length = ROWS if index == "i" else COLS
        lows = [add(start, self(e)) for e in (lo.args if lo.op == "max" else (lo,)) if e != ZERO]
        highs = [add(start, self(e)) for e in (hi.args if hi.op == "min" else (hi,)) if e != length]
        return simplify(maximum(start, *lows)), simplify(minimum(end, *highs))

    def __call__(self, e: Expr, bound: frozenset[str] = frozenset()) -> Expr:
        """`e` of one sequence as an expression of the pack; names in `bound` are indices that `e` itself binds."""
        match e.op:
            case "var" if e.name not in bound:
                return self._variable(e)
            case "lookup":
                return self._lookup(e, bound)
            case op if op in BINDERS:
                lo, hi, body = e.args
                return rebuild(e, (self(lo, bound), self(hi, bound), self(body, bound | {e.name})))
            case _:
                return rebuild(e, tuple(self(a, bound) for a in e.args))

    def _variable(self, e: Expr) -> Expr:
        if e.name in self.packing.cu:
            return sub(e, self.start(e.name))
        if self.entry is not None and e.name == self.entry[0]:
            return sub(var(self.packing.entry), self.span(self.entry[1])[0])
        if e in (ROWS, COLS):
            index = "i" if e == ROWS else "j"
            return sub(self.end(index), self.start(index))
        for table in self.packing.spans:
            if e.name == length_name(table):
                start, end = self.span(table)
                return sub(end, start)
        return lookup(e.name, self.sequence) if self.packing.kinds.get(e.name) == "scalar" else e

    def _lookup(self, e: Expr, bound: frozenset[str]) -> Expr:
        """An entry stands as far behind the first one of its sequence as it stood behind entry 0."""
        position, *rest = e.args
        others = tuple(self(a, bound) for a in rest)
        index = _TABLE_INDEX.get(self.packing.kinds[e.name])
        if index is not None and index == self.index and position == var(index) and index not in bound:
            return rebuild(e, (position, *others))
        if self.entry == (position.data, e.name) and position.op == "var" and position.name not in bound:
            return rebuild(e, (var(self.packing.entry), *others))
        start, end = self.span(e.name) if index is None else (self.start(index), self.end(index))
        inside = minimum(maximum(add(start, self(position, bound)), start), sub(end, const(1)))
        entry = rebuild(e, (simplify(inside), *others))
        if index is not None and (self.span_only or index == self.index):
            return entry
        return select(lt(start, end), entry, ZERO)
