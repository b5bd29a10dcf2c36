"""Endpoints simplified under the facts, spans that are always empty gone.

    max(a, b) = a                where the facts give b <= a for every row of the region (and min alike)
    select(c, a, b) = a          where the facts give c
    [lo, hi) = {}                where the facts give hi <= lo

Before:

    interval.region @history [0, history) {
      interval.span [0, min(cols, i + 1)) from "history.0"
    }

After, given `rows == cols` (so i + 1 <= rows = cols):

    interval.region @history [0, history) {
      interval.span [0, i + 1) from "history.0"
    }

The pass never guesses: what `cmir.analysis.entailment` cannot prove stays as it is. Simplifying under preconditions in
this directed way (each rewrite makes the term smaller) follows Cranelift's mid-end rules and Halide's `simplify` with
bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.analysis.effort import remark_if_spent
from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.linear import negate, simplify
from cmir.dialects.expr import FALSE, TRUE, Expr, ExpressionTooLargeError, and_, le, make
from cmir.dialects.interval import SpanOp, TableOp, spec_of_table
from cmir.dialects.maskspec import SpecOp
from cmir.errors import SpecError


@dataclass(frozen=True)
class CanonicalizeIntervals(ModulePass):
    """Simplify endpoints under the facts of the spec and drop empty spans."""

    name = "canonicalize-intervals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_tables(op)
        for table in [o for o in op.walk() if isinstance(o, TableOp)]:
            spec = spec_of_table(table)
            assert spec is not None, "verified"
            if not spec.is_packed:  # proofs are made in the coordinates of one sequence
                canonicalize(table, facts_of(spec))


def require_tables(module: ModuleOp) -> None:
    """A pass over tables comes after the one that makes them: a module of nothing but specs is too early."""
    specs = [o for o in module.body.block.ops if isinstance(o, SpecOp) and o.regions_of_rows]
    if specs and len(specs) == len(list(module.body.block.ops)):
        raise SpecError(f"@{specs[0].sym_name.data} has no interval table yet; run --extract-intervals first", specs[0])


def canonicalize(table: TableOp, facts: Facts) -> None:
    """Simplify every span of the table in place, as far as the work of a pass goes."""
    for region in table.regions_of_table:
        entailment = Entailment(facts, table.fixed, region.lo.data, region.hi.data)
        for span in region.spans:
            new = _span(span, entailment)
            if new is not None:
                new.location = span.location
                region.body.block.insert_op_before(new, span)
            span.detach()
            span.erase()
    remark_if_spent(facts.effort, table, f"@{table.sym_name.data}")


def _span(span: SpanOp, entailment: Entailment) -> SpanOp | None:
    when = simplify_under(entailment, span.condition)
    lo, hi = (simplify_under(entailment, e.data, when) for e in (span.lo, span.hi))
    if when == FALSE or entailment.prove(implies(when, le(hi, lo))).proved:
        return None
    residual = TRUE if span.residual is None else span.residual.data
    return SpanOp(lo, hi, span.origins, when, residual, "" if span.reason is None else span.reason.data)


def simplify_under(entailment: Entailment, e: Expr, given: Expr = TRUE) -> Expr:
    """An expression equal to `e` wherever `given` and the facts hold, with fewer operands where that is proved."""

    def proved(claim: Expr) -> bool:
        return entailment.prove(implies(given, claim)).proved

    def rewrite(term: Expr) -> Expr:
        match term.op:
            case "min" | "max":
                return _extremum(term, proved)
            case "select":
                cond, a, b = term.args
                return a if proved(cond) else b if proved(negate(cond)) else term
            case "lt" | "le" | "eq":
                return TRUE if proved(term) else FALSE if proved(negate(term)) else term
            case "and":
                return and_(*term.args)
            case _:
                return term

    def down(term: Expr) -> Expr:
        if term.op == "first":  # its body speaks of another index
            lo, hi, body = term.args
            return make("first", down(lo), down(hi), body, data=term.data)
        return rewrite(Expr(term.op, tuple(map(down, term.args)), term.data)) if term.args else term

    try:
        return simplify(down(simplify(e)))
    except ExpressionTooLargeError:
        return e


def _extremum(term: Expr, proved: Callable[[Expr], bool]) -> Expr:
    kept = list(term.args)
    for a in term.args:
        for b in kept:
            # In a min, a goes if some other operand is never above it; in a max, if one is never below it.
            beaten = le(b, a) if term.op == "min" else le(a, b)
            if a in kept and a != b and len(kept) > 1 and proved(beaten):
                kept.remove(a)
                break
    return kept[0] if len(kept) == 1 else make(term.op, *kept)
