"""`--explain-slots`: of every Region and every pair of intervals, why they are one slot, or why they are not.

    @hstu by rows: 2 slots
      Region @candidate [history, rows)
        slot 0: [0, history) from candidate.0
        slot 1: [start[i], i + 1) from candidate.1
        slot 0 and slot 1 stay apart: there is a gap between them at history=5, i=6, start[6]=6

Spans become one slot where it is proved that they touch or overlap whenever both hold something, or that they never
both do; the facts that the proof cannot do without are named. Spans stay apart where an example shows a gap, and where
nothing was decided. The text is made anew from the spec: it is what `--merge-slots` and `--transpose` decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.entailment import Entailment, implies, negation
from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.verdict import Verdict
from cmir.dialects.expr import Expr, and_, le, maximum, minimum
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.passes.canonicalize_intervals import canonicalize
from cmir.passes.merge_slots import merge
from cmir.passes.transpose import solve_columns
from cmir.tools.driver import run_pipeline

MOST_PAIRS = 15
"""Pairs of slots of a Region that are explained one by one; of more, neighbours only."""


@dataclass(frozen=True)
class Pair:
    """Why two slots of a region stay apart, or why two spans of one slot are merged."""

    axis: str
    region: str
    first: str
    second: str
    merged: bool
    verdict: Verdict
    """proved: they touch wherever both hold something; refuted: `counterexample` has numbers; unknown."""
    reason: str

    def spelled(self, words: Callable[[str], str]) -> Pair:
        """The same, where `words` spells texts in another language."""
        return replace(self, first=words(self.first), second=words(self.second), reason=words(self.reason))

    def __str__(self) -> str:
        verb = "are one slot" if self.merged else "stay apart"
        return f"{self.first} and {self.second} {verb}: {self.reason}"


def explain_slots(module: ModuleOp, context: Context | None = None) -> str:
    """The explanation of every spec of a module, both axes, as text. The module stays as it is.

    Raises:
        SpecError: a spec is wrong.
    """
    return "\n".join(line for spec, tables in _tables(module, context) for line in _lines(spec, tables)) + "\n"


def pairs(module: ModuleOp, context: Context | None = None) -> list[Pair]:
    """The same as objects, one for each pair."""
    return [
        pair
        for spec, tables in _tables(module, context)
        for before, after in tables
        for old, new in zip(before.regions_of_table, after.regions_of_table, strict=True)
        for pair in _pairs(facts_of(spec), before, old, new)
    ]


def _tables(module: ModuleOp, context: Context | None) -> Iterator[tuple[SpecOp, list[tuple[TableOp, TableOp]]]]:
    """Every spec in normal form, with its tables before and after slots are merged."""
    module = module.clone()
    steps = ["check-regions", "layout", "dnf-normalize", "extract-intervals", "canonicalize-intervals"]
    run_pipeline(module, steps, context)
    for spec in [op for op in module.ops if isinstance(op, SpecOp)]:
        facts = facts_of(spec)
        rows = next(op for op in module.ops if isinstance(op, TableOp) and op.spec == spec.sym_name)
        cols = solve_columns(spec)
        module.body.block.add_op(cols)
        canonicalize(cols, facts)
        yield spec, [(table, merge(table, facts)) for table in (rows, cols)]


def _lines(spec: SpecOp, tables: list[tuple[TableOp, TableOp]]) -> Iterator[str]:
    for before, after in tables:
        head = f"@{spec.sym_name.data} by {after.axis.data}: "
        if (span := after.residual_span) is not None and span.residual is not None and span.reason is not None:
            yield f"{head}unbounded, since {span.reason.data}: {span.residual.data}"
            continue
        count = 0 if after.slots is None else after.slots.data
        yield f"{head}{count} slot{'' if count == 1 else 's'}"
        for old, new in zip(before.regions_of_table, after.regions_of_table, strict=True):
            yield f"  Region @{new.sym_name.data} [{new.lo.data}, {new.hi.data})"
            for k, span in enumerate(new.spans):
                yield f"    slot {k}: {_text(span)} from {', '.join(span.origins)}"
            for pair in _pairs(facts_of(spec), before, old, new):
                yield f"    {pair}"
            if (left := len(list(combinations(new.spans, 2)))) > MOST_PAIRS:
                yield f"    {left - len(new.spans) + 1} more pairs of slots that are not neighbours stay apart"


def _text(span: SpanOp) -> str:
    when = "" if span.when is None else f" when {span.when.data}"
    return f"[{span.lo.data}, {span.hi.data}){when}"


def _pairs(facts: Facts, table: TableOp, old: RegionOp, new: RegionOp) -> Iterator[Pair]:
    if table.residual_span is not None:
        return
    axis, region = table.axis.data, new.sym_name.data
    range_ = table.fixed, new.lo.data, new.hi.data
    for slot in new.spans:  # spans that became one
        inside = [s for s in old.spans if set(s.origins) <= set(slot.origins)] if len(slot.origins) > 1 else []
        for a, b in combinations(inside, 2):
            names = f"{_text(a)}", f"{_text(b)}"
            yield _merged(facts, range_, (a, b), Pair(axis, region, *names, True, Verdict("unknown"), ""))
    numbered = list(enumerate(new.spans))
    many = len(list(combinations(numbered, 2))) > MOST_PAIRS
    for (m, a), (n, b) in combinations(numbered, 2):
        if many and n != m + 1:
            continue
        verdict = Entailment(facts, *range_).prove(_touch(a, b))
        if verdict.status == "refuted":
            reason = f"there is a gap between them at {verdict.counterexample or 'any lengths'}"
        elif verdict.proved:
            reason = "they touch wherever both hold something, and no two ends say their union"
        else:
            reason = "unknown: that they always touch is not decided, and no example shows a gap"
        yield Pair(axis, region, f"slot {m}", f"slot {n}", False, verdict, reason)


def _touch(a: SpanOp, b: SpanOp) -> Expr:
    """Where both hold something they touch or overlap."""
    both = and_(_nonempty(a), _nonempty(b))
    return simplify(implies(both, le(maximum(a.lo.data, b.lo.data), minimum(a.hi.data, b.hi.data))))


def _nonempty(span: SpanOp) -> Expr:
    return and_(span.condition, negation(le(span.hi.data, span.lo.data)))


def _merged(facts: Facts, range_: tuple[str, Expr, Expr], spans: tuple[SpanOp, SpanOp], pair: Pair) -> Pair:
    a, b = spans
    for claim, words in (
        (negation(and_(_nonempty(a), _nonempty(b))), "never do both hold something"),
        (_touch(a, b), "they touch or overlap wherever both hold something"),
    ):
        verdict = Entailment(facts, *range_).prove(claim)
        if verdict.proved:
            needed = _needed(facts, range_, claim)
            because = f", given {' and '.join(needed)}" if needed else ""
            return replace(pair, verdict=verdict, reason=f"proved: {words}{because}")
    return replace(pair, reason="proved: with others between them they are one interval")


def _needed(facts: Facts, range_: tuple[str, Expr, Expr], claim: Expr) -> list[str]:
    """The facts that a proof cannot do without, one after another left out where it can."""
    kept = facts
    for fact in facts.facts:
        fewer = replace(
            kept,
            facts=tuple(f for f in kept.facts if f != fact),
            monotone=tuple(m for m in kept.monotone if not fact.text.startswith(f"{m.table} ")),
        )
        if Entailment(fewer, *range_).prove(claim).proved:
            kept = fewer
    return [fact.text for fact in kept.facts]
