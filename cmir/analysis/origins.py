"""Where a clause of the normal form was written: an operand of the rule's outermost `or`, or a clause.

    %causal = arith.cmpi sle, %j, %i : index                 ->  maskspec.clause j <= i           at %causal
    %visible = arith.ori %causal, %own : i1                  ->  maskspec.clause start[i] <= j .. at %own

Every later op keeps the location of its clause, so that errors and remarks of late passes point there.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from cmir.analysis.dnf import Clause, TooManyClauses, clauses_of
from cmir.analysis.rules import disjuncts_of, fold_statics
from cmir.dialects.maskspec import RegionOp, spec_of


def origins_of(region: RegionOp, clauses: Sequence[Clause], cap: int) -> list[Operation]:
    """For each clause of a Region's rule the op that says it; the Region where that is no single one."""
    made: dict[frozenset[object], Operation] = {}
    spec = spec_of(region)
    for op, condition in disjuncts_of(region):
        try:
            for clause in clauses_of(fold_statics(condition, spec, op), cap):
                made.setdefault(frozenset(clause), op)
        except TooManyClauses:
            continue
    return [made.get(frozenset(clause), region) for clause in clauses]
