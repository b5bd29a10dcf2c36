"""Prints a mask as one stand-alone module of Triton source: the preprocess kernels and the attention kernels.

The kernels are the skeletons in `cmir/lowering/skeletons`, ordinary Triton files. Their hooks are filled with what the
mask decides: the endpoints of its slots and the checks of its facts (from `descriptor`), and the visibility tests (from
`attention`). The text is deterministic, imports triton alone, and says for every generated line which Region, clause
and slot it came from.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.target import Target

import cmir.lowering.skeletons as skeletons
from cmir.dialects.attention import KernelOp, TestsOp, VisibleOp
from cmir.dialects.descriptor import FactOp, HoldsOp, PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.errors import SpecError
from cmir.lowering import pairs, saturation
from cmir.lowering.hooks import fill
from cmir.lowering.pairs import constant_of, widen
from cmir.lowering.ssa import INDENT, Statements
from cmir.lowering.visibility import Axis, Kernel, bits_hooks, visibility_hooks

PREPROCESS = ("rule", "tiles", "order", "preprocess")
PARTS = (*PREPROCESS, "steps", "forward", "backward")
IMPORTS = "import triton\nimport triton.language as tl"
COMMON = ("z", "rows", "cols", "META")
_INDEX = {"rows": "i", "cols": "j", "row": "i", "col": "j", "entry": "e"}


@dataclass(frozen=True)
class TritonTarget(Target):
    """Print the preprocess and attention kernels as Triton source; passes that have not run yet are run first."""

    name = "triton"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        require_one_mask(module)
        module = lowered(ctx, module)
        preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
        output.write(print_module(module, preprocess))


def require_one_mask(module: ModuleOp) -> None:
    """Raises SpecError unless the module is about one mask."""
    masks = {op.spec.data: op for op in module.walk() if isinstance(op, PreprocessOp)}
    masks |= {op.sym_name.data: op for op in module.walk() if isinstance(op, SpecOp)}
    if not masks:
        raise SpecError("there is no mask to print: the module holds no maskspec.spec", module)
    if len(masks) > 1:
        second = [*masks.values()][1]
        raise SpecError("one module of kernels is one mask; print one maskspec.spec at a time", second)


@contextmanager
def _without_collection() -> Generator[None]:
    """No garbage collection meanwhile: terms live as long as a compile, and looking at them again is a third of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_without_collection()
def lowered(ctx: Context, module: ModuleOp, test: str = "auto", target: str = "any") -> ModuleOp:
    """A copy of the module with the passes run that a mask still needs before it can be printed.

    `test` is the option of `--choose-axis`, `target` that of `--lower-attention`, where those have yet to run.
    """
    from cmir.passes.choose_axis import ChooseAxis
    from cmir.passes.lower_attention import LowerAttention
    from cmir.passes.lower_descriptor import LowerDescriptor
    from cmir.passes.lower_intervals import LowerIntervals
    from cmir.passes.transpose import Transpose

    module = module.clone()

    def has(kind: type[Operation]) -> bool:
        return any(isinstance(op, kind) for op in module.walk())

    tables = {op.axis.data for op in module.walk() if isinstance(op, TableOp)}
    if not has(PreprocessOp) and has(SpecOp):
        if "rows" not in tables:
            LowerIntervals().apply(ctx, module)
        if "cols" not in tables:
            Transpose().apply(ctx, module)
        if not has(TestsOp):
            ChooseAxis(test).apply(ctx, module)
        LowerDescriptor().apply(ctx, module)
    if has(PreprocessOp) and not has(KernelOp):
        LowerAttention(target).apply(ctx, module)
    return module


def print_module(module: ModuleOp, preprocess: PreprocessOp) -> str:
    """The Triton source of one mask whose attention kernels stand in `module`."""
    kernels = kernels_of(module, preprocess)
    hooks = {"saturate": saturation.hook(preprocess)}
    hooks |= {**_slot_hooks(preprocess), **_bit_hooks(preprocess), **_fact_hooks(preprocess)}
    for kernel in kernels:
        hooks |= _visibility(preprocess, kernel)
    return _header(preprocess, kernels) + fill(skeleton(PARTS), hooks, metadata_parameters(preprocess))


