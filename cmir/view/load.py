"""From the text of a spec to its scene: the passes, the stages on the way, the metadata."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.reads import with_reads
from cmir.dialects.attention import KernelOp, TestsOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.errors import MetadataError, SpecError, as_python, locate
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import spec_part, with_lengths
from cmir.runtime.compiling import with_statics
from cmir.tools import driver
from cmir.view.metadata import Metadata, complete
from cmir.view.pack import Pack
from cmir.view.scene import Scene

PIPELINE = {"rows": "lower-intervals", "cols": "transpose"}
LOOKED_AT = 128
"""Rows, and columns, of a draw that are looked at."""

KERNELS = {"choose-axis": TestsOp, "lower-descriptor": PreprocessOp, "lower-attention": KernelOp}
"""The passes to kernels, and what each leaves."""


@dataclass(frozen=True)
class Stage:
    """What a pass left, as text: IR, or generated source."""

    name: str
    text: str


@dataclass(frozen=True)
class Lowered:
    """A spec after `--lower-intervals --transpose`, and as it was written."""

    name: str
    text: str
    surface: SpecOp
    module: ModuleOp
    stages: tuple[Stage, ...]
    words: Callable[[str], str] = str
    """Spells expressions in the language that the spec was written in."""

    @property
    def spec(self) -> SpecOp:
        """In normal form."""
        return next(op for op in self.module.walk() if isinstance(op, SpecOp))

    @property
    def _facts(self) -> Facts:
        return facts_of(self.spec).spelled(self.words)

    def metadata(self, rows: int | None, cols: int | None, given: Mapping[str, Any], seed: int = 0) -> Metadata:
        """What is given, the rest drawn so that there is something to see; see `complete`."""
        return complete(self._facts, rows, cols, given, seed, self._variety)

    def _variety(self, env: Mapping[str, Value]) -> float:
        """How much a mask shows of itself: pairs of both kinds, and rows in all of its Regions."""
        import numpy as np

        places = (int(env[axis]) for axis in ("rows", "cols"))
        rows, cols = (np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT), dtype=np.int64)) for n in places)
        seen = spec_part(self.surface, env, rows, cols)
        share = float(seen.mean()) if seen.size else 0.0
        domain, full = NumpyDomain(), with_lengths(env)
        guards = [[int(evaluate(e.data, full, domain)) for e in (r.lo, r.hi)] for r in self.spec.regions_of_rows]
        held = sum(max(lo, 0) < min(hi, int(env["rows"])) for lo, hi in guards)
        return min(share, 1 - share) + held

    def pack(
        self,
        rows: int | None,
        cols: int | None,
        cu_seqlens: Any,
        cu_seqlens_k: Any,
        given: Mapping[str, Any],
        sequence: int | None = None,
    ) -> Scene:
        """Many sequences in one row of tokens, or one of them by its number.

        Args:
            rows, cols: the lengths with padding; where they are left out there is none.
            cu_seqlens, cu_seqlens_k, given: as of `CompiledMask.dense`; nothing is drawn.
            sequence: the one to look at, alone; None: all in their places.

        Raises:
            MetadataError: as of `CompiledMask.dense`; or there is no such sequence, or none at all.
        """
        from cmir.runtime.packed import Subject, sequences

        def length(given: int | None, ends: Any) -> int:
            return given if given is not None else int(ends[-1]) if len(ends) else 0

        facts = self._facts
        subject = Subject(facts.name, facts, with_reads(facts, self.spec))
        rows = length(rows, cu_seqlens)
        cols = rows if cols is None and cu_seqlens_k is None else length(cols, cu_seqlens_k)
        found = sequences(subject, rows, cols, cu_seqlens, cu_seqlens_k, given)
        if not found:
            raise MetadataError(f"mask {facts.name!r}: a pack without sequences has nothing to look at")
        scenes = [(s.row, s.col, Scene(self.surface, self.module, s.env, self.words)) for s in found]
        if sequence is None:
            return Pack(scenes, rows, cols)
        if not 0 <= sequence < len(found):
            last = len(found) - 1
            raise MetadataError(f"sequence {sequence} of mask {facts.name!r}: expected an int from 0 to {last}")
        return scenes[sequence][2]

    def scene(self, metadata: Metadata) -> Scene:
        """The mask under these metadata."""
        return Scene(self.surface, self.module, metadata.env, self.words)


class _Stages(driver.Observer):
    """Keeps the IR that each pass leaves, where it is not what was there before."""

    def __init__(self, text: str) -> None:
        self.last = text
        self.kept: list[Stage] = []

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        text = driver.emit(module)
        if text != self.last:
            self.kept.append(Stage(f"--{pass_.name}", text))
            self.last = text


def lower(
    text: str,
    name: str,
    statics: Mapping[str, int] | None = None,
    before: Sequence[ModulePass] = (),
    context: Context | None = None,
    *,
    kernels: bool = False,
) -> Lowered:
    """Lower the one spec of a text.

    Args:
        text, name: the spec, and the name that messages call it by.
        statics: other values for statics.
        before: passes that are run first; the mask is what they leave.
        context: the dialects to know; all installed ones by default.
        kernels: go on to the kernels and their source, for the stages.

    Raises:
        SpecError: the spec is wrong, or there is not exactly one.
    """
    module = driver.parse(text, name, context)
    driver.run_pipeline(module, before, context)
    return lower_module(module, name, text, statics, context, kernels=kernels)


def lower_spec(spec: SpecOp, *, kernels: bool = False, in_python: bool = False) -> Lowered:
    """Lower a spec that was read before, beside the source that its places are in: a .mlir or a Python file."""
    lowered = _lower_spec(spec, kernels)
    return replace(lowered, words=as_python) if in_python else lowered


def _lower_spec(spec: SpecOp, kernels: bool) -> Lowered:
    module, place = ModuleOp([spec.clone()]), locate(spec)
    lines = [] if place is None else linecache.getlines(place.file)
    if place is None or not lines:  # a spec that was never in a file: it is its own source
        return lower(driver.emit(module), f"@{spec.sym_name.data}", kernels=kernels)
    return lower_module(module, place.file, "".join(lines), kernels=kernels)


def lower_module(
    module: ModuleOp,
    name: str,
    text: str,
    statics: Mapping[str, int] | None = None,
    context: Context | None = None,
    *,
    kernels: bool = False,
) -> Lowered:
    """Lower the one spec of a module, in place; `text` is the source that its places are in. Otherwise as `lower`."""
    specs = [op for op in module.walk() if isinstance(op, SpecOp)]
    if len(specs) != 1:
        raise SpecError(f"expected one maskspec.spec to look at, found {len(specs)}", specs[1] if specs else module)
    if specs[0].is_packed:
        raise SpecError("a packed spec has no rule of its own to look at; give the spec of one sequence", specs[0])
    if statics:
        specs = [with_statics(specs[0], statics)]
        module = ModuleOp([specs[0]])
    surface = specs[0].clone()
    stages = _Stages(driver.emit(module))
    made = {op.axis.data for op in module.walk() if isinstance(op, TableOp)}  # by the passes before
    driver.run_pipeline(module, [p for axis, p in PIPELINE.items() if axis not in made], context, observer=stages)
    lowered = module
    if kernels:
        lowered = module.clone()
        left = {type(op) for op in lowered.walk()}
        passes = [name for name, made in KERNELS.items() if made not in left]
        driver.run_pipeline(lowered, passes, context, observer=stages)
        stages.kept.append(Stage("-t triton", driver.emit(lowered, "triton", context)))
    return Lowered(name, text, surface, module, tuple(stages.kept))
