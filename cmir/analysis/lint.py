"""What a spec says that it can hardly mean: parts of a rule that change nothing, Regions that are always empty, names
that nothing reads, facts that say nothing.

    j < history or (j < history and j <= i)                     the second part is implied by the rest
    i < j and j < i                                             never holds: no row of the Region sees anything
    region @tail rows [rows, rows + history)                    always empty

A warning needs a proof, for all metadata that the facts allow and whatever the statics are: samples refute most of what
is asked, and what is left open is not said. A part of a rule is an operand of an `or` (or a clause); it changes nothing
if the rule with `false` in its place is the same rule. Columns that some metadata hide are no mistake, as every padded
mask has them; those that all hide are (`cmir.analysis.unseen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.contradiction import empty_range
from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import Fact, Facts, conjuncts, facts_of, in_range
from cmir.analysis.linear import simplify
from cmir.analysis.rules import fold_statics, rule_of
from cmir.analysis.sampling import PAIRS, Draw, sample
from cmir.analysis.unseen import COLUMN, unseen
from cmir.dialects.expr import COLS, FALSE, ROWS, TRUE, ZERO, Expr, ExprAttr, J, free_names, substitute
from cmir.dialects.maskspec import AssumeOp, MonotoneOp, Parameter, RegionOp, SpecOp, TableType
from cmir.errors import Remark, SpecError, locate
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import grid, with_lengths

DRAWS = 12
"""Examples that every claim is tried on before it is asked."""


def warnings_of(spec: SpecOp) -> list[Remark]:
    """The warnings about a spec, surface or normal form, in the order of its text."""
    found = [*_unread(spec), *_idle_facts(spec)]
    if _sizes(spec):  # what a rule says of a slot list cannot be said without the number of its slots
        return found
    try:
        open_spec = _without_values(spec)
        facts = facts_of(open_spec)
    except SpecError:  # what it computes from its statics cannot be said without their values
        return found
    for region, copy in zip(spec.regions_of_rows, open_spec.regions_of_rows, strict=True):
        try:
            found += _of_region(spec, region, open_spec, copy, facts)
        except SpecError:  # here too
            continue
    with suppress(SpecError):
        found += unseen(spec, open_spec, facts)
    return sorted(found, key=lambda remark: (remark.location is None, remark.location))


def _warning(message: str, op: Operation) -> Remark:
    return Remark(message, locate(op), severity="warning")


def _without_values(spec: SpecOp) -> SpecOp:
    """The spec with scalars for its statics: what is proved of it holds for any values."""
    copy = spec.clone()
    for layout in copy.layouts:  # what a rule says of tokens does not depend on where they are stored
        layout.detach()
    parameters = [Parameter(p.name, "scalar") if p.kind == "static" else p for p in spec.parameters]
    out = SpecOp(spec.sym_name.data, parameters, copy.detach_region(copy.body))
    out.location = spec.location
    return out


def _unread(spec: SpecOp) -> Iterator[Remark]:
    """Metadata that no rule and no guard reads, nor a fact that relates them to what is read."""
    names = {p.name for p in spec.parameters}
    facts = list(spec.facts)
    read = _sizes(spec)
    for op in spec.walk():
        if op not in facts:
            read |= names & set(_names_in(op))
            read |= {p.name for p, a in zip(spec.parameters, spec.body.block.args, strict=True) if a in op.operands}
    related = [names & set(_names_in(op)) for op in facts]
    known: set[str] = set()
    while known != read:
        known, read = read, read.union(*(some for some in related if some & read))
    for p in spec.parameters:
        if p.name not in read:
            yield _warning(f"nothing that @{spec.sym_name.data} shows depends on '{p.name}'; leave it out", spec)


def _sizes(spec: SpecOp) -> set[str]:
    """The statics that say how many integers the entries of tables hold."""
    types = [a.type for a in spec.body.block.args]
    return {t.static for t in types if isinstance(t, TableType) and t.static is not None}


def _names_in(op: Operation) -> Iterator[str]:
    """The names that the expressions of an op read; of a fact about a table, the table."""
    if isinstance(op, MonotoneOp):
        yield op.table.data
    held: list[object] = list(op.properties.values())
    while held:
        match held.pop():
            case ExprAttr() as e:
                yield from free_names(e.data)
            case ArrayAttr() as several:
                held.extend(cast("Iterable[object]", several))
            case DictionaryAttr() as several:
                held.extend(several.data.values())
            case _:
                pass


def _idle_facts(spec: SpecOp) -> Iterator[Remark]:
    """Facts that hold whatever the metadata are, by their form alone."""
    for op in spec.facts:
        if isinstance(op, AssumeOp) and simplify(op.condition.data) == TRUE:
            yield _warning("this fact says nothing: it always holds", op)


def _of_region(spec: SpecOp, region: RegionOp, open_spec: SpecOp, copy: RegionOp, facts: Facts) -> Iterator[Remark]:
    name = region.sym_name.data
    lo, hi = (simplify(fold_statics(e.data, open_spec, copy)) for e in (copy.lo, copy.hi))
    draws = sample(facts, DRAWS)
    if not any(_rows(lo, hi, draw) for draw in draws):
        if Entailment(facts, None).prove(empty_range(lo, hi, ROWS)).proved:
            yield _warning(f"Region @{name} is always empty: the facts leave no row in [{lo}, {hi})", region)
        return  # no example of it to try a claim on
    rule = rule_of(copy)
    if rule == FALSE:
        return  # said in so many words
    asked = _Asked(facts, lo, hi, draws)
    if asked.same(rule, FALSE):
        yield _warning(f"no row of Region @{name} sees anything: its rule never holds", region)
        return
    for k, part in reversed([*enumerate(_parts(region))]):
        without = _without(copy, k)
        shorter = rule_of(without)
        if not asked.same(rule, shorter):
            continue
        alone = _alone(copy, k)
        never = alone is not None and asked.same(rule_of(alone), FALSE)
        why = "it never holds" if never else "the rest of the rule implies it"
        yield _warning(f"this part of the rule of Region @{name} changes nothing: {why}", part)
        copy, rule = without, shorter  # of two that imply each other one has to stay


def _rows(lo: Expr, hi: Expr, draw: Draw) -> int:
    """How many rows of an example a Region has, where there are columns to see."""
    first, last = (int(evaluate(e, with_lengths(draw.env), NumpyDomain())) for e in (lo, hi))
    rows, cols = int(draw.env["rows"]), int(draw.env["cols"])
    return max(min(last, rows) - max(first, 0), 0) if cols else 0


class _Asked:
    """Questions about the rules of one Region, for every row of it and every column."""

    def __init__(self, facts: Facts, lo: Expr, hi: Expr, draws: Sequence[Draw]) -> None:
        column = [Fact(c, None, str(c), "scalar") for c in conjuncts(in_range(COLUMN, ZERO, COLS))]
        parameters = (*facts.parameters, Parameter(COLUMN.name, "scalar"))
        self.entailment = Entailment(replace(facts, parameters=parameters, facts=(*facts.facts, *column)), "i", lo, hi)
        self.points = [_points(lo, hi, draw) for draw in draws if draw.pairs <= PAIRS]

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether two conditions are proved to hold at the same pairs."""
        import numpy as np

        domain = NumpyDomain()
        if any(np.any(evaluate(a, points, domain) != evaluate(b, points, domain)) for points in self.points):
            return False
        a, b = (simplify(substitute(e, {J: COLUMN})) for e in (a, b))
        return a == b or all(self.entailment.prove(implies(x, y)).proved for x, y in ((a, b), (b, a)))


