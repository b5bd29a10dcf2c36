"""Warnings about what a spec says and can hardly mean; the IR does not change.

    maskspec.region @all rows [0, rows) (%i, %j) {
      ...
      %v = arith.ori %causal, %causal_window : i1      // warning: this part of the rule ... changes nothing: the rest
      maskspec.visible %v                              //          of the rule implies it
    }

A warning is proved for all metadata that the facts allow and all values of the statics (`cmir.analysis.lint`); what
cannot be proved is not said. Proofs take their time, so that no other pass runs this one: it is asked for.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.analysis.contradiction import check_facts
from cmir.analysis.lint import warnings_of
from cmir.dialects.maskspec import SpecOp
from cmir.errors import emit_remark


@dataclass(frozen=True)
class Lint(ModulePass):
    """Warn of parts of rules, Regions, metadata and facts that change nothing, unseen columns."""

    name = "lint"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for spec in [o for o in op.walk() if isinstance(o, SpecOp) and not o.is_packed]:
            check_facts(spec)
            for warning in warnings_of(spec):
                emit_remark(warning)
