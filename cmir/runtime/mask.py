"""`cmir.compile`: from a spec, as text or in Python, to a mask that can be looked at, described and attended with.

    mask = cmir.compile("hstu.mlir")
    desc = mask.describe(rows=n, cols=n, history=h, start=s)
    out = cmir.attention(q, k, v, desc)

Compiling needs no GPU and no torch. The oracle (`dense`) runs the rule as it was written; everything else runs what the
passes made of it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.layouts import orders_of
from cmir.analysis.reads import is_read, reads_of
from cmir.dialects.attention import KernelOp, TestsOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import Parameter as SpecParameter
from cmir.dialects.maskspec import SpecOp
from cmir.errors import CmirError, MetadataError, SourceLocation, SpecError, locate, missing_torch
from cmir.layouts import add_layout
from cmir.lowering.triton import lowered, print_module
from cmir.lowering.visibility import needs_live_test
from cmir.lowering.words import word_axis
from cmir.passes.choose_axis import PYTHON, TEXT, remarks_of
from cmir.passes.pack import ADDED
from cmir.runtime import cache
from cmir.signature import DESCRIBE_ARGUMENTS, Fact, Parameter, Signature
from cmir.tools import driver
from cmir.tools.located_parser import suggestion
from cmir.tools.registry import Registry
from cmir.tools.verifier import verify

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cmir.analysis.proof.decide import Outcome
    from cmir.frontend.spec import MaskSpec
    from cmir.interp.domain import Value
    from cmir.layouts import Layout
    from cmir.runtime.descriptor import Descriptor, Plan
    from cmir.runtime.flashmask import FlashMask
    from cmir.runtime.metadata import PackedMetadata
    from cmir.runtime.packed import Longest
    from cmir.tools.explain_slots import Pair
    from cmir.view.cell import Explanation

CHOICES = ("auto", "rows", "cols", "bits")
"""What `test` of `compile` may be."""

CHECK = "CMIR_CHECK"
"""The variable of the environment that, set to 1, makes `describe` check at once: it then waits for the device."""

MAX_PLANS = 256
"""Forms of arguments of `describe` that a mask remembers."""


def compile(
    spec: str | Path | MaskSpec,
    *,
    statics: Mapping[str, int] | None = None,
    layout: Layout | Mapping[Literal["rows", "cols"], Layout] | None = None,
    test: Literal["auto", "rows", "cols", "bits"] = "auto",
    prove: bool | Literal["strict"] = False,
) -> CompiledMask:
    """Compile a mask.

    Args:
        spec: the path of a .mlir file with one `maskspec.spec`, or a `cmir.MaskSpec`.
        statics: other values for statics of the spec, e.g. `{"radius": 8}`.
        layout: the order in which tokens are stored, one of `cmir.layouts`, of both axes or of those that a dict names.
            Metadata keep the order of the tokens; q, k, v and the output are in the layout's, see `Descriptor.permute`.
        test: what the kernels test in partial tiles: intervals of rows, of columns, or a bit for every pair; by default
            what is cheapest, bits only where nothing else says the mask.
        prove: also prove of every pass that it kept what is visible, as `cm-opt --prove` does, which takes seconds;
            `mask.proofs` says what became of each. With "strict", what is not proved is an error too.

    Returns:
        The compiled mask. The same text gives the same object within a process, and comes from an on-disk cache between
        processes.

    Raises:
        SpecError: the spec is wrong, or is not to be tested by an axis that no number of intervals says; or a proof
            failed.
    """
    try:
        return _compile(spec, statics, layout, test, prove)
    except RecursionError:
        raise SpecError(
            "the spec is nested too deeply, or has too many Regions, for the compiler; make it flatter"
        ) from None


def _compile(
    spec: str | Path | MaskSpec,
    statics: Mapping[str, int] | None,
    layout: Layout | Mapping[Literal["rows", "cols"], Layout] | None,
    test: str,
    prove: bool | Literal["strict"],
) -> CompiledMask:
    if test not in CHOICES:
        raise SpecError(f"test= is {', '.join(CHOICES)}; got {test!r}")
    if prove not in (True, False, "strict"):
        raise SpecError(f"prove= is True, False or 'strict'; got {prove!r}")
    if not isinstance(spec, str | Path) and not hasattr(spec, "module"):
        hint = "; a mask_mod is imported first: cmir.compile(cmir.from_mask_mod(mask_mod))" if callable(spec) else ""
        raise SpecError(f"expected the path of a .mlir file or a cmir.MaskSpec, got {type(spec).__name__}{hint}")
    if isinstance(spec, str | Path):
        if "maskspec.spec" in str(spec):
            raise SpecError("expected the path of a .mlir file, got the text of a spec; write it to a file")
        path = Path(spec)
        try:
            text, name = path.read_text(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            from cmir.zoo import NAMES

            close = get_close_matches(str(spec), NAMES, 1, 0.75)
            hint = f"; the mask of the zoo is cmir.zoo.load({close[0]!r})" if close else ""
            raise SpecError(f"cannot read the spec {str(path)!r}: {error}{hint}") from None
        module = driver.parse(text, name)
    else:
        module = spec.module()
    specs = [op for op in module.walk() if isinstance(op, SpecOp)]
    if len(specs) != 1:
        raise SpecError(f"expected one maskspec.spec, found {len(specs)}", specs[1] if specs else module)
    if statics:
        if not isinstance(spec, str | Path):
            _refuse_fixed_constants(specs[0])
        specs = [with_statics(specs[0], statics)]
        module = ModuleOp([specs[0]])
    if layout is not None:
        specs = [add_layout(specs[0], layout)]
        module = ModuleOp([specs[0]])
    _check_parameters(specs[0])
    mask = _compiled(_text(module), module, test, in_python=not isinstance(spec, str | Path))
    if prove:
        mask.proofs = _proofs(mask, test, prove == "strict")
    return mask


def _proofs(mask: CompiledMask, test: str, strict: bool) -> list[tuple[str, Outcome]]:
    """What became of the proof of every pass that makes the mask's module of its spec."""
    from cmir.tools.proving import Prover

    prover, module = Prover(strict), ModuleOp([mask.surface.clone()])
    passes = ["lower-intervals", "transpose", f"choose-axis{{test={test}}}", "lower-descriptor", "lower-attention"]
    driver.run_pipeline(module, passes, observer=prover)
    if _text(module) != mask.ir:
        raise SpecError("the cached module of this mask is not what its passes make; remove the cache", mask.surface)
    return prover.outcomes


