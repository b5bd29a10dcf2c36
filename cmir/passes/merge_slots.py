"""Few slots: spans that are one interval wherever they meet become one span; spans that never meet share a slot.

    A u B = C   for every row of the region and all metadata that the facts allow,  C an interval of the ends of A and B

Before:

    interval.region @all [0, cols) {
      interval.span [j, history) from "history.0"
      interval.span [history, rows) when j < history from "candidate.0"
      interval.span [max(history, j), first i in [history, rows) : j < start[i]) from "candidate.1"
    }

After:

    interval.table @hstu_cols of @hstu axis cols slots 1 {
      interval.region @all [0, cols) {
        interval.span [j, select(j < history, rows, first i in [history, rows) : j < start[i])) from "history.0", ...
      }
    }

Candidates for C are tried from the simplest; a counterexample among sampled metadata throws most of them out, the rest
is proved or not used ("cannot prove" keeps the spans apart, which is always right). The pass then numbers the slots,
sets `slots` to the largest count of a region, and lists in `fuse` the pairs that may overlap at some row, for want of a
proof or in fact. The slot count is derived here and nowhere configured.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cmir.analysis.crowding import alternatives
from cmir.analysis.effort import remark_if_spent
from cmir.analysis.entailment import Entailment, implies, negation
from cmir.analysis.facts import Facts, facts_of
from cmir.dialects.expr import (
    FALSE,
    TRUE,
    Expr,
    ExpressionTooLargeError,
    and_,
    eq,
    le,
    maximum,
    minimum,
    or_,
    select,
    size,
)
from cmir.dialects.interval import RegionOp, SpanOp, TableOp, closure_of_fuse, spec_of_table
from cmir.passes.canonicalize_intervals import require_tables, simplify_under

if TYPE_CHECKING:
    import numpy as np

Terms = frozenset[tuple[Expr, int]]

PROOFS = 6
LARGEST = 250  # terms of an end: each merge may double it
FAILURES = 200  # failed proofs of a region; masks that merge at all fail a few dozen times


@dataclass(frozen=True)
class MergeSlots(ModulePass):
    """Merge spans that provably touch, overlap or exclude each other; number the slots."""

    name = "merge-slots"

    proofs: int = PROOFS
    """Candidates for the union of one pair that a proof is tried for; with 0 no spans are merged."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_tables(op)
        for table in [o for o in op.walk() if isinstance(o, TableOp)]:
            spec = spec_of_table(table)
            assert spec is not None, "verified"
            if not spec.is_packed:  # proofs are made in the coordinates of one sequence
                Rewriter.replace_op(table, merge(table, facts_of(spec), self.proofs), [])


def merge(table: TableOp, facts: Facts, proofs: int = PROOFS) -> TableOp:
    """The table with as few spans per region as can be proved; an unbounded table (one with a residual) as it is."""
    if table.residual_span is not None:
        return table.clone()
    regions = [_merge_region(table, region, facts, proofs) for region in table.regions_of_table]
    remark_if_spent(facts.effort, table, f"@{table.sym_name.data}")
    slots = max((len(r.spans) for r in regions), default=0)
    out = TableOp(table.sym_name.data, table.spec.data, table.axis.data, regions, slots)
    out.location = table.location
    return out


def _merge_region(table: TableOp, region: RegionOp, facts: Facts, proofs: int) -> RegionOp:
    entailment = Entailment(facts, table.fixed, region.lo.data, region.hi.data)
    spans = [_Span(entailment, s.lo.data, s.hi.data, s.condition, s.origins) for s in region.spans]
    spans = _merge_all(spans, proofs)
    fuse = sorted(
        closure_of_fuse((a, b) for a, b in combinations(range(len(spans)), 2) if not spans[a].disjoint(spans[b]))
    )
    out = RegionOp(region.sym_name.data, region.lo.data, region.hi.data, [s.op() for s in spans], fuse)
    out.location = region.location
    places = {origin: span.location for span in region.spans for origin in span.origins}
    for op in out.spans:
        op.location = places[op.origins[0]]  # of several, the first clause's
    return out


