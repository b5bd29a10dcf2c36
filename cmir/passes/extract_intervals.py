"""Intervals of columns for every clause: one, where it does not repeat.

    clause and 0 <= j < cols   <=>   lo(i) <= j < hi(i)  [and a residual, where a literal bounds no interval]

Before:

    maskspec.region @candidate rows [history, rows) {
      maskspec.clause j < history
      maskspec.clause start[i] <= j and j <= i
    }

After, beside the spec (which stays: `--transpose` solves the same clauses for the row):

    interval.table @hstu_rows of @hstu axis rows {
      interval.region @candidate [history, rows) {
        interval.span [0, min(cols, history)) from "candidate.0"
        interval.span [max(0, start[i]), min(cols, i + 1)) from "candidate.1"
      }
    }

Literals that do not read the column become the span's `when`. How a literal is solved is `cmir.analysis.solve`; a
clause that repeats along the columns a known number of times becomes as many spans (`cmir.analysis.split`).
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.solve import Solution
from cmir.analysis.split import solve_all
from cmir.dialects.expr import COLS, ZERO, and_
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.dialects.maskspec import ClauseOp, SpecOp
from cmir.dialects.maskspec import RegionOp as SpecRegionOp
from cmir.errors import SpecError


@dataclass(frozen=True)
class ExtractIntervals(ModulePass):
    """Solve every clause for the column: one span per clause, or per repetition of it."""

    name = "extract-intervals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            require_normal(spec)
            require_no_table(op, spec, "rows")
            Rewriter.insert_op(solve_rows(spec), InsertPoint.after(spec))


def solve_rows(spec: SpecOp) -> TableOp:
    """The spans of columns of every clause, Region by Region."""
    facts = facts_of(spec)
    name = spec.sym_name.data
    table = TableOp(f"{name}_rows", name, "rows", [_region(r, facts) for r in spec.regions_of_rows])
    table.location = spec.location
    return table


def _region(region: SpecRegionOp, facts: Facts) -> RegionOp:
    spans: list[SpanOp] = []
    rows = Entailment(facts, "i", region.lo.data, region.hi.data)
    for k, clause in enumerate(region.clauses):
        solutions = solve_all(clause.literals, "j", ZERO, COLS, rows)
        spans += spans_of(solutions, f"{region.sym_name.data}.{k}", clause)
    out = RegionOp(region.sym_name.data, region.lo.data, region.hi.data, spans)
    out.location = region.location
    return out


def spans_of(solutions: list[Solution], origin: str, clause: ClauseOp) -> list[SpanOp]:
    """The solutions of one clause as spans."""
    spans = [
        SpanOp(s.lo, s.hi, [origin], simplify(and_(*s.conditions)), and_(*s.residual), s.reason) for s in solutions
    ]
    for span in spans:
        span.location = clause.location
    return spans


def require_no_table(module: ModuleOp, spec: SpecOp, axis: str) -> None:
    """A spec has one table of rows and one of columns."""
    for op in module.walk():
        if isinstance(op, TableOp) and op.spec == spec.sym_name and op.axis.data == axis:
            raise SpecError(f"@{spec.sym_name.data} has a table of {axis} already", spec, [("it is here", op)])


def require_normal(spec: SpecOp) -> None:
    """Spans are solved from clauses: a rule must be in normal form."""
    for region in spec.regions_of_rows:
        if not region.is_normal:
            raise SpecError(f"Region @{region.sym_name.data} is not in normal form; run --dnf-normalize first", region)
    if any(p.kind == "static" for p in spec.parameters):
        raise SpecError(f"@{spec.sym_name.data} still has statics; run --dnf-normalize first", spec)