_masks: dict[str, CompiledMask] = {}


def _compiled(text: str, module: ModuleOp, test: str, in_python: bool) -> CompiledMask:
    if test != "auto":
        text = f"{test}\0{text}"
    known = f"python\0{text}" if in_python else text  # the same mask, which speaks another language
    if known in _masks:
        return _masks[known]
    key = cache.key_of(text)
    result, triton = _cached(key) or (None, "")
    if result is None:
        result = lowered(Registry.installed().context(), module, test)
        preprocess = next(op for op in result.walk() if isinstance(op, PreprocessOp))
        triton = print_module(result, preprocess)
        cache.write(key, {"ir": _text(result), "triton": triton})
    _masks[known] = CompiledMask(module, result, triton, in_python)
    return _masks[known]


def _packed(mask: CompiledMask) -> CompiledMask:
    """The packed form of a mask, from its tables: the proofs have been made."""
    from cmir.passes.pack import Pack

    key = cache.key_of(f"packed\0{mask.ir}")
    result, triton = _cached(key) or (None, "")
    if result is None:
        context = Registry.installed().context()
        tables = [op.clone() for op in mask.module.ops if isinstance(op, SpecOp | TableOp | TestsOp)]
        packed = ModuleOp(tables)
        Pack().apply(context, packed)
        result = lowered(context, packed)
        triton = print_module(result, next(op for op in result.walk() if isinstance(op, PreprocessOp)))
        cache.write(key, {"ir": _text(result), "triton": triton})
    return CompiledMask(ModuleOp([mask.surface.clone()]), result, triton, mask.in_python)


def _cached(key: str) -> tuple[ModuleOp, str] | None:
    """The lowered module and its source from the cache, unless there is none that can be read."""
    entry = cache.read(key)
    if entry is None or entry.keys() != {"ir", "triton"}:
        return None
    try:
        return driver.parse(entry["ir"], f"<cached {key}>"), entry["triton"]
    except SpecError:
        return None


