"""Refuse a mask in which some row sees a column after itself.

hi(i) <= i + 1   for every span that holds something, on every row of its Region, whenever the facts hold

The IR does not change:

    interval.span [start[i], i + 1) from "candidate.1"      is causal
    interval.span [0, prefix) from "all.0"                  is not: row 0 sees column 1 where prefix=2
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import facts_of
from cmir.dialects.expr import ONE, I, add, le, show
from cmir.dialects.interval import TableOp, spec_of_table
from cmir.errors import SpecError


@dataclass(frozen=True)
class RequireCausal(ModulePass):
    """Refuse a mask in which some row sees a column after itself, with a counterexample in numbers."""

    name = "require-causal"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tables = [o for o in op.walk() if isinstance(o, TableOp) and o.axis.data == "rows"]
        if not tables:
            raise SpecError("there is no table of rows yet; run --lower-intervals first", op)
        for table in tables:
            spec = spec_of_table(table)
            assert spec is not None, "verified"
            for region in table.regions_of_table:
                entailment = Entailment(facts_of(spec), "i", region.lo.data, region.hi.data)
                for span in region.spans:
                    verdict = entailment.prove(implies(span.nonempty, le(span.hi.data, add(I, ONE))))
                    if not verdict.proved:
                        example = verdict.counterexample
                        raise SpecError(
                            f"rows of Region @{region.sym_name.data} see columns after themselves, up to "
                            f"{show(span.hi.data)}"
                            + (f": for example where {example}" if example else " for all we know"),
                            span,
                        )
