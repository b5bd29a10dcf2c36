"""Facts that no metadata can satisfy would prove anything: they are found before anything is proved from them.

    0 <= history,  history < 0                                 no metadata
    start[i] <= i,  i < start[i]                               no metadata of a mask that has a row
    start[i] <= i < start[i] for i in [history, rows)          none with history < rows; with  history < rows: none

An example settles most specs: metadata that satisfy the facts, of a mask with rows and columns. Where none is drawn,
the facts about an index are asked to contradict one another, which empties their range; what that says of scalars is
asked for together with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.analysis.entailment import Entailment, negation
from cmir.analysis.facts import Fact, Facts, facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.sampling import sample
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, le, or_
from cmir.dialects.maskspec import SpecOp
from cmir.errors import SpecError

DRAWS = 4  # examples that are looked at; the smallest masks have no rows
NOTHING = or_(le(ROWS, ZERO), le(COLS, ZERO))
"""What the facts must not imply: a mask without rows, or without columns."""


def check_facts(spec: SpecOp) -> None:
    """Some metadata of some mask with rows and columns satisfy the facts, or nothing proves that none do.

    Raises:
        SpecError: at the first of the facts that contradict one another, with the others as notes.
    """
    if not contradictory(facts_of(spec)):
        return
    first, *others = _core(spec)
    only = "no metadata of a mask with rows and columns satisfy"
    if not others:
        raise SpecError(f"{only} this fact of @{spec.sym_name.data}; from it anything could be proved", first)
    raise SpecError(
        f"the facts of @{spec.sym_name.data} contradict one another: {only} them all, and from them anything could be "
        "proved",
        first,
        [("and this fact", op) for op in others],
    )


def contradictory(facts: Facts) -> bool:
    """Whether the facts are proved to allow no mask that has rows and columns."""
    if any(int(d.env["rows"]) > 0 and int(d.env["cols"]) > 0 for d in sample(facts, DRAWS)):
        return False
    emptied = [Fact(empty, None, str(empty), "scalar") for empty in _emptied(facts)]
    return Entailment(replace(facts, facts=(*facts.facts, *emptied)), None).prove(NOTHING).proved


def _emptied(facts: Facts) -> Iterator[Expr]:
    """For every range of rows or columns in which the facts are proved to contradict one another: that it is empty."""
    ranges: dict[tuple[str, Expr, Expr], list[Expr]] = {}
    for fact in facts.facts:
        if fact.kind in ("row", "col") and fact.over is not None:
            ranges.setdefault(fact.over, []).append(negation(fact.condition))
    for (index, lo, hi), broken in ranges.items():
        if Entailment(facts, index, lo, hi).prove(or_(*broken)).proved:
            yield empty_range(lo, hi, ROWS if index == "i" else COLS)


def empty_range(lo: Expr, hi: Expr, length: Expr) -> Expr:
    """The condition that no index of an axis lies in `[lo, hi)`."""
    return simplify(or_(le(hi, lo), le(hi, ZERO), le(length, lo), le(length, ZERO)))


def _core(spec: SpecOp) -> list[Operation]:
    """Facts of a spec that contradict one another, none of which could be left out."""
    trial = spec.clone()
    core: list[Operation] = []
    for original, copy in list(zip(spec.facts, trial.facts, strict=True)):
        after = copy.next_op
        copy.detach()
        if contradictory(facts_of(trial)):
            continue
        core.append(original)
        Rewriter.insert_op(copy, InsertPoint.at_end(trial.body.block) if after is None else InsertPoint.before(after))
    return core
