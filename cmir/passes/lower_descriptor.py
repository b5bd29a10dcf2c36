"""From tables to the preprocess kernel: metadata in, Execution Descriptor out.

    slot k at row i  =  [lo, hi) of the k-th span of the region that holds i, where the span is not empty, else [0, 0)

Before:

    interval.table @causal_rows of @causal axis rows slots 1 {
      interval.region @all [0, rows) {
        interval.span [0, min(cols, i + 1)) from "all.0"
      }
    }

After:

    descriptor.preprocess @causal_preprocess of @causal () {
      descriptor.slots rows (%i) {
        %zero = arith.constant 0 : index
        ...
        descriptor.endpoints [%lo, %hi) from "all.0"
      }
      descriptor.slots cols (%j) { ... }
    }

Endpoints become SSA, equal terms once. The facts of the spec become numbered checks, and after them the entries that
the rule reads of free tables (`cmir.analysis.reads`). Slots that nothing proves disjoint are united where they overlap.
Every end is clamped into its axis: metadata that break the facts give a wrong mask and a status that says so, never an
access outside a table. An axis whose table has a residual gets no slots.

Kernels that test bits (`--choose-axis`) get no slots at all, but the mask pair by pair, from the table of rows:

    row i sees column j  =  any span of the region that holds i:  lo <= j < hi and when and residual(i, j)
    hull of row i        =  [least lo, largest hi) of its spans that are not empty

Before: `interval.span [0, i + 1) residual (i - j) mod 4 == 0 because "..." from "all.0"`. After:

    descriptor.hull (%i) {
      ...
      descriptor.endpoints [%lo, %hi) from "all.0"
    }
    descriptor.pair (%i, %j) {
      ...
      descriptor.holds %p
    }
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, BoolAttr, IntegerAttr, LocationAttr, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.facts import Fact, Facts, facts_of, in_range
from cmir.analysis.linear import negate, simplify
from cmir.analysis.pairs import any_of
from cmir.analysis.reads import reads_of
from cmir.dialects.descriptor import (
    EndpointsOp,
    FactOp,
    FirstOp,
    HoldsOp,
    HullOp,
    LengthOp,
    PairOp,
    PreprocessOp,
    SlotsOp,
)
from cmir.dialects.expr import (
    COLS,
    FALSE,
    ROWS,
    TRUE,
    ZERO,
    Expr,
    and_,
    const,
    free_names,
    le,
    lt,
    make,
    maximum,
    minimum,
    or_,
    select,
    var,
)
from cmir.dialects.interval import SpanOp, TableOp
from cmir.dialects.maskspec import INDEX, ColsOp, LookupOp, ModOp, RowsOp, SpecOp
from cmir.errors import SpecError
from cmir.passes.choose_axis import bounded_slots, tables_of, tests_of

FEW_ORIGINS = 4
"""Most clauses that are named beside every line of a pair; of more, the Region is."""

PREDICATES = {"eq": "eq", "lt": "slt", "le": "sle"}
BINARY: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "floordiv": arith.FloorDivSIOp,
    "mod": ModOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
}


@dataclass(frozen=True)
class LowerDescriptor(ModulePass):
    """Build the preprocess kernel: metadata in, Execution Descriptor out."""

    name = "lower-descriptor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        built = {o.spec.data: o for o in op.walk() if isinstance(o, PreprocessOp)}
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            if (there := built.get(spec.sym_name.data)) is not None:
                message = f"@{spec.sym_name.data} has a preprocess kernel already"
                raise SpecError(message, spec, [("it is here", there)])
            tables = tables_of(op, spec)
            tests = tests_of(op, spec.sym_name.data)
            if tests is None:
                raise SpecError(
                    f"nothing says yet what the kernels of @{spec.sym_name.data} test; run --choose-axis first", spec
                )
            if spec.is_packed and tests.symmetric is not None:
                raise SpecError(
                    f"@{spec.sym_name.data} is packed, and rows and columns of a pack may be cut differently: "
                    "its tests are not symmetric",
                    tests,
                )
            preprocess = build_preprocess(spec, tables, tests.bits, tests.symmetric is not None)
            Rewriter.insert_op(preprocess, InsertPoint.after(tests))


def build_preprocess(spec: SpecOp, tables: Sequence[TableOp], bits: bool, symmetric: bool = False) -> PreprocessOp:
    """The preprocess kernel from the tables of rows and of columns: slots of the bounded ones, or bits."""
    facts = facts_of(spec)
    arguments = list(spec.body.block.args)
    block = Block(arg_types=[a.type for a in arguments])
    metadata = dict(zip((p.name for p in facts.parameters), block.args, strict=True))
    for table in tables:
        ops: list[SlotsOp | HullOp | PairOp] = []
        if bits and table.axis.data == "rows":
            ops = [_hull(table, metadata), _pair(table, metadata)]
        elif not bits and bounded_slots(table) is not None:
            ops = [_slots(table, metadata)]
        for op in ops:
            op.location = table.location
            block.add_op(op)
    for number, fact in enumerate((*facts.facts, *reads_of(spec)), 1):
        block.add_op(_fact(number, fact, metadata, facts))
    name = spec.sym_name.data
    out = PreprocessOp(f"{name}_preprocess", name, [p.name for p in facts.parameters], Region(block), symmetric)
    out.location = spec.location
    return out


def _slots(table: TableOp, metadata: Mapping[str, SSAValue]) -> SlotsOp:
    assert table.slots is not None
    here = var(table.fixed)
    _, end = table.bounds
    # A mask that never shows anything still has a table: one slot, always empty.
    count = max(table.slots.data, 1)
    ends = [(ZERO, ZERO) for _ in range(count)]
    origins: list[list[str]] = [[] for _ in range(count)]
    emitter = _Emitter(metadata)
    emitter.bind(table.fixed)
    for region in table.regions_of_table:
        inside = _inside(here, table, region.lo.data, region.hi.data)
        for k, span in enumerate(region.spans):
            lo, hi = simplify(maximum(ZERO, span.lo.data)), simplify(minimum(end, span.hi.data))
            live = simplify(and_(inside, span.condition, lt(lo, hi)))
            emitter.note(f"slot {k}: {', '.join(span.origins)}", region)
            for part in (live, lo, hi):
                emitter.emit(part)
            ends[k] = _choose(live, lo, ends[k][0]), _choose(live, hi, ends[k][1])
            for e in ends[k]:
                emitter.emit(e)
            origins[k] += span.origins
    for a, b in sorted({pair for r in table.regions_of_table for pair in r.fused}):
        emitter.note(f"slots {a} and {b}: united where they overlap", table)
        for k, (lo, hi) in zip((a, b), _fuse(ends[a], ends[b]), strict=True):
            ends[k] = emitter.name(lo), emitter.name(hi)  # by name, or terms would double with every pair
    slots = [(emitter.emit(lo), emitter.emit(hi)) for lo, hi in ends]
    emitter.builder.insert(EndpointsOp(slots, origins))
    return SlotsOp(table.axis.data, Region(emitter.block))


def _hull(table: TableOp, metadata: Mapping[str, SSAValue]) -> HullOp:
    here = var(table.fixed)
    zero, end = table.bounds
    origins: list[str] = []
    emitter = _Emitter(metadata)
    emitter.bind(table.fixed)
    lowest, highest = emitter.emit(end), emitter.emit(zero)
    for region in table.regions_of_table:
        inside = _inside(here, table, region.lo.data, region.hi.data)
        for span in region.spans:
            lo, hi = simplify(maximum(zero, span.lo.data)), simplify(minimum(end, span.hi.data))
            live = simplify(and_(inside, span.condition, lt(lo, hi)))
            emitter.note(f"hull: {', '.join(span.origins)}", region)
            lowest = emitter.add(arith.MinSIOp(lowest, emitter.emit(_choose(live, lo, end))))
            highest = emitter.add(arith.MaxSIOp(highest, emitter.emit(_choose(live, hi, zero))))
            origins += span.origins
    emitter.builder.insert(EndpointsOp([(lowest, highest)], [list(dict.fromkeys(origins))]))
    return HullOp(Region(emitter.block))


def _pair(table: TableOp, metadata: Mapping[str, SSAValue]) -> PairOp:
    here = var(table.fixed)
    emitter = _Emitter(metadata)
    for index in ("i", "j"):
        emitter.bind(index)
    seen: SSAValue | None = None
    for region in table.regions_of_table:
        inside = _inside(here, table, region.lo.data, region.hi.data)
        origins = list(dict.fromkeys(origin for span in region.spans for origin in span.origins))
        name = ", ".join(origins) if len(origins) <= FEW_ORIGINS else f"region {region.sym_name.data}"
        emitter.note(f"pair: {name}", region)
        clauses = [simplify(and_(*_held(span, table))) for span in region.spans]
        if clauses:
            held = emitter.emit(and_(inside, any_of(clauses)))
            seen = held if seen is None else emitter.add(arith.OrIOp(seen, held))
    emitter.builder.insert(HoldsOp(emitter.emit(FALSE) if seen is None else seen))
    return PairOp(Region(emitter.block))


def _held(span: SpanOp, table: TableOp) -> list[Expr]:
    """The literals of `span.contains`, less what holds of every column that exists."""
    zero, end = table.bounds
    lo, hi = span.lo.data, span.hi.data
    lows = [a for a in (lo.args if lo.op == "max" else (lo,)) if a != zero]
    highs = [a for a in (hi.args if hi.op == "min" else (hi,)) if a != end]
    residual = TRUE if span.residual is None else span.residual.data
    bounds = [*(le(a, table.moving) for a in lows), *(lt(table.moving, a) for a in highs)]
    return [*bounds, span.condition, residual]


def _choose(condition: Expr, a: Expr, b: Expr) -> Expr:
    return a if a == b else select(condition, a, b)


def _inside(here: Expr, table: TableOp, lo: Expr, hi: Expr) -> Expr:
    """`lo <= here < hi`, less what holds of every index."""
    length = ROWS if table.axis.data == "rows" else COLS
    parts = [TRUE if lo == ZERO else le(lo, here), TRUE if hi == length else lt(here, hi)]
    return and_(*parts)


def _fuse(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """Where slots a and b overlap, b becomes their union and a empty: two intervals that overlap are one."""
    (a_lo, a_hi), (b_lo, b_hi) = a, b
    overlap = and_(lt(a_lo, b_hi), lt(b_lo, a_hi), lt(a_lo, a_hi), lt(b_lo, b_hi))
    empty = select(overlap, ZERO, a_lo), select(overlap, ZERO, a_hi)
    return empty, (select(overlap, minimum(a_lo, b_lo), b_lo), select(overlap, maximum(a_hi, b_hi), b_hi))


def _fact(number: int, fact: Fact, metadata: Mapping[str, SSAValue], facts: Facts) -> FactOp:
    emitter = _Emitter(metadata)
    condition = fact.condition
    if fact.over is not None:
        name, lo, hi = fact.over
        emitter.bind(name)
        here = in_range(var(name), lo, hi)
        if fact.kind == "entry" and {p.name for p in facts.parameters if p.kind == "free"} - {*fact.tables}:
            # The kernel counts up to the length of the longest table, which may be another one.
            here = and_(here, lt(var(name), simplify(maximum(*(facts.length(table) for table in fact.tables)))))
        condition = or_(negate(here), condition)
    holds = emitter.emit(simplify(condition))
    emitter.builder.insert(HoldsOp(holds))
    return FactOp(number, fact.text, fact.kind, Region(emitter.block))


class _Emitter:
    """Expressions as SSA in one block; equal terms are emitted once."""

    def __init__(self, metadata: Mapping[str, SSAValue], outer: "_Emitter | None" = None) -> None:
        self.metadata = metadata
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.memo: dict[Expr, SSAValue] = {} if outer is None else dict(outer.memo)
        self.location: LocationAttr = UNKNOWN_LOC if outer is None else outer.location
        self.source: Operation | None = None if outer is None else outer.source

    def note(self, text: str, source: Operation) -> None:
        """What the ops from here on belong to: the printer repeats it on every line."""
        self.location = NameLoc(StringAttr(text), source.location)
        self.source = source

    def bind(self, name: str) -> SSAValue:
        """A block argument that an index name stands for."""
        value = self.block.insert_arg(INDEX, len(self.block.args))
        value.name_hint = name
        # What was computed from an outer index of the same name is another value here.
        self.memo = {e: v for e, v in self.memo.items() if name not in free_names(e)}
        self.memo[var(name)] = value
        return value

    def emit(self, e: Expr) -> SSAValue:
        if e not in self.memo:
            self.memo[e] = self._emit(e)
        return self.memo[e]

    def name(self, e: Expr) -> Expr:
        """A name for the value of a term."""
        out = var(f"value#{len(self.memo)}")
        self.memo[out] = self.emit(e)
        return out

    def add(self, op: Operation) -> SSAValue:
        op.location = self.location
        return self.builder.insert(op).results[0]

    def _emit(self, e: Expr) -> SSAValue:
        match e.op:
            case "const":
                if not -(2**31) <= e.value < 2**31:
                    raise SpecError(f"the number {e.value} does not fit the kernels' int32", self.source)
                return self.add(arith.ConstantOp(IntegerAttr(e.value, INDEX)))
            case "bool":
                return self.add(arith.ConstantOp(BoolAttr.from_bool(bool(e.value))))
            case "var":
                return self._variable(e.name)
            case "lookup":
                return self.add(LookupOp(self.metadata[e.name], *map(self.emit, e.args)))
            case "neg":
                return self.add(arith.SubiOp(self.emit(const(0)), self.emit(e.args[0])))
            case "not":
                return self.add(arith.XOrIOp(self.emit(e.args[0]), self.emit(TRUE)))
            case "select":
                return self.add(arith.SelectOp(*map(self.emit, e.args)))
            case "first":
                return self._first(e)
            case op if op in PREDICATES:
                return self.add(arith.CmpiOp(self.emit(e.args[0]), self.emit(e.args[1]), PREDICATES[op]))
            case "mul" if all(a.op != "const" for a in e.args):
                return self._product(*e.args)
            case op if op in BINARY:
                out = self.emit(e.args[0])
                for a in e.args[1:]:
                    out = self.add(BINARY[op](out, self.emit(a)))  # pyright: ignore[reportCallIssue]
                return out
            case _:
                raise SpecError(f"'{e}' has no code; run --canonicalize-intervals first")

    def _product(self, a: Expr, b: Expr) -> SSAValue:
        """Of two unknowns, each held in 32 bits: so no metadata make the product leave 64."""
        low, high = const(-(2**31)), const(2**31 - 1)
        x, y = (self.emit(make("min", make("max", e, low), high)) for e in (a, b))
        return self.add(arith.MuliOp(x, y))

    def _variable(self, name: str) -> SSAValue:
        if name == "rows":
            return self.add(RowsOp())
        if name == "cols":
            return self.add(ColsOp())
        if name in self.metadata:
            return self.metadata[name]
        return self.add(LengthOp(self.metadata[name.removesuffix("_length")]))

    def _first(self, e: Expr) -> SSAValue:
        lo, hi = self.emit(e.args[0]), self.emit(e.args[1])
        inner = _Emitter(self.metadata, self)
        inner.bind(e.name)
        inner.builder.insert(HoldsOp(inner.emit(e.args[2])))
        return self.add(FirstOp(lo, hi, Region(inner.block)))
