"""What each kernel tests in a partial tile: the table of rows, the table of columns, or packed bits.

    test of kernel K  =  the bounded, uncrowded table whose test costs K least      (its own axis's at equal cost)
                         bits, where there is no such table

Before:

    interval.table @evict_rows of @evict axis rows {                     // a residual: rows are unbounded
      interval.region @all [0, rows) {
        interval.span [0, i + 1) residual i < evict[j] because "..." from "all.0"
      }
    }
    interval.table @evict_cols of @evict axis cols slots 1 { ... }

After, beside the tables:

    attention.tests of @evict forward cols, dq cols, dkv cols

The cost counts instructions of compiled kernels (`cmir.lowering.visibility`): a table of the axis that a kernel owns is
loaded once, the other with every block; of many slots only those that touch a tile are tested. A rule that bounds no
interval on either axis is evaluated by the preprocess kernel, pair by pair in the tiles that its rows may touch, and
kept as one bit a pair.

So is one whose tables are both *crowded*: more than MOST_AT_ONCE intervals of one line may touch the same tile of TILE
positions (`cmir.analysis.crowding`). A kernel compares each position with up to three intervals a visit and visits the
tile again, its products included, for more; a word of bits holds them all. A slot list of 64 spans a row is crowded; a
circle of radius 16 is not, whose 32 slots begin a grid's width apart so that 4 meet. The choice is one of compile time
and of the whole mask, not of each tile: kernels of both tests would hold both producers, and lists of tiles of a mask
by bits come from the rule alone, so that it needs no table at all.

An axis that is unbounded is worth a remark, which names the literal and the table at fault, and
the fact that would bound it, if there is one. `test=rows`, `cols` or `bits` forces the choice.

A rule that is proved to be `symmetric` (cmir.analysis.symmetry) and has as many slots by row as by column needs one
table where there are as many rows as columns: the intervals of row x are those of column x.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.crowding import most_at_once
from cmir.analysis.facts import conjuncts, facts_of
from cmir.analysis.origins import origins_of
from cmir.analysis.symmetry import is_symmetric
from cmir.dialects.attention import ROLES, TESTS, Test, TestsOp
from cmir.dialects.expr import ZERO, Expr, const, depends, le, walk
from cmir.dialects.interval import SpanOp, TableOp
from cmir.dialects.maskspec import NondecreasingOp, SpecOp
from cmir.errors import Note, Remark, SourceLocation, SpecError, emit_remark, is_heard, locate
from cmir.lowering.visibility import FIXED_AXIS, Kernel, needs_live_test, table_axis
from cmir.passes.extract_intervals import solve_rows
from cmir.passes.transpose import solve_columns

CAP = 4096
"""Clauses that one part of a rule may have, to be looked for in it."""

MOST_AT_ONCE = 12
"""Intervals of one line in one tile beyond which bits are tested: four visits of a tile."""

TILE = 128
"""Positions of a tile, of the size that descriptors have unless they are asked for another."""


class Words(NamedTuple):
    """What remarks call a mask, the fact that a table never falls, and the choice of what is tested."""

    mask: str
    nondecreasing: str
    test: str


TEXT = Words("@{}", "'maskspec.nondecreasing {}'", "test={}")
PYTHON = Words("'{}'", "{}.nondecreasing()", "cmir.compile(spec, test='{}')")
"""The same where the spec was written in Python."""


@dataclass(frozen=True)
class ChooseAxis(ModulePass):
    """Decide what each kernel tests: the row table, the column table or packed bits."""

    name = "choose-axis"

    test: str = "auto"
    """rows, cols or bits for every kernel, whatever it costs; auto: the cheapest for each."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.test not in ("auto", *TESTS):
            raise SpecError(f"--choose-axis: test is auto, {', '.join(TESTS)}, got '{self.test}'", op)
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            if (there := tests_of(op, spec.sym_name.data)) is not None:
                raise SpecError(
                    f"what the kernels of @{spec.sym_name.data} test is chosen already", spec, [("it is here", there)]
                )
            tables = tables_of(op, spec)
            tests = self._choose(spec, tables)
            slots = {bounded_slots(table) for table in tables}
            shared = "bits" not in tests and len(slots) == 1 and not spec.is_packed and is_symmetric(spec)
            chosen = TestsOp(spec.sym_name.data, tests, shared)
            chosen.location = spec.location
            Rewriter.insert_op(chosen, InsertPoint.after(max(tables, key=_place)))
            if is_heard():
                for remark in remarks_of(spec, tables, chosen):
                    emit_remark(remark)

    def _choose(self, spec: SpecOp, tables: Sequence[TableOp]) -> list[Test]:
        counts: dict[str, int | None] = {t.axis.data: bounded_slots(t) for t in tables}
        for test in TESTS:
            if test == self.test:
                if test != "bits" and counts[test] is None:
                    raise SpecError(f"@{spec.sym_name.data} cannot be tested by {test}, which are unbounded", spec)
                if any(_unlisted(role, test, counts) for role in ROLES):
                    raise SpecError(
                        f"@{spec.sym_name.data} cannot be tested by {test} alone: of {counts[test]} slots a kernel "
                        "tests those that its tile list names, and the lists of each axis name its own; try test=bits",
                        spec,
                    )
                return [test for _ in ROLES]
        few = {t.axis.data: None if is_crowded(t) else counts[t.axis.data] for t in tables}
        if few["rows"] is None and few["cols"] is None:
            return ["bits" for _ in ROLES]
        tests: list[Test] = [table_axis(role, few["rows"], few["cols"]) for role in ROLES]
        unlisted = any(_unlisted(role, test, counts) for role, test in zip(ROLES, tests, strict=True))
        return ["bits" for _ in ROLES] if unlisted else tests


