"""Regions are disjoint: no row has two rules. There is a Region: a spec without one would be a mask that shows nothing.

    min(hi_a, hi_b) <= max(lo_a, lo_b)   for every pair a, b that is not empty and all metadata that the facts allow

First the facts are asked for: from facts that contradict one another everything could be proved
(`cmir.analysis.contradiction`). The IR does not change. Where a claim is refuted the error shows the Regions and the
numbers; where it cannot be proved the pass refuses too, because a mask whose meaning depends on the order of its
Regions is no mask. It is decided by entailment over the facts of the spec.
"""

from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.analysis.contradiction import check_facts
from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.rules import fold_statics
from cmir.dialects.expr import ROWS, ZERO, Expr, le, or_
from cmir.dialects.maskspec import RegionOp, SpecOp
from cmir.errors import SpecError


@dataclass(frozen=True)
class CheckRegions(ModulePass):
    """Refuse a spec whose Regions may overlap, with a counterexample in numbers."""

    name = "check-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp)]:
            if not spec.regions_of_rows and not spec.is_packed:
                raise SpecError(
                    f"@{spec.sym_name.data} has no Region, so no row would see anything; give its rows a rule: "
                    "maskspec.region @all rows [0, rows) (%i, %j) { .. }, "
                    'in Python spec.region("all", 0, spec.rows, visible=..)',
                    spec,
                )
            if not spec.is_packed:
                check_facts(spec)
            entailment = Entailment(facts_of(spec), None)
            for a, b in combinations(spec.regions_of_rows, 2):
                self._check(entailment, spec, a, b)

    @staticmethod
    def _check(entailment: Entailment, spec: SpecOp, a: RegionOp, b: RegionOp) -> None:
        (a_lo, a_hi), (b_lo, b_hi) = (_guard(spec, r) for r in (a, b))
        # A guard reaches over the rows that exist only, so an upper end of `rows` meets any lower end at or above it.
        apart = or_(
            le(a_hi, b_lo),
            le(b_hi, a_lo),
            le(a_hi, a_lo),
            le(b_hi, b_lo),
            le(a_hi, ZERO),
            le(b_hi, ZERO),
            le(ROWS, a_lo),
            le(ROWS, b_lo),
        )
        verdict = entailment.prove(apart)
        if verdict.proved:
            return
        names = f"Regions @{a.sym_name.data} and @{b.sym_name.data}"
        if verdict.status == "refuted":
            raise SpecError(
                f"{names} overlap, for example where {verdict.counterexample or 'any length is given'}",
                b,
                [("the other Region is here", a)],
            )
        raise SpecError(
            f"cannot prove that {names} are disjoint; state the fact that keeps them apart",
            b,
            [("the other Region is here", a)],
        )


def _guard(spec: SpecOp, region: RegionOp) -> tuple[Expr, Expr]:
    lo, hi = (simplify(fold_statics(e.data, spec, region)) for e in (region.lo, region.hi))
    return lo, hi
