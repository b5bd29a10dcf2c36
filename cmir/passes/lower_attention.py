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

With `target=hopper` there are two kernels, forward and backward, and both make words of what they test (see
cmir.lowering.words): of bits where the mask has them, else of the table of the axis that they own, where it is bounded.

    attention.kernel @hstu_forward forward of @hstu_preprocess {
      attention.tiles partial schedule rows {
        attention.visible axis rows slots 2 words
      }
      ...
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cmir.dialects.attention import (
    ROLES,
    SCHEDULE,
    WORD_ROLES,
    KernelOp,
    Role,
    Test,
    TilesOp,
    VisibleOp,
    WordRole,
)
from cmir.dialects.descriptor import PreprocessOp
from cmir.errors import SpecError
from cmir.lowering.visibility import needs_live_test, table_axis
from cmir.lowering.words import word_axis
from cmir.passes.choose_axis import tests_of

TARGETS = ("any", "hopper")


@dataclass(frozen=True)
class LowerAttention(ModulePass):
    """Build the attention kernels as structure: loops over tiles, visibility tests chosen."""

    name = "lower-attention"

    target: str = "any"
    """any: kernels for any GPU; hopper: those of Hopper, which test words."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise SpecError(f"--lower-attention: target is {' or '.join(TARGETS)}, got '{self.target}'", op)
        found = [o for o in op.walk() if isinstance(o, PreprocessOp)]
        if not found:
            raise SpecError("there is no descriptor.preprocess yet; run --lower-descriptor first", op)
        built = {o.preprocess.data: o for o in op.walk() if isinstance(o, KernelOp)}
        for preprocess in found:
            if (there := built.get(preprocess.sym_name.data)) is not None:
                message = f"@{preprocess.sym_name.data} has attention kernels already"
                raise SpecError(message, preprocess, [("one is here", there)])
            after: PreprocessOp | KernelOp = preprocess
            for kernel in build_kernels(op, preprocess, self.target):
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


def build_kernels(module: ModuleOp, preprocess: PreprocessOp, target: str) -> list[KernelOp]:
    """The kernels of a mask for a target, in the order of their roles."""
    tests = required_tests(module, preprocess)
    if target == "hopper":
        return [_word_kernel(role, preprocess, "bits" in tests.values()) for role in WORD_ROLES]
    return [_kernel(role, preprocess, tests[role]) for role in ROLES]


def _kernel(role: Role, preprocess: PreprocessOp, test: Test) -> KernelOp:
    if test == "bits":
        return _walk(role, preprocess, VisibleOp("bits"))
    slots = preprocess.slot_count(test)
    assert slots is not None, "required"
    return _walk(role, preprocess, VisibleOp("live" if needs_live_test(slots) else "unrolled", test, slots))


def _word_kernel(role: WordRole, preprocess: PreprocessOp, bits: bool) -> KernelOp:
    if bits:
        return _walk(role, preprocess, VisibleOp("bits"))
    axis = word_axis(role, preprocess.slot_count("rows"), preprocess.slot_count("cols"))
    slots = preprocess.slot_count(axis)
    assert slots is not None, "one axis is bounded where there are no bits"
    return _walk(role, preprocess, VisibleOp("live words" if needs_live_test(slots) else "words", axis, slots))


def _walk(role: Role | WordRole, preprocess: PreprocessOp, visible: VisibleOp) -> KernelOp:
    loops = [TilesOp("partial", SCHEDULE[role], [visible]), TilesOp("full", SCHEDULE[role], [])]
    return KernelOp(f"{preprocess.spec.data}_{role}", role, preprocess.sym_name.data, loops)