def _points(lo: Expr, hi: Expr, draw: Draw) -> dict[str, Value]:
    """An example with the rows of a Region as `i` and its columns as `j`."""
    points = grid(draw.env)
    first, last = (int(evaluate(e, points, NumpyDomain())) for e in (lo, hi))
    return {**points, "i": points["i"][max(first, 0) : max(last, 0)]}


# Parts of a rule: the operands of every `or`, or the clauses.


def _ors(region: RegionOp) -> list[arith.OrIOp]:
    return [op for op in region.walk() if isinstance(op, arith.OrIOp)]


def _parts(region: RegionOp) -> list[Operation]:
    """What makes each part of the rule, in the order of the text."""
    if region.is_normal:
        return list(region.clauses)
    return [value.owner for op in _ors(region) for value in op.operands if isinstance(value.owner, Operation)]


def _without(region: RegionOp, k: int) -> RegionOp:
    """The Region with `false` in the place of part `k`, in a spec of its own."""
    copy = _copy(region)
    if copy.is_normal:
        copy.clauses[k].detach()
        return copy
    op = _ors(copy)[k // 2]
    never = arith.ConstantOp(BoolAttr.from_bool(False))
    Rewriter.insert_op(never, InsertPoint.before(op))
    op.operands[k % 2] = never.result
    return copy


def _alone(region: RegionOp, k: int) -> RegionOp | None:
    """The Region with part `k` as its rule; None where the part is one of many, of an `exists`."""
    copy = _copy(region)
    if copy.is_normal:
        for clause in copy.clauses[:k] + copy.clauses[k + 1 :]:
            clause.detach()
        return copy
    op, end = _ors(copy)[k // 2], copy.body.block.last_op
    if end is None or op.parent_block() is not copy.body.block:
        return None
    end.operands[0] = op.operands[k % 2]
    return copy


def _copy(region: RegionOp) -> RegionOp:
    """A copy of a Region in a copy of its spec."""
    spec = region.parent_op()
    assert isinstance(spec, SpecOp)
    return spec.clone().regions_of_rows[spec.regions_of_rows.index(region)]