@cache
def skeleton(parts: tuple[str, ...]) -> str:
    """The named skeletons, of which each may use those before it, as one module without docstring, hooks unfilled."""
    texts = [Path(skeletons.__path__[0], f"{part}.py").read_text() for part in parts]
    return "\n\n\n".join([IMPORTS, *(map(body_of, texts))]) + "\n"


def kernels_of(module: ModuleOp, preprocess: PreprocessOp, target: str = "any") -> list[KernelOp]:
    """One kernel of each role, each testing the table that it is launched with: the launch is not part of the text."""
    from cmir.passes.lower_attention import build_kernels

    name = preprocess.sym_name.data
    out: list[KernelOp] = []
    for want in build_kernels(module, preprocess, target):
        role = want.role.data
        found = [
            k for k in module.walk() if isinstance(k, KernelOp) and k.preprocess.data == name and k.role.data == role
        ]
        if len(found) != 1:
            raise SpecError(f"@{name} needs one {role} kernel, it has {len(found)}", preprocess)
        have = found[0].visible
        if have.properties != want.visible.properties:
            raise SpecError(
                f"@{name} is launched with a {role} kernel that tests {_test(want.visible)}, not {_test(have)}", have
            )
        out += found
    return out


def _test(visible: VisibleOp) -> str:
    return "bits" if visible.table is None else "{1} slots of {0} {2}".format(*visible.table, visible.mode.data)


def metadata_parameters(preprocess: PreprocessOp) -> list[str]:
    """The kernel parameters that carry the metadata, in declaration order.

    Each has a prefix of its own, so that no name of a spec meets another, whatever it ends in.
    """
    out: list[str] = []
    for name, kind in preprocess.kinds:
        out += [f"meta_{name}", f"stride_{name}"]
        out += {"scalar": [f"pointer_{name}: tl.constexpr"], "free": [f"length_{name}"]}.get(kind, [])
    return out


def _header(preprocess: PreprocessOp, kernels: Sequence[KernelOp]) -> str:
    lines = [f'"""Attention mask @{plain(preprocess.spec.data)}: Triton kernels generated by cmir. Do not edit.', ""]
    if preprocess.hull is not None:
        origins = [o.data for o in preprocess.hull.endpoints.origins.data[0]]
        lines.append(f"bits: {describe(origins)}")
    for axis, index in (("rows", "row i"), ("cols", "column j")) if preprocess.hull is None else ():
        slots = preprocess.slots_of(axis)
        if slots is None:
            lines.append(f"{axis}: unbounded, no table")
            continue
        lines.append(f"{axis}: {preprocess.slot_count(axis)} slot(s) at {index}")
        lines += [f"  slot {k}: {describe(names)}" for k, names in enumerate(origins_of(preprocess, axis))]
    lines += [f"fact {f.number.data}: {plain(f.text.data)}" for f in preprocess.facts]
    for kernel in kernels:
        table, mode = kernel.visible.table, kernel.visible.mode.data
        lines.append(f"{kernel.role.data}: tests " + (mode if table is None else f"the {table[0]} table, {mode}"))
    return "\n".join([*lines, '"""', "", ""])


def describe(origins: Sequence[str]) -> str:
    """`region candidate clause 1, ...`: where a slot comes from."""
    parts = [plain(o).rpartition(".") for o in origins]
    return ", ".join(f"region {region} clause {clause}" for region, _, clause in parts) or "never used"


def plain(text: str) -> str:
    """Text from a spec as it may stand in a comment or docstring: a line of ASCII, no quotes or backslashes."""
    return re.sub(r"[^ -~]|[\"\\]", "?", text)


def origins_of(preprocess: PreprocessOp, axis: str) -> list[list[str]]:
    """Of each slot of an axis, the clauses that it comes from."""
    slots = preprocess.slots_of(axis)
    assert slots is not None
    return [[o.data for o in names] for names in slots.endpoints.origins]