def tests_of(module: ModuleOp, spec: str) -> TestsOp | None:
    """What the kernels of a spec test, where that has been chosen."""
    return next((op for op in module.walk() if isinstance(op, TestsOp) and op.spec.data == spec), None)


def tables_of(module: ModuleOp, spec: SpecOp) -> list[TableOp]:
    """The row table and the column table of a spec, in this order; SpecError if one is missing or not finished."""
    found = [t for t in module.walk() if isinstance(t, TableOp) and t.spec == spec.sym_name]
    tables: list[TableOp] = []
    for axis, flags in (("rows", "--lower-intervals"), ("cols", "--transpose")):
        table = next((t for t in found if t.axis.data == axis), None)
        if table is None:
            raise SpecError(f"@{spec.sym_name.data} has no table of {axis} yet; run {flags} first", spec)
        if table.slots is None and table.residual_span is None:
            raise SpecError(f"the slots of @{table.sym_name.data} are not numbered yet; run --merge-slots first", table)
        tables.append(table)
    return tables


def bounded_slots(table: TableOp) -> int | None:
    """The slots of a table; None where it is unbounded."""
    return None if table.residual_span is not None or table.slots is None else table.slots.data


def _unlisted(role: Kernel, test: Test, counts: Mapping[str, int | None]) -> bool:
    """Whether a kernel would test live slots of the other axis, while its own lists name the slots of its own axis."""
    own, slots = FIXED_AXIS[role], 0 if test == "bits" else counts[test]
    return test not in ("bits", own) and needs_live_test(slots or 0) and counts[own] is not None


def is_crowded(table: TableOp) -> bool:
    """Whether a bounded table has too many intervals in one tile to be tested."""
    return bounded_slots(table) is not None and most_at_once(table, TILE) > MOST_AT_ONCE


