"""The same mask by column: which rows see column `j`, as intervals of rows; derived, never written by hand.

    row i of Region [lo, hi) sees j by a clause   <=>   lo <= i < hi and every literal holds     solved for i, not for j

Before (normal form, beside its row table):

    maskspec.region @candidate rows [history, rows) {
      maskspec.clause start[i] <= j and j <= i
    }

After, given that `start` is nondecreasing on those rows:

    interval.table @hstu_cols of @hstu axis cols slots 1 {
      interval.region @all [0, cols) {
        interval.span [max(history, j), first i in [history, rows) : j < start[i]) from "candidate.0"
      }
    }

`j < e(i)` with `e` monotone on the Region is a prefix or a suffix of its rows: closed form where `e` is affine, a
`first` (binary search in the preprocess kernel) otherwise. A table that nothing says is monotone leaves a residual:
that axis is unbounded. The spans are then canonicalized and merged exactly as those of rows are. The two directions
need different counts (a shared prompt: 2 by row, 1 by column), so neither is mirrored from the other.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import facts_of
from cmir.analysis.split import solve_all
from cmir.dialects.expr import COLS, ROWS, ZERO, maximum, minimum
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.passes.canonicalize_intervals import canonicalize, simplify_under
from cmir.passes.extract_intervals import require_no_table, require_normal, spans_of
from cmir.passes.merge_slots import merge


@dataclass(frozen=True)
class Transpose(ModulePass):
    """Derive the intervals of rows that see each column."""

    name = "transpose"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            require_normal(spec)
            require_no_table(op, spec, "cols")
            last = next((t for t in op.walk() if isinstance(t, TableOp) and t.spec == spec.sym_name), spec)
            facts = facts_of(spec)
            table = solve_columns(spec)
            Rewriter.insert_op(table, InsertPoint.after(last))
            canonicalize(table, facts)
            Rewriter.replace_op(table, merge(table, facts), [])


def solve_columns(spec: SpecOp) -> TableOp:
    """The spans of rows of every clause of every Region, in one region over all columns."""
    facts = facts_of(spec)
    scalars, columns = Entailment(facts, None), Entailment(facts, "j", ZERO, COLS)
    spans: list[SpanOp] = []
    for region in spec.regions_of_rows:
        # A guard may reach past the rows there are; a span may not.
        lo = simplify_under(scalars, maximum(ZERO, region.lo.data))
        hi = simplify_under(scalars, minimum(ROWS, region.hi.data))
        for k, clause in enumerate(region.clauses):
            solutions = solve_all(clause.literals, "i", lo, hi, columns)
            spans += spans_of(solutions, f"{region.sym_name.data}.{k}", clause)
    all_columns = RegionOp("all", ZERO, COLS, spans)
    all_columns.location = spec.location
    table = TableOp(f"{spec.sym_name.data}_cols", spec.sym_name.data, "cols", [all_columns])
    table.location = spec.location
    return table
