"""The attention kernels as structure: which schedule each walks, and how it tests a partial tile.

    kernel K  =  its partial tiles, tested as --choose-axis says, then its full tiles, untested

Before:

    attention.tests of @hstu forward cols, dq cols, dkv cols
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
which a tile sees a few). Bits are read, whatever the mask. A preprocess kernel that stands alone, without
`attention.tests`, is tested as it allows: by bits if it has them, else by the cheaper table.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.dialects.attention import ROLES, SCHEDULE, KernelOp, Role, Test, TilesOp, VisibleOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.errors import SpecError
from cmir.lowering.visibility import needs_live_test, table_axis
from cmir.passes.choose_axis import tests_of


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
            tests = required_tests(op, preprocess)
            after: PreprocessOp | KernelOp = preprocess
            for role in ROLES:
                kernel = build_kernel(role, preprocess, tests[role])
                kernel.location = preprocess.location
                Rewriter.insert_op(kernel, InsertPoint.after(after))
                after = kernel


def required_tests(module: ModuleOp, preprocess: PreprocessOp) -> dict[Role, Test]:
    """What each kernel of a mask tests: what has been chosen, if the preprocess kernel makes it."""
    chosen = tests_of(module, preprocess.spec.data)
    rows, cols = preprocess.slot_count("rows"), preprocess.slot_count("cols")
    if chosen is None:
        return {role: "bits" if preprocess.pair is not None else table_axis(role, rows, cols) for role in ROLES}
    made = {"rows": rows is not None, "cols": cols is not None, "bits": preprocess.pair is not None}
    for role, test in chosen.tests.items():
        if not made[test]:
            raise SpecError(
                f"the {role} kernel tests {test}, which @{preprocess.sym_name.data} does not make",
                chosen,
                [("it is here", preprocess)],
            )
    return chosen.tests


def build_kernel(role: Role, preprocess: PreprocessOp, test: Test) -> KernelOp:
    schedule = SCHEDULE[role]
    if test == "bits":
        visible = VisibleOp("bits")
    else:
        slots = preprocess.slot_count(test)
        assert slots is not None, "required"
        visible = VisibleOp("live" if needs_live_test(slots) else "unrolled", test, slots)
    loops = [TilesOp("partial", schedule, [visible]), TilesOp("full", schedule, [])]
    return KernelOp(f"{preprocess.spec.data}_{role}", role, preprocess.sym_name.data, loops)