def remarks_of(
    spec: SpecOp, tables: Sequence[TableOp], tests: TestsOp, surface: SpecOp | None = None, words: Words = TEXT
) -> Iterator[Remark]:
    """For every unbounded axis the literal and the table that make it so, and the fact that would bound it; for a mask
    whose slots crowd, how many may meet.

    `spec` is in normal form; remarks point into `surface`, the spec as it was written, where that is another.
    """
    name = words.mask.format(spec.sym_name.data)
    if tests.bits and (crowded := [table for table in tables if is_crowded(table)]):
        table = crowded[0]
        counts = {t.axis.data: bounded_slots(t) for t in tables}
        can_be_forced = not any(_unlisted(role, table.axis.data, counts) for role in ROLES)  # pyright: ignore[reportArgumentType]
        line = {"rows": "row", "cols": "column"}[table.axis.data]
        yield Remark(
            f"up to {most_at_once(table, TILE)} intervals of a {line} of mask {name} may meet in one "
            f"tile, more than {MOST_AT_ONCE}; partial tiles are tested by packed bits",
            locate(surface or spec),
            () if not can_be_forced else (Note(f"{words.test.format(table.axis.data)} tests intervals all the same"),),
        )
    for table in tables:
        span = table.residual_span
        if span is None or span.residual is None or span.reason is None:
            continue
        axis = table.axis.data
        instead = "partial tiles are tested by packed bits"
        if not tests.bits:
            instead = f"kernels test the table of {' and '.join(sorted(set(tests.tests.values())))}"
        place = locate(span) if surface is None else _written(span.origins[0], spec, surface)
        notes = tuple(Note(hint) for hint in _hints(spec, table, words))
        yield Remark(
            f"mask {name} is unbounded by {axis}: '{span.residual.data}' bounds no interval, "
            f"since {span.reason.data}; {instead}",
            place or locate(surface or spec),
            notes,
        )


def _written(origin: str, spec: SpecOp, surface: SpecOp) -> SourceLocation | None:
    """Where the clause of that name, `region.number`, was written."""
    name, _, number = origin.rpartition(".")
    region = next((r for r in spec.regions_of_rows if r.sym_name.data == name), None)
    written = next((r for r in surface.regions_of_rows if r.sym_name.data == name), None)
    if region is None or written is None or not number.isdecimal() or int(number) >= len(region.clauses):
        return None
    return locate(origins_of(written, [region.clauses[int(number)].literals], CAP)[0])


def _hints(spec: SpecOp, table: TableOp, words: Words) -> Iterator[str]:
    """What would bound the axis: a table that never falls, which is tried; or another order of tokens."""
    if spec.is_packed:
        return  # its rules are gone: what they would need is said of one sequence
    residuals = [s for r in table.regions_of_table for s in r.spans if s.residual is not None]
    index = table.moving.name
    reads = {term for span in residuals for term in _tables_read(span, index)}
    names = sorted({term.name for term in reads})
    if names and _bounded_with(spec, names, table.axis.data):
        facts = " and ".join(words.nondecreasing.format(name) for name in names)
        if booleans := sorted(_booleans(spec, reads)):  # most are 1, 1, 1, 0, 0, which falls
            yield (
                f"of {' and '.join(booleans)}, which is 0 or 1: for padding at the end write {index} < n, n a scalar; "
                f"for padding at the start {facts} would bound it"
            )
        else:
            yield f"{facts} would bound it: declare that if no entry is below the one before, or order the tokens so"
    divisors = {
        term.args[1] for span in residuals for term in _terms(span) if term.op == "mod" and depends(term, index)
    }
    for divisor in sorted(divisors, key=str):
        yield (
            f"tokens ordered by t mod {divisor} first have those of one remainder side by side: "
            "then intervals can say what repeats"
        )


def _terms(span: SpanOp) -> Iterator[Expr]:
    if span.residual is not None:
        yield from walk(span.residual.data)


def _tables_read(span: SpanOp, index: str) -> Iterator[Expr]:
    return (term for term in _terms(span) if term.op == "lookup" and depends(term, index))


def _booleans(spec: SpecOp, reads: set[Expr]) -> set[str]:
    """The tables of which facts say that what is read is 0 or 1."""
    said = {part for fact in facts_of(spec).facts for part in conjuncts(fact.condition)}
    return {term.name for term in reads if {le(ZERO, term), le(term, const(1))} <= said}


def _bounded_with(spec: SpecOp, names: Sequence[str], axis: str) -> bool:
    """Whether an axis is bounded once these tables are declared nondecreasing."""
    trial = spec.clone()
    Rewriter.insert_op([NondecreasingOp(name) for name in names], InsertPoint.at_start(trial.body.block))
    return (solve_rows if axis == "rows" else solve_columns)(trial).residual_span is None


def _place(table: TableOp) -> int:
    block = table.parent_block()
    return 0 if block is None else block.get_operation_index(table)
