"""A pass of your own: the sliding-window version of any mask.

visible'(i, j)  =  visible(i, j) and i - j < size

Before `--window=size=128`:

    maskspec.region @all rows [0, rows) {
      maskspec.clause j <= i
    }

After:

    maskspec.region @all rows [0, rows) {
      maskspec.clause j <= i and i < j + 128
    }
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cmir.dialects.expr import I, J, add, and_, const, lt
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import ClauseOp, RegionOp
from cmir.errors import SpecError


@dataclass(frozen=True)
class Window(ModulePass):
    """Let a row see, of the columns that it sees now, those less than `size` before it."""

    name = "window"

    size: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.size < 1:
            raise SpecError(f"the size of a window is at least 1, got {self.size}", op)
        for table in [o for o in op.walk() if isinstance(o, TableOp)]:
            raise SpecError("this table is of the mask without its window; run --window before it is made", table)
        near = lt(I, add(J, const(self.size)))
        for region in [o for o in op.walk() if isinstance(o, RegionOp)]:
            if not region.is_normal:
                name = region.sym_name.data
                raise SpecError(f"the rule of Region @{name} has no clauses yet; run --dnf-normalize first", region)
            for clause in region.clauses:
                narrow = ClauseOp(and_(clause.condition.data, near))
                narrow.location = clause.location
                Rewriter.replace_op(clause, narrow)