def _slot_hooks(preprocess: PreprocessOp) -> dict[str, str]:
    out: dict[str, str] = {}
    for axis in ("rows", "cols"):
        kind, index, slots = axis[:-1], _INDEX[axis], preprocess.slots_of(axis)
        body: list[str] = []
        if slots is not None:
            statements = Statements(preprocess, [(slots.body.block.args[0], kind, index)], index)
            statements.block(slots.body.block)
            for k, ((lo, hi), names) in enumerate(
                zip(slots.endpoints.slots, origins_of(preprocess, axis), strict=True)
            ):
                statements.lines.append(f"{INDENT}# slot {k}: {describe(names)}")
                for end, value in enumerate((lo, hi)):
                    where = f"table + {2 * k + end} * {axis} + {index}"
                    stored = f"(tl.zeros_like({index}) + {statements.name(value)}).to(tl.int32)"
                    statements.lines.append(f"{INDENT}tl.store({where}, {stored}, mask=mask)")
            body = [*widen(index), *(INDENT + line for line in statements.preamble()), *statements.lines]
        hook = f"store_{kind}_slots"
        out[hook] = _function(hook, ["table", index, "mask", *COMMON], body or [f"{INDENT}pass"])
    return out


_BIT_PARAMETERS = {
    "row_hull": ["i"],
    "pair_rows": ["i"],
    "pair_visible": ["own", "i", "j"],
    "byte_visible": ["own", "i", "j"],
    "tile_rows": ["i"],
    "tiles_visible": ["own", "j"],
}


def _bit_hooks(preprocess: PreprocessOp) -> dict[str, str]:
    bodies = pairs.hook_bodies(preprocess)
    return {hook: _function(hook, [*_BIT_PARAMETERS[hook], *COMMON], body) for hook, body in bodies.items()}


def _fact_hooks(preprocess: PreprocessOp) -> dict[str, str]:
    out: dict[str, str] = {}
    for over in ("scalar", "row", "col", "entry"):
        facts = [f for f in preprocess.facts if f.over.data == over]
        index = _INDEX.get(over, "")
        nothing = f"tl.zeros_like({index})" if index else "0"
        body = _checks(preprocess, facts, over, index, nothing)
        hook = f"{over}_facts"
        out[hook] = _function(hook, [*([index] if index else []), *COMMON], body)
    return out


def _checks(preprocess: PreprocessOp, facts: Sequence[FactOp], over: str, index: str, nothing: str) -> list[str]:
    """`broken` becomes the number of the first fact that does not hold: the last one is tested first."""
    if not facts:
        return [f"{INDENT}return {nothing}"]
    lines = [f"{INDENT}broken = {nothing}"]
    loaded: dict[str, str] = {}
    count = 0
    for fact in reversed(facts):
        block = fact.body.block
        kind = over if over in ("row", "col") else None
        statements = Statements(preprocess, [(argument, kind, index) for argument in block.args], index or "z")
        statements.count = count
        statements.block(block)
        holds = block.last_op
        assert isinstance(holds, HoldsOp)
        constant = constant_of(holds)
        if constant is True:
            continue
        condition = "False" if constant is False else statements.name(holds.condition)
        count = statements.count
        loaded |= statements.loaded
        lines.append(f"{INDENT}# fact {fact.number.data}: {plain(fact.text.data)}")
        lines += statements.lines
        if constant is False:
            lines.append(f"{INDENT}broken = {nothing} + {fact.number.data}")
        else:
            lines.append(f"{INDENT}broken = tl.where({condition}, broken, {fact.number.data})")
    loads = [f"{INDENT}{local} = {Statements(preprocess, [], '').scalar(n)}" for n, local in loaded.items()]
    return [*widen(index), *loads, *lines, f"{INDENT}return broken"]


def _visibility(preprocess: PreprocessOp, kernel: KernelOp) -> dict[str, str]:
    visible = kernel.visible
    role = cast(Kernel, kernel.role.data)
    if visible.table is None:
        assert preprocess.hull is not None, "required"
        (names,) = preprocess.hull.endpoints.origins.data
        return bits_hooks(role, describe([o.data for o in names]))
    axis, slots = visible.table
    comments = [[describe(names)] for names in origins_of(preprocess, axis)]
    return visibility_hooks(role, cast(Axis, axis), slots, visible.mode.data == "live", comments)


def _function(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    """A kernel function, one parameter a line: META among them may become many."""
    lines = ["@triton.jit", f"def {name}(", *(f"{INDENT}{p}," for p in parameters), "):", *body]
    return "\n".join(lines) + "\n"


def body_of(source: str) -> str:
    """A skeleton without its module docstring and imports."""
    tree = ast.parse(source)
    lines = source.splitlines()
    heads = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    last = max((n.end_lineno or 0 for n in heads), default=0)
    return "\n".join(lines[last:]).strip("\n")
