"""The pipeline that a user types: from a rule to the fewest intervals per row.

    --lower-intervals  =  --check-regions --layout --dnf-normalize
                          --extract-intervals --canonicalize-intervals --merge-slots

Before: a `maskspec.spec` whose rules are SSA. After: the spec in normal form, and beside it

    interval.table @hstu_rows of @hstu axis rows slots 2 {
      interval.region @history [0, history) {
        interval.span [0, i + 1) from "history.0"
      }
      interval.region @candidate [history, rows) {
        interval.span [0, history) from "candidate.0"
        interval.span [start[i], i + 1) from "candidate.1"
      }
    }
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.passes.canonicalize_intervals import CanonicalizeIntervals
from cmir.passes.check_regions import CheckRegions
from cmir.passes.dnf_normalize import DnfNormalize
from cmir.passes.extract_intervals import ExtractIntervals
from cmir.passes.layout import Layout
from cmir.passes.merge_slots import MergeSlots


@dataclass(frozen=True)
class LowerIntervals(ModulePass):
    """Run the six passes from a rule to the fewest intervals per row."""

    name = "lower-intervals"

    max_clauses: int = 256

    def expand(self) -> tuple[ModulePass, ...]:
        """The passes it stands for; the driver runs, prints and verifies them one by one."""
        return (
            CheckRegions(),
            Layout(),
            DnfNormalize(self.max_clauses),
            ExtractIntervals(),
            CanonicalizeIntervals(),
            MergeSlots(),
        )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.expand():
            step.apply(ctx, op)