def _merge_all(spans: "list[_Span]", proofs: int) -> "list[_Span]":
    """Merge pairs until no pair merges. A pair that failed is not tried again until one of the two changes."""
    failed: set[tuple[_Span, _Span]] = set()  # of the spans themselves: an id may be given again
    budget = _Budget(FAILURES)
    again = True
    while again:
        again = False
        for a, b in combinations(range(len(spans)), 2):
            if (spans[a], spans[b]) in failed:
                continue
            united = spans[a].unite(spans[b], proofs, budget)
            if united is None:
                failed.add((spans[a], spans[b]))
                continue
            spans = [united if k == a else s for k, s in enumerate(spans) if k != b]
            again = True
            break
    return spans


@dataclass
class _Budget:
    """Failed proofs that are left to a region."""

    failures: int


@dataclass(eq=False)
class _Span:
    """A span in its region, with its values at the sampled points."""

    entailment: Entailment
    lo: Expr
    hi: Expr
    when: Expr
    origins: tuple[str, ...]

    def op(self) -> SpanOp:
        return SpanOp(self.lo, self.hi, self.origins, self.when)

    @property
    def nonempty(self) -> Expr:
        return and_(self.when, negation(le(self.hi, self.lo)))

    @cached_property
    def at(self) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
        """(lo, hi, non-empty) at every sampled point, one after another."""
        lo, hi, when = (self.entailment.evaluate_samples(e) for e in (self.lo, self.hi, self.when))
        return lo, hi, when.astype(bool) & (lo < hi)

    def disjoint(self, other: "_Span") -> bool:
        effort = self.entailment.facts.effort
        effort.charge(1)
        if effort.spent:
            return False
        (a_lo, a_hi, a), (b_lo, b_hi, b) = self.at, other.at
        if bool((a & b & (a_lo < b_hi) & (b_lo < a_hi)).any()):
            return False
        if self._ends_before(other) or other._ends_before(self):
            return True
        apart = or_(le(self.hi, other.lo), le(other.hi, self.lo))
        return self.entailment.prove(or_(apart, negation(and_(self.nonempty, other.nonempty)))).proved

    @cached_property
    def _edges(self) -> "tuple[dict[Terms, int], dict[Terms, int]]":
        """Linear forms that `lo` is never below and that `hi` is never above: per linear part, the best constant."""
        lowest, highest = dict[Terms, int](), dict[Terms, int]()
        for form in alternatives(self.lo, "max"):
            lowest[form.key] = max(form.constant, lowest.get(form.key, form.constant))
        for form in alternatives(self.hi, "min"):
            highest[form.key] = min(form.constant, highest.get(form.key, form.constant))
        return lowest, highest

    def _ends_before(self, other: "_Span") -> bool:
        """`hi <= other.lo` by linear forms alone: the cheap answer for the many spans of a grid."""
        lowest, highest = other._edges[0], self._edges[1]
        return any(key in lowest and top <= lowest[key] for key, top in highest.items())

    def unite(self, other: "_Span", proofs: int, budget: _Budget) -> "_Span | None":
        """One span equal to the union, if a candidate is proved to be."""
        try:
            return None if self.entailment.facts.effort.spent else self._unite(other, proofs, budget)
        except ExpressionTooLargeError:
            return None

    def _unite(self, other: "_Span", proofs: int, budget: _Budget) -> "_Span | None":
        import numpy as np

        self.entailment.facts.effort.charge(1)

        (a_lo, a_hi, a), (b_lo, b_hi, b) = self.at, other.at
        if not bool((~(a & b) | (np.maximum(a_lo, b_lo) <= np.minimum(a_hi, b_hi))).all()):
            return None
        want = a | b
        want_lo = np.where(a & b, np.minimum(a_lo, b_lo), np.where(a, a_lo, b_lo))
        want_hi = np.where(a & b, np.maximum(a_hi, b_hi), np.where(a, a_hi, b_hi))
        for lo, hi, when in islice(_candidates(self, other, want, want_lo, want_hi), min(proofs, budget.failures)):
            if self.entailment.prove(_equals_union(self, other, lo, hi, when)).proved:
                lo, hi = (simplify_under(self.entailment, e, when) for e in (lo, hi))
                return _Span(self.entailment, lo, hi, when, self.origins + other.origins)
            budget.failures -= 1
        return None


