"""A compiled mask: what can be looked at, described and attended with.

    mask = cmir.compile("hstu.mlir")
    desc = mask.describe(rows=n, cols=n, history=h, start=s)
    out = cmir.attention(q, k, v, desc)

The oracle (`dense`) runs the rule as it was written; everything else runs what the passes made of it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.reads import is_read, with_reads
from cmir.dialects.attention import KernelOp, TestsOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.errors import CmirError, MetadataError, Remark, as_python
from cmir.lowering.triton import lowered
from cmir.passes.choose_axis import PYTHON, TEXT, remarks_of
from cmir.runtime.checks import HostChecks
from cmir.runtime.describing import Describer, in_integers, whole
from cmir.runtime.modules import packed_from, text_of
from cmir.signature import Fact, Parameter, Signature
from cmir.sizes import Size, completed
from cmir.tools.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cmir.analysis.proof.decide import Outcome
    from cmir.interp.domain import Value
    from cmir.runtime.descriptor import Descriptor
    from cmir.runtime.flashmask import FlashMask
    from cmir.tools.explain_slots import Pair
    from cmir.view.cell import Explanation


class CompiledMask:
    """A mask after all passes. Made by `cmir.compile`; immutable."""

    def __init__(
        self,
        surface: ModuleOp,
        module: ModuleOp,
        triton: str,
        in_python: bool = False,
        sizes: Mapping[str, Size] | None = None,
    ) -> None:
        self._surface = next(op for op in surface.walk() if isinstance(op, SpecOp))
        self._module = module
        self._triton = triton
        self.in_python = in_python
        """Whether the spec was written in Python: remarks then say what to write there."""
        self.sizes: Mapping[str, Size] = sizes or {}
        """The metadata that are lengths of others, which need not be given."""
        self._spec = next(op for op in module.walk() if isinstance(op, SpecOp))
        self.facts: Facts = facts_of(self._spec).spelled(self.words)
        self.checked: Facts = with_reads(self.facts, self._spec).spelled(self.words)
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
            tuple(
                Fact(self.words(f.text.data), f.over.data, not is_read(f.text.data))  # pyright: ignore[reportArgumentType]
                for f in self._preprocess.facts
            ),
            (tests["forward"], tests["dq"], tests["dkv"]),
            self._preprocess.symmetric is not None,
        )
        self._checks = HostChecks(self._surface, self.checked)
        self._describer = Describer(self, self._checks, lambda: self._kernels)
        self.proofs: list[tuple[str, Outcome]] = []
        """(pass, what became of its proof) for every pass, where the mask was compiled with `prove=`."""

    def __repr__(self) -> str:
        return f"CompiledMask({self.name!r}, slots={self.slots})"

    def words(self, text: str) -> str:
        """A text about the spec in the words of its language."""
        return as_python(text) if self.in_python else text

    @property
    def surface(self) -> SpecOp:
        """The spec as it was written. Not to be changed."""
        return self._surface

    @property
    def module(self) -> ModuleOp:
        """The module after all passes. Not to be changed."""
        return self._module

    @property
    def is_packed(self) -> bool:
        """Whether this is the packed form of another mask."""
        return self._spec.is_packed

    @functools.cached_property
    def packed(self) -> CompiledMask:
        """The mask of many sequences in one row of tokens, as `--pack` derives it; compiled when it is first used.

        `describe(cu_seqlens=...)` describes it. Its own metadata are those of the packed form: `cu_rows`, `cu_cols` and
        `longest` beside the mask's own, whose scalars are tables with one entry per sequence.
        """
        self._require_one_sequence()
        tables = [op for op in self._module.ops if isinstance(op, SpecOp | TableOp | TestsOp)]
        return CompiledMask(ModuleOp([self._surface.clone()]), *packed_from(self.ir, tables), self.in_python)

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
        remarks = remarks_of(self._spec, tables, self._tests, self._surface, words)
        return [self._said(remark) for remark in remarks]

    def _said(self, remark: Remark) -> str:
        return (remark.in_python() if self.in_python else remark).render()

    @functools.cached_property
    def warnings(self) -> list[str]:
        """What the spec says and can hardly mean, with its place: parts of rules that change nothing, Regions that are
        always empty, metadata that nothing depends on, facts that always hold. Each is proved, as by `cm-opt --lint`,
        when this is first read; compiling does not wait for it."""
        from cmir.analysis.lint import warnings_of

        return [self._said(warning) for warning in warnings_of(self._surface)]

    def explain_slots(self) -> list[Pair]:
        """Why pairs of intervals are one slot, or are not; each prints as a line of `cm-opt --explain-slots`."""
        from cmir.tools.explain_slots import pairs

        return [pair.spelled(self.words) for pair in pairs(ModuleOp([self._surface.clone()]))]

    @property
    def ir(self) -> str:
        """The module after all passes, as text."""
        return text_of(self._module)

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

        metadata = completed(self.name, self.sizes, metadata)
        if cu_seqlens is not None or cu_seqlens_k is not None:
            from cmir.runtime import packed

            length = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            return packed.dense(self, *length, cu_seqlens, cu_seqlens_k, metadata)
        if self.is_packed:
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

        metadata = completed(self.name, self.sizes, metadata)
        if axis not in self._tables:
            raise CmirError(f"axis: expected 'rows' or 'cols', got {axis!r}")
        span = self._tables[axis].residual_span
        if span is not None and span.residual is not None and span.reason is not None:
            literal, reason = self.words(str(span.residual.data)), self.words(span.reason.data)
            raise CmirError(
                f"mask {self.name!r} is unbounded by {axis}: '{literal}' bounds no interval, since {reason}"
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

        metadata = completed(self.name, self.sizes, metadata)
        if cu_seqlens is not None or cu_seqlens_k is not None:
            from cmir.runtime import packed

            length = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            return packed.explain(self, i, j, *length, cu_seqlens, cu_seqlens_k, metadata).spelled(self.words)
        if self.is_packed:
            raise CmirError(
                f"mask {self.name!r} is packed: give cu_seqlens to the explain of the mask it was made from"
            )
        scene = Scene(self._surface, self._module, self._environment(rows, cols, metadata))
        return explain(scene, i, j).spelled(self.words)

    def view(
        self,
        path: str | Path,
        /,
        *,
        rows: int | None = None,
        cols: int | None = None,
        cu_seqlens: Any = None,
        cu_seqlens_k: Any = None,
        sequence: int | None = None,
        tile: tuple[int, int] | None = None,
        **metadata: Any,
    ) -> None:
        """Write a page (.html) or a picture (.png, .svg) of what the mask shows; `cm-view` on a compiled mask.

        Args:
            path: the file; its name says the format. Pictures need matplotlib (`pip install 'cmir[view]'`).
            rows, cols: the lengths; drawn if both are left out, of a pack those of its sequences.
            cu_seqlens, cu_seqlens_k: many sequences in one row of tokens, as of `dense`: a picture shows all in their
                places.
            sequence: of a pack the one to show, alone; a page shows one.
            tile: rows and columns of a tile; by default what suits the size.
            metadata: as of `dense`; what is left out is drawn so that the facts hold, but of a pack all are given.

        Raises:
            CmirError: an unknown format, too many pairs for it, or a file that cannot be written.
            MetadataError: as of `dense`, or no draw satisfies the facts.
        """
        from cmir.view.load import lower_spec
        from cmir.view.output import format_of, write

        if self.is_packed:
            raise CmirError(f"mask {self.name!r} is packed: give cu_seqlens to the view of the mask it was made from")
        kind = format_of(str(path))
        lowered = lower_spec(self._surface, kernels=kind == "html", in_python=self.in_python)
        metadata = completed(self.name, self.sizes, metadata)
        if cu_seqlens is None:
            if cu_seqlens_k is not None or sequence is not None:
                raise MetadataError(f"mask {self.name!r}: cu_seqlens_k and sequence go with cu_seqlens, not given here")
            scene = lowered.scene(lowered.metadata(rows, cols, metadata))
        else:
            self._require_one_sequence()
            scene = lowered.pack(rows, cols, cu_seqlens, cu_seqlens_k, metadata, sequence)
        write(scene, lowered, str(path), tile)

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
                head), booleans for 0 and 1; tables as int32/int64 tensors [length], [B, length] or [B, H, length], with
                one more dimension at the end where an entry holds several integers. Without batch dimensions a
                metadatum is shared; a mask whose metadata are all shared is stored once. With `cu_seqlens` a scalar is
                an int for all sequences or a tensor [S] of one for each, a table per row (column) has the entries of
                the sequences one after another, [rows] ([cols]), and a free table is that of all sequences, or a pair:
                the entries of the sequences one after another [n], and an int tensor [S + 1] of where those of each
                begin.

        Raises:
            MetadataError: an argument is missing, unknown, or of the wrong length, dtype or device; a fact about ints
                is broken. Facts about tensors are checked on the device: see `Descriptor.check`, which is called here
                if CMIR_CHECK=1 in the environment says so (but not while a CUDA graph is captured, which cannot wait).
        """
        if self.sizes:
            metadata = completed(self.name, self.sizes, metadata)
        metadata = in_integers(metadata)
        if cu_seqlens is not None or cu_seqlens_k is not None or max_seqlen is not None:
            from cmir.runtime import packed

            lengths = self._packed_lengths(rows, cols, cu_seqlens, cu_seqlens_k)
            self._checks.facts(metadata)
            values = packed.metadata(self, cu_seqlens, cu_seqlens_k, whole(max_seqlen), metadata)
            longest = None if max_seqlen is None else packed.Longest(whole(max_seqlen), cu_seqlens_k is None)
            return self.packed._describer(*lengths, device, tile, values, longest)
        return self._describer(rows, cols, device, tile, metadata, None)

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
        square = arguments.get("cu_seqlens_k") is None
        form = form_of(self._tables["cols"], self.facts, self.name, packed, square, self.words)
        return to_flashmask(self.describe(**arguments).check(), form)

    def _require_one_sequence(self) -> None:
        """Refuses a mask that has no packed form."""
        if self.is_packed:
            raise CmirError(f"mask {self.name!r} is packed already")
        if self._checks.orders:
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
        return whole(rows), whole(rows if cols is None else cols)

    @functools.cached_property
    def _kernels(self) -> ModuleType:
        """The generated module, imported."""
        from cmir.runtime.hopper import offer
        from cmir.runtime.loader import load

        module = load(self._triton)
        offer(module, lambda: self.source("gluon"))
        return module

    def _environment(self, rows: int, cols: int | None, metadata: Mapping[str, Any]) -> dict[str, Value]:
        """Metadata for the NumPy interpreter, checked."""
        from cmir.runtime.host_metadata import environment

        lengths = whole(rows), whole(rows if cols is None else cols)
        if self._checks.orders:
            self._checks.layout(*lengths, metadata)
        return environment(self.checked, *lengths, metadata)