def _text(module: ModuleOp) -> str:
    from io import StringIO

    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue()


def with_statics(spec: SpecOp, statics: Mapping[str, int]) -> SpecOp:
    """A copy of the spec with other values for some statics.

    Raises:
        SpecError: there is no such static, or a value is no int.
    """
    known = {p.name for p in spec.parameters if p.kind == "static"}
    if not isinstance(statics, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SpecError(f"statics= takes a mapping of names of statics to ints, got {statics!r}")
    for name, value in statics.items():
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            hint = suggestion(str(name), known) or f"; it has {has}"
            raise SpecError(f"@{spec.sym_name.data} has no static '{name}'{hint}", spec)
        if type(value) is not int:
            raise SpecError(f"static '{name}' must be an int, got {value!r}", spec)
    copy = spec.clone()
    changed = [
        SpecParameter(p.name, p.kind, statics.get(p.name, p.value)) if p.kind == "static" else p
        for p in spec.parameters
    ]
    out = SpecOp(spec.sym_name.data, changed, copy.detach_region(copy.body))
    out.location = spec.location
    verify(out)  # a static may say how many integers an entry holds
    return out


def _refuse_fixed_constants(spec: SpecOp) -> None:
    """A Python spec computes its constant tables itself, from values of statics that an override would leave behind."""
    for op in spec.constant_tables().values():
        raise SpecError(
            f"statics= cannot be given: constant table '{op.sym_name.data}' was computed in Python; "
            "build the spec with the other values instead",
            op,
        )


def _whole(value: Any) -> Any:
    """An integer of NumPy as an int; anything else, and a bool, as it is, for others to check."""
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _check_parameters(spec: SpecOp) -> None:
    for p in spec.parameters:
        if p.name in DESCRIBE_ARGUMENTS:
            raise SpecError(f"metadata '{p.name}' has the name of an argument of describe; rename it", spec)


class CompiledMask:
    """A mask after all passes. Made by `cmir.compile`; immutable."""

    def __init__(self, surface: ModuleOp, module: ModuleOp, triton: str, in_python: bool = False) -> None:
        self._surface = next(op for op in surface.walk() if isinstance(op, SpecOp))
        self._orders = orders_of(self._surface.layouts)
        self._module = module
        self._triton = triton
        self.in_python = in_python
        """Whether the spec was written in Python: remarks then say what to write there."""
        self._spec = next(op for op in module.walk() if isinstance(op, SpecOp))
        self.facts: Facts = facts_of(self._spec)
        self.checked: Facts = replace(self.facts, facts=(*self.facts.facts, *reads_of(self._spec)))
        """The facts, and after them the entries that the rule reads of free tables: what is checked of a batch."""
        self._tables = {op.axis.data: op for op in module.walk() if isinstance(op, TableOp)}
        self._preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
        self._tests = next(op for op in module.walk() if isinstance(op, TestsOp))
        tests = self._tests.tests
        self.name = self._spec.sym_name.data
        self.signature = Signature(
            self.name,
            tuple(Parameter(p.name, p.kind, p.entries) for p in self._preprocess.parameters),  # pyright: ignore[reportArgumentType]
            self._preprocess.slot_count("rows"),
            self._preprocess.slot_count("cols"),
            tuple(Fact(f.text.data, f.over.data, not is_read(f.text.data)) for f in self._preprocess.facts),  # pyright: ignore[reportArgumentType]
            (tests["forward"], tests["dq"], tests["dkv"]),
            self._preprocess.symmetric is not None,
        )

        self._plans: dict[object, Plan] = {}
        self.proofs: list[tuple[str, Outcome]] = []
        """(pass, what became of its proof) for every pass, where the mask was compiled with `prove=`."""

    def __repr__(self) -> str:
        return f"CompiledMask({self.name!r}, slots={self.slots})"

    @property
    def surface(self) -> SpecOp:
        """The spec as it was written. Not to be changed."""
        return self._surface

    @property
    def module(self) -> ModuleOp:
        """The module after all passes. Not to be changed."""
        return self._module

    @functools.cached_property
    def packed(self) -> CompiledMask:
        """The mask of many sequences in one row of tokens, as `--pack` derives it; compiled when it is first used.

        `describe(cu_seqlens=...)` describes it. Its own metadata are those of the packed form: `cu_rows`, `cu_cols` and
        `longest` beside the mask's own, whose scalars are tables with one entry per sequence.
        """
        self._require_one_sequence()
        return _packed(self)

    @property
    def slots(self) -> dict[str, int | None]:
        """How many intervals a row (column) needs; None where no finite number says it."""
        return {
            axis: None if t.slots is None else t.slots.data for axis, t in sorted(self._tables.items(), reverse=True)
        }

    @property
    def tests(self) -> dict[str, str]:
        """What the kernels forward, dq and dkv test in partial tiles: intervals of rows, of cols, or bits."""
        return {role: test for role, test in self._tests.tests.items()}

    @functools.cached_property
    def remarks(self) -> list[str]:
        """Why an axis is unbounded, with its place in the spec and what would bound it; none if both are bounded."""
        tables = [self._tables[axis] for axis in ("rows", "cols")]
        words = PYTHON if self.in_python else TEXT
        return [r.render() for r in remarks_of(self._spec, tables, self._tests, self._surface, words)]

    @functools.cached_property
    def warnings(self) -> list[str]:
        """What the spec says and can hardly mean, with its place: parts of rules that change nothing, Regions that are
        always empty, metadata that nothing depends on, facts that always hold. Each is proved, as by `cm-opt --lint`,
        when this is first read; compiling does not wait for it."""
        from cmir.analysis.lint import warnings_of

        return [warning.render() for warning in warnings_of(self._surface)]

    def explain_slots(self) -> list[Pair]:
        """Why pairs of intervals are one slot, or are not; each prints as a line of `cm-opt --explain-slots`."""
        from cmir.tools.explain_slots import pairs

        return pairs(ModuleOp([self._surface.clone()]))

    @property
    def ir(self) -> str:
        """The module after all passes, as text."""
        return _text(self._module)

    def source(self, target: Literal["triton", "gluon"] = "triton") -> str:
        """A generated module, stand-alone: preprocess and attention kernels, or the attention kernels for Hopper."""
        if target not in ("triton", "gluon"):
            raise CmirError(f"unknown target {target!r}; the targets are: triton, gluon")
        return self._triton if target == "triton" else self._gluon

    @functools.cached_property
    def _gluon(self) -> str:
        from cmir.lowering.gluon import print_module

        module = ModuleOp([op.clone() for op in self._module.ops if not isinstance(op, KernelOp)])
        module = lowered(Registry.installed().context(), module, target="hopper")
        return print_module(module, next(op for op in module.walk() if isinstance(op, PreprocessOp)))

    def dense(
        self,
        /,
        *,
        rows: int,
        cols: int | None = None,
        cu_seqlens: Any = None,
        cu_seqlens_k: Any = None,
        **metadata: Any,
    ) -> np.ndarray:
        """The rule itself, run on every pair: NumPy bool [rows, cols]. The oracle; for small lengths.

        Of a mask with a layout, rows and columns are in its order; metadata are in the order of the tokens.

        Args:
            rows, cols: the lengths; `cols` is `rows` where it is left out.
            cu_seqlens, cu_seqlens_k: many sequences in one row of tokens, as for `describe`, as 1-D sequences of ints.
                The rule is run for each of them alone.
            metadata: every scalar as an int, every table as a sequence of ints (NumPy, list, torch):
                [length], or [length, K] where an entry holds K of them. With `cu_seqlens` a scalar may be a 1-D
                sequence too, of one int per sequence.

        Raises:
            MetadataError: an argument is missing, unknown or of the wrong length, or the metadata break a fact.
        """
        from cmir.interp.masks import spec_mask

        if cu_seqlens is not None or cu_seqlens_k is not None:
            from cmir.runtime import packed

            length = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            return packed.dense(self, *length, cu_seqlens, cu_seqlens_k, metadata)
        if self._spec.is_packed:
            raise CmirError(f"mask {self.name!r} is packed: give cu_seqlens to the dense of the mask it was made from")
        return spec_mask(self._surface, self._environment(rows, cols, metadata)).copy()

    def intervals(
        self,
        /,
        axis: Literal["rows", "cols"] = "rows",
        *,
        rows: int,
        cols: int | None = None,
        cu_seqlens: Any = None,
        cu_seqlens_k: Any = None,
        **metadata: Any,
    ) -> np.ndarray:
        """What the compiled form says: lo and hi of every slot, NumPy int32 [slots, 2, rows] or [slots, 2, cols].

        The intervals of one row are disjoint; an absent slot has lo == hi. Arguments and errors as of `dense`, and
        CmirError where the axis is unbounded.
        """
        from cmir.interp.masks import table_intervals

        if axis not in self._tables:
            raise CmirError(f"axis: expected 'rows' or 'cols', got {axis!r}")
        span = self._tables[axis].residual_span
        if span is not None and span.residual is not None and span.reason is not None:
            raise CmirError(
                f"mask {self.name!r} is unbounded by {axis}: '{span.residual.data}' bounds no interval, "
                f"since {span.reason.data}"
            )
        if cu_seqlens is not None or cu_seqlens_k is not None:
            from cmir.runtime import packed

            length = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            env = packed.environment(self, *length, cu_seqlens, cu_seqlens_k, metadata)
            return table_intervals(self.packed._tables[axis], env)
        return table_intervals(self._tables[axis], self._environment(rows, cols, metadata))

    def explain(
        self,
        i: int,
        j: int,
        /,
        *,
        rows: int,
        cols: int | None = None,
        cu_seqlens: Any = None,
        cu_seqlens_k: Any = None,
        **metadata: Any,
    ) -> Explanation:
        """Why row `i` sees column `j`, or does not; `print` it.

        Args:
            i, j: the row and the column; of a mask with a layout, as they are stored.
            rows, cols: the lengths; `cols` is `rows` where it is left out.
            cu_seqlens, cu_seqlens_k, metadata: as of `dense`.

        Raises:
            MetadataError: there is no such row or column, or as of `dense`.
        """
        from cmir.view.cell import explain
        from cmir.view.scene import Scene

        if cu_seqlens is not None or cu_seqlens_k is not None:
            from cmir.runtime import packed

            length = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            return packed.explain(self, i, j, *length, cu_seqlens, cu_seqlens_k, metadata)
        if self._spec.is_packed:
            raise CmirError(
                f"mask {self.name!r} is packed: give cu_seqlens to the explain of the mask it was made from"
            )
        return explain(Scene(self._surface, self._module, self._environment(rows, cols, metadata)), i, j)

    def view(
        self,
        path: str | Path,
        /,
        *,
        rows: int | None = None,
        cols: int | None = None,
        tile: tuple[int, int] | None = None,
        **metadata: Any,
    ) -> None:
        """Write a page (.html) or a picture (.png, .svg) of what the mask shows; `cm-view` on a compiled mask.

        Args:
            path: the file; its name says the format. Pictures need matplotlib (`pip install 'cmir[view]'`).
            rows, cols: the lengths; drawn if both are left out.
            tile: rows and columns of a tile; by default what suits the size.
            metadata: as of `dense`, of one sequence; what is left out is drawn so that the facts hold.

        Raises:
            CmirError: an unknown format, too many pairs for it, or a file that cannot be written.
            MetadataError: as of `dense`, or no draw satisfies the facts.
        """
        from cmir.view.load import lower_spec
        from cmir.view.output import format_of, write

        if self._spec.is_packed or metadata.keys() & {"cu_seqlens", "cu_seqlens_k"}:
            raise CmirError(f"mask {self.name!r}: view shows one sequence; give its own lengths and metadata")
        lowered = lower_spec(self._surface, kernels=format_of(str(path)) == "html")
        write(lowered.scene(lowered.metadata(rows, cols, metadata)), lowered, str(path), tile)

    def describe(
        self,
        /,
        *,
        rows: int,
        cols: int | None = None,
        cu_seqlens: torch.Tensor | None = None,
        cu_seqlens_k: torch.Tensor | None = None,
        max_seqlen: int | None = None,
        device: torch.device | str | None = None,
        tile: Sequence[int] | None = None,
        **metadata: Any,
    ) -> Descriptor:
        """Build the Execution Descriptor of a batch: one kernel launch, no host synchronisation.

        Args:
            rows, cols: the lengths of q and k; `cols` is `rows` where it is left out. With `cu_seqlens` they are all
                tokens of the pack, padding included, which only the host knows without waiting for the device.
            cu_seqlens: the pack's sequences, as FlashAttention takes them: int32 or int64 [S + 1], from 0, never
                falling; sequence s has the rows from cu_seqlens[s] to cu_seqlens[s + 1]. Some may be empty; tokens past
                the last see nothing. The rule, its lengths, rows, columns and facts are those of each sequence.
            cu_seqlens_k: the same for columns, which are cut as the rows are where it is left out; needs `cols`.
            max_seqlen: a promise that no sequence has more rows or columns, checked like a fact; the descriptor of a
                long pack is much smaller for it.
            device: where to build it if all metadata are ints (default: CUDA if there is one).
            tile: rows and columns of a tile, each of 16, 32, 64, 128; by default 128 x 128 on a GPU, 32 x 32 in the
                interpreter.
            metadata: scalars as ints or int32/int64 tensors [], [B] or [B, H] (a mask per sequence, or per sequence and
                head); tables as int32/int64 tensors [length], [B, length] or [B, H, length], with one more dimension at
                the end where an entry holds several integers. Without batch dimensions a metadatum is shared; a mask
                whose metadata are all shared is stored once. With `cu_seqlens` a scalar is an int for all sequences or
                a tensor [S] of one for each, a table per row (column) has the entries of the sequences one after
                another, [rows] ([cols]), and a free table is that of all sequences, or a pair: the entries of the
                sequences one after another [n], and an int tensor [S + 1] of where those of each begin.

        Raises:
            MetadataError: an argument is missing, unknown, or of the wrong length, dtype or device; a fact about ints
                is broken. Facts about tensors are checked on the device: see `Descriptor.check`, which is called here
                if CMIR_CHECK=1 in the environment says so (but not while a CUDA graph is captured, which cannot wait).
        """
        if cu_seqlens is not None or cu_seqlens_k is not None or max_seqlen is not None:
            from cmir.runtime import packed

            lengths = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            metadata = {name: _whole(value) for name, value in metadata.items()}
            self._check_host_facts(metadata)
            values = packed.metadata(self, cu_seqlens, cu_seqlens_k, _whole(max_seqlen), metadata)
            longest = None if max_seqlen is None else packed.Longest(_whole(max_seqlen), cu_seqlens_k is None)
            return self.packed._describe(*lengths, device, tile, values, longest)
        return self._describe(rows, cols, device, tile, metadata, None)

    def to_sdpa(self, /, **arguments: Any) -> torch.Tensor:
        """The mask of a batch for `scaled_dot_product_attention`: `describe(**arguments).check().to_sdpa()`."""
        return self.describe(**arguments).check().to_sdpa()

    def to_flashmask(self, /, **arguments: Any) -> FlashMask:
        """The mask of a batch for PaddlePaddle's `flashmask_attention`, (startend_row_indices, causal).

        Args:
            arguments: as of `describe`.

        Raises:
            CmirError: it is not proved that at most two intervals of rows are hidden from every column.
            MetadataError: as `describe`; or the metadata break a fact, on which the proof rests.
        """
        from cmir.runtime.flashmask import form_of, to_flashmask

        packed = "cu_seqlens" in arguments
        form = form_of(self._tables["cols"], self.facts, self.name, packed, arguments.get("cu_seqlens_k") is None)
        return to_flashmask(self.describe(**arguments).check(), form)

    def _describe(
        self,
        rows: int,
        cols: int | None,
        device: torch.device | str | None,
        tile: Sequence[int] | None,
        metadata: Mapping[str, Any],
        longest: Longest | None,
    ) -> Descriptor:
        """`describe`; of a packed mask, `longest` says what is promised about its sequences."""
        try:
            from cmir.runtime import descriptor
        except ModuleNotFoundError as error:
            raise missing_torch(error, "describe") from error

        # The form of the arguments decides all checks but those of values: they are made once for each form.
        form = descriptor.form_of_call(rows, cols, device, tile, metadata)
        if form is not None:
            form = (longest, *form)
        plan = self._plans.get(form)
        if plan is None:
            plan, taken = self._plan(rows, cols, device, tile, metadata, longest)
            as_given = all(
                taken.arguments[place] is metadata[parameter.name]
                for parameter, place in zip(self.signature.parameters, taken.places, strict=True)
            )
            if form is not None and as_given:  # nothing had to be copied
                if len(self._plans) >= MAX_PLANS:
                    self._plans.pop(next(iter(self._plans)))
                self._plans[form] = plan
            return self._finished(plan.build(taken.arguments), metadata)
        self._check_host_facts({"rows": plan.rows, "cols": plan.cols, **metadata})
        return self._finished(plan.build_from(metadata), metadata)

    def _finished(self, desc: Descriptor, metadata: Mapping[str, Any]) -> Descriptor:
        """The descriptor, with what it was made of, and with the permutation of its layout if there is one."""
        desc.explain = functools.partial(self._explain, metadata)
        if self._orders:
            from cmir.runtime.layout import tokens_of

            desc.tokens = tokens_of(self.name, self._orders, desc.rows, desc.cols, metadata, desc.device)
        if os.environ.get(CHECK) == "1":
            from cmir.runtime.launch import is_capturing

            if not is_capturing(desc.device):
                desc.check()
        return desc

    def _explain(self, metadata: Mapping[str, Any], desc: Descriptor, number: int, index: int, mask: int) -> str:
        """What a descriptor of these metadata has at the place of a broken fact."""
        from cmir.runtime.broken import Origin

        lengths = desc.rows, desc.cols
        origin = Origin(self.checked, metadata, desc.batch, lengths, self._declared, self._user_names)
        return origin.explain(number, index, mask)

    @functools.cached_property
    def _declared(self) -> dict[str, SourceLocation]:
        """Where each fact was declared, by its text."""
        places = ((fact.text, locate(fact.source)) for fact in facts_of(self._surface).facts)
        return {text: place for text, place in places if place is not None}

    @functools.cached_property
    def _user_names(self) -> dict[str, str]:
        """Of a packed mask, what the user calls the metadata that packing added."""
        if not self._spec.is_packed:
            return {}
        own = {p.name for p in self._surface.parameters}
        added = [p.name for p in self.facts.parameters if p.name not in own]
        names = dict(zip(added[-ADDED:], ("cu_seqlens", "cu_seqlens_k", "max_seqlen"), strict=True))
        return {name: names.get(name, name) for name in added}

    def _plan(
        self,
        rows: int,
        cols: int | None,
        device: torch.device | str | None,
        tile: Sequence[int] | None,
        given: Mapping[str, Any],
        longest: Longest | None,
    ) -> tuple[Plan, PackedMetadata]:
        """The launch for such arguments, and the metadata as it takes them; all checked."""
        from cmir.runtime import descriptor
        from cmir.runtime.launch import default_device
        from cmir.runtime.metadata import pack

        rows, length = _whole(rows), _whole(rows if cols is None else cols)
        metadata = {name: _whole(value) for name, value in given.items()}
        if type(rows) is int and type(length) is int and min(rows, length) >= 0:
            if self._orders:
                self._check_layout(rows, length, metadata)
            self._check_host_facts({"rows": rows, "cols": length, **metadata})
        if tile is None:
            devices = [v.device for v in metadata.values() if hasattr(v, "device")]
            where = str(devices[0] if devices else device or default_device())
            tile = (32, 32) if where.startswith("cpu") else (128, 128)
        elif not hasattr(tile, "__len__") or len(tile) != 2:
            raise MetadataError(
                f"mask {self.name!r}, argument 'tile': expected two ints, (rows, columns); got {tile!r}"
            )
        packed = pack(self.signature, rows, length, metadata, device)
        sizes = (tile[0], tile[1])
        reach = (None, None) if longest is None else longest.reach(sizes)
        plan = descriptor.make_plan(self._kernels, self.signature, rows, length, packed, sizes, self._live, reach)
        return plan, packed

    def _check_layout(self, rows: int, cols: int, metadata: Mapping[str, Any]) -> None:
        """Lengths fit the layout, and the tables of a shard have an entry for every token of all shards."""
        shared = [order.table for order in self._orders.values()]
        if rows != cols and len(shared) == 2 and shared[0] is not None and shared[0] == shared[1]:
            raise MetadataError(
                f"mask {self.name!r}, cols: expected as many as rows, {rows}, since {shared[0]!r} orders both; "
                f"got {cols}; give rows and cols a layout each, with a table of its own"
            )
        for axis, length in (("rows", rows), ("cols", cols)):
            if (order := self._orders.get(axis)) is None:
                continue
            if wrong := order.misfit(length):
                raise MetadataError(
                    f"mask {self.name!r}, {axis}: expected {wrong}, for the layout {order.text}; got {length}"
                )
            tables = [p.name for p in self._surface.parameters if p.kind == {"rows": "row", "cols": "col"}[axis]]
            entries = {name: length * order.share for name in tables} if order.share > 1 else {}
            if order.table is not None:
                entries[order.table] = length
            for name, count in entries.items():
                value: Any = metadata.get(name)
                given = (
                    value.shape[-1]
                    if getattr(value, "shape", ())
                    else len(value)
                    if hasattr(value, "__len__")
                    else count
                )
                if given != count:
                    raise MetadataError(
                        f"mask {self.name!r}, argument {name!r}: expected {count} entries, one for each token, for the "
                        f"layout {order.text}; got {given}"
                    )

    def _require_one_sequence(self) -> None:
        """Refuses a mask that has no packed form."""
        if self._spec.is_packed:
            raise CmirError(f"mask {self.name!r} is packed already")
        if self._orders:
            raise CmirError(
                f"mask {self.name!r} has a layout, the order of one sequence's tokens; pack the mask without it"
            )

    def _packed_lengths(self, rows: Any, cols: Any, cu_seqlens: Any, cu_seqlens_k: Any) -> tuple[Any, Any]:
        """Rows and columns of a pack, where `cols` must be given if they are cut differently."""
        if cu_seqlens is None:
            raise MetadataError(f"mask {self.name!r}: cu_seqlens_k and max_seqlen go with cu_seqlens; it was not given")
        if cu_seqlens_k is not None and cols is None:
            raise MetadataError(f"mask {self.name!r}: cu_seqlens_k needs cols, the length of k with its padding")
        self._require_one_sequence()
        return _whole(rows), _whole(rows if cols is None else cols)

    @functools.cached_property
    def _kernels(self) -> ModuleType:
        """The generated module, imported."""
        from cmir.runtime.hopper import offer
        from cmir.runtime.loader import load

        module = load(self._triton)
        offer(module, lambda: self.source("gluon"))
        return module

    @functools.cached_property
    def _live(self) -> tuple[bool, bool]:
        """Whether kernels of the row schedule and of the column schedule test live slots only."""
        rows, cols = self.signature.row_slots, self.signature.col_slots
        counts = {"rows": rows, "cols": cols, "bits": 0}
        tests = self._tests.tests
        if self.signature.bits:
            return False, False
        row = {tests["forward"], word_axis("forward", rows, cols)}
        col = {tests["dkv"], word_axis("backward", rows, cols)}
        row_live, col_live = (any(needs_live_test(counts[axis] or 0) for axis in axes) for axes in (row, col))
        return row_live, col_live

    def _check_host_facts(self, numbers: Mapping[str, Any]) -> None:
        """Scalar facts whose names are all ints are decided here, at once; the rest on the device."""
        ints = {n: v for n, v in numbers.items() if type(v) is int}
        broken = self._broken_scalar_fact(tuple(sorted(ints.items())))
        if broken is not None:
            words = ", ".join(f"{k}={v}" for k, v in ints.items())
            raise MetadataError(f"mask {self.name!r}: the metadata break the fact '{broken}': {words}")

    @functools.lru_cache(maxsize=1024)  # noqa: B019  masks live as long as the process
    def _broken_scalar_fact(self, ints: tuple[tuple[str, int], ...]) -> str | None:
        from cmir.dialects.expr import free_names
        from cmir.interp.domain import NumpyDomain
        from cmir.interp.evaluate import evaluate

        env: dict[str, Value] = dict(ints)
        domain = NumpyDomain()
        for fact in self.checked.facts:
            if (
                fact.over is None
                and free_names(fact.condition) <= env.keys()
                and not evaluate(fact.condition, env, domain)
            ):
                return fact.text
        return None

    def _environment(self, rows: int, cols: int | None, metadata: Mapping[str, Any]) -> dict[str, Value]:
        """Metadata for the NumPy interpreter, checked."""
        from cmir.runtime.host_metadata import environment

        if self._orders:
            self._check_layout(rows, rows if cols is None else cols, metadata)
        return environment(self.checked, rows, rows if cols is None else cols, metadata)