def _candidates(
    a: _Span, b: _Span, want: "np.ndarray", want_lo: "np.ndarray", want_hi: "np.ndarray"
) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Ends and conditions of the union that no sampled point refutes, simplest first.

    Where `want`, at the sampled points, the union is `[want_lo, want_hi)`; elsewhere it is empty.
    """
    import numpy as np

    (a_lo, a_hi, a_live), (b_lo, b_hi, b_live) = a.at, b.at
    conditions = {c: a.entailment.evaluate_samples(c).astype(bool) for c in (a.when, b.when) if c != TRUE}
    choices = {**conditions, a.nonempty: a_live, b.nonempty: b_live}

    def ends(
        x: Expr,
        y: Expr,
        outer: Callable[..., Expr],
        at: "tuple[np.ndarray, np.ndarray, np.ndarray]",
        goal: "np.ndarray",
    ) -> "dict[Expr, np.ndarray]":
        """Ends that are right where the union holds something."""
        at_x, at_y, at_outer = at
        found = {x: at_x, y: at_y, outer(x, y): at_outer}
        found |= {select(c, x, y): np.where(at_c, at_x, at_y) for c, at_c in choices.items()}
        found |= {select(c, y, x): np.where(at_c, at_y, at_x) for c, at_c in choices.items()}
        general = select(a.nonempty, select(b.nonempty, outer(x, y), x), y)
        found[general] = np.where(a_live, np.where(b_live, at_outer, at_x), at_y)
        return {e: v for e, v in found.items() if size(e) <= LARGEST and bool((v == goal)[want].all())}

    whens = {TRUE: np.ones_like(want), **conditions}
    whens[or_(*conditions)] = np.any(list(conditions.values()), axis=0) if conditions else ~whens[TRUE]
    whens[or_(a.nonempty, b.nonempty)] = want
    los = ends(a.lo, b.lo, minimum, (a_lo, b_lo, np.minimum(a_lo, b_lo)), want_lo)
    his = ends(a.hi, b.hi, maximum, (a_hi, b_hi, np.maximum(a_hi, b_hi)), want_hi)
    everything = [
        (size(lo) + size(hi) + size(when), n, lo, hi, when)
        for n, (when, lo, hi) in enumerate(
            (when, lo, hi) for when in whens if when != FALSE and size(when) <= LARGEST for lo in los for hi in his
        )
    ]
    for _, _, lo, hi, when in sorted(everything, key=lambda c: c[:2]):
        if bool(((whens[when] & (los[lo] < his[hi])) == want).all()):
            yield lo, hi, when


def _equals_union(a: _Span, b: _Span, lo: Expr, hi: Expr, when: Expr) -> Expr:
    """`[lo, hi) when` holds exactly the positions of a and of b, as a condition without a bound position.

    Two intervals that both hold something unite to an interval iff they overlap or touch; otherwise the union is the
    one that does.
    """
    nonempty = and_(when, negation(le(hi, lo)))
    touch = le(maximum(a.lo, b.lo), minimum(a.hi, b.hi))

    def same(x: Expr, y: Expr) -> Expr:
        return and_(nonempty, eq(lo, x), eq(hi, y))

    return and_(
        implies(and_(a.nonempty, b.nonempty), and_(touch, same(minimum(a.lo, b.lo), maximum(a.hi, b.hi)))),
        implies(and_(a.nonempty, negation(b.nonempty)), same(a.lo, a.hi)),
        implies(and_(negation(a.nonempty), b.nonempty), same(b.lo, b.hi)),
        implies(nonempty, or_(a.nonempty, b.nonempty)),
    )
