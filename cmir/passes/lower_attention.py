"""The attention kernels as structure: which schedule each walks, and how it tests a partial tile.

    test of kernel K  =  the table of the axis whose tile K owns (its slots are loaded once),
                         or the other table where it has fewer slots

Before:

    descriptor.preprocess @hstu_preprocess of @hstu (...) { ... }         // rows: 2 slots, cols: 1 slot

After, beside it:

    attention.kernel @hstu_forward forward of @hstu_preprocess {
      attention.tiles partial schedule rows {
        attention.visible axis cols slots 1 unrolled
      }
      attention.tiles full schedule rows {
      }
    }

Either kernel can test visibility from either table; only the tile lists must exist both ways. Up to four slots are
tested one after the other in every partial tile; of more slots only those that touch the tile are (CLEAR has 32, of
which a tile sees a few).
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.dialects.attention import ROLES, SCHEDULE, KernelOp, TilesOp, VisibleOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.errors import SpecError
from cmir.lowering.visibility import Kernel, needs_live_test, table_axis


@dataclass(frozen=True)
class LowerAttention(ModulePass):
    """Build the attention kernels as structure: loops over tiles, visibility tests chosen."""

    name = "lower-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [o for o in op.walk() if isinstance(o, PreprocessOp)]
        if not found:
            raise SpecError("there is no descriptor.preprocess yet; run --lower-descriptor first", op)
        built = {o.preprocess.data: o for o in op.walk() if isinstance(o, KernelOp)}
        for preprocess in found:
            if (there := built.get(preprocess.sym_name.data)) is not None:
                message = f"@{preprocess.sym_name.data} has attention kernels already"
                raise SpecError(message, preprocess, [("one is here", there)])
            after: PreprocessOp | KernelOp = preprocess
            for role in ROLES:
                kernel = build_kernel(role, preprocess)
                kernel.location = preprocess.location
                Rewriter.insert_op(kernel, InsertPoint.after(after))
                after = kernel


def build_kernel(role: Kernel, preprocess: PreprocessOp) -> KernelOp:
    schedule = SCHEDULE[role]
    axis = table_axis(role, preprocess.slot_count("rows"), preprocess.slot_count("cols"))
    slots = preprocess.slot_count(axis)
    assert slots is not None, "an axis is bounded"
    visible = VisibleOp(axis, slots, "live" if needs_live_test(slots) else "unrolled")
    loops = [TilesOp("partial", schedule, [visible]), TilesOp("full", schedule, [])]
    return KernelOp(f"{preprocess.spec.data}_{role}", role, preprocess.sym_name.data, loops)
