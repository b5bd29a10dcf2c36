"""The call side of a mask: arguments of `describe` in, a launch of its preprocess kernel, a `Descriptor` out.

The form of the arguments (lengths, dtypes, shapes) decides all checks but those of values, and the buffers and the
launch: a `Plan`, made once for each form.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from cmir.analysis.facts import facts_of
from cmir.errors import MetadataError, SourceLocation, locate, missing_torch
from cmir.lowering.visibility import needs_live_test
from cmir.lowering.words import word_axis
from cmir.passes.pack import ADDED

if TYPE_CHECKING:
    import torch

    from cmir.runtime.checks import HostChecks
    from cmir.runtime.descriptor import Descriptor, Plan
    from cmir.runtime.layout import Tokens
    from cmir.runtime.mask import CompiledMask
    from cmir.runtime.metadata import PackedMetadata
    from cmir.runtime.packed import Longest

CHECK = "CMIR_CHECK"
"""The variable of the environment that, set to 1, makes `describe` check at once: it then waits for the device."""

MAX_PLANS = 256
"""Forms of arguments of `describe` that a mask remembers."""


def whole(value: Any) -> Any:
    """An integer of NumPy as an int; anything else, and a bool, as it is, for others to check."""
    if type(value) is int or hasattr(value, "data_ptr"):  # a tensor: a look at the abstract class is slow
        return value
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def in_integers(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with booleans as 0 and 1, converted where they are, and integers of NumPy as ints."""
    return {name: value if type(value) is int else _in_integers(value) for name, value in metadata.items()}


def _in_integers(value: Any) -> Any:
    if hasattr(value, "data_ptr"):
        import torch

        return value.to(torch.int32) if value.dtype is torch.bool else value
    if isinstance(value, tuple) and value:  # the entries of the sequences of a pack, and where those of each begin
        entries, *ends = cast("tuple[Any, ...]", value)
        return (_in_integers(entries), *ends)
    is_boolean = type(cast("object", value)).__name__ in ("bool", "bool_")  # of NumPy too
    return int(cast("int", value)) if is_boolean else whole(value)


class Describer:
    """What describes batches of one mask.

    Args:
        mask: the mask; of a pack, the packed form.
        checks: what is checked on the host.
        kernels: gives the generated module, imported.
    """

    def __init__(self, mask: CompiledMask, checks: HostChecks, kernels: Callable[[], ModuleType]) -> None:
        self._mask = mask
        self._checks = checks
        self._kernels = kernels
        self.plans: dict[object, Plan] = {}
        self._tokens: dict[object, Tokens] = {}

    def __call__(
        self,
        rows: int,
        cols: int | None,
        device: torch.device | str | None,
        tile: Sequence[int] | None,
        metadata: Mapping[str, Any],
        longest: Longest | None,
    ) -> Descriptor:
        """`describe`; of a packed mask, `longest` says what is promised about its sequences."""
        # The form of the arguments decides all checks but those of values: they are made once for each form.
        form = self._form_of_call(rows, cols, device, tile, metadata)
        if form is not None:
            form = (longest, *form)
        plan = self.plans.get(form)
        if plan is None:
            plan, taken = self._plan(rows, cols, device, tile, metadata, longest)
            as_given = all(
                taken.arguments[place] is metadata[parameter.name]
                for parameter, place in zip(self._mask.signature.parameters, taken.places, strict=True)
            )
            if form is not None and as_given:  # nothing had to be copied
                if len(self.plans) >= MAX_PLANS:
                    self.plans.pop(next(iter(self.plans)))
                self.plans[form] = plan
            return self._finished(plan.build(taken.arguments), metadata)
        if int in map(type, metadata.values()):  # else the facts were decided with the form
            self._checks.facts({"rows": plan.rows, "cols": plan.cols, **metadata})
        return self._finished(plan.build_from(metadata), metadata)

    @functools.cached_property
    def _form_of_call(self) -> Callable[..., tuple[object, ...] | None]:
        try:
            from cmir.runtime import descriptor
        except ModuleNotFoundError as error:
            raise missing_torch(error, "describe") from error
        return descriptor.form_of_call

    def _finished(self, desc: Descriptor, metadata: Mapping[str, Any]) -> Descriptor:
        """The descriptor, with what it was made of, and with the permutation of its layout if there is one."""
        desc.explain = functools.partial(self._explain, metadata)
        if self._checks.orders:
            desc.tokens = self._tokens_of(desc, metadata)
        if os.environ.get(CHECK) == "1":
            from cmir.runtime.launch import is_capturing

            if not is_capturing(desc.device):
                desc.check()
        return desc

    def _tokens_of(self, desc: Descriptor, metadata: Mapping[str, Any]) -> Tokens:
        """The permutation of the mask's layout: that of the same lengths again, where no metadata say it."""
        from cmir.runtime.launch import is_capturing
        from cmir.runtime.layout import tokens_of

        orders, place = self._checks.orders, (desc.rows, desc.cols, desc.device)
        if (kept := self._tokens.get(place)) is not None:
            return kept
        found = tokens_of(self._mask.name, orders, desc.rows, desc.cols, metadata, desc.device)
        # What is computed while a graph is captured is not there before the graph runs.
        if all(order.table is None for order in orders.values()) and not is_capturing(desc.device):
            if len(self._tokens) >= MAX_PLANS:
                self._tokens.clear()
            self._tokens[place] = found
        return found

    def _explain(self, metadata: Mapping[str, Any], desc: Descriptor, number: int, index: int, mask: int) -> str:
        """What a descriptor of these metadata has at the place of a broken fact."""
        from cmir.runtime.broken import Origin

        lengths = desc.rows, desc.cols
        origin = Origin(self._mask.checked, metadata, desc.batch, lengths, self._declared, self._user_names)
        return origin.explain(number, index, mask)

    @functools.cached_property
    def _declared(self) -> dict[str, SourceLocation]:
        """Where each fact was declared, by its text."""
        facts = facts_of(self._mask.surface).spelled(self._mask.words).facts
        places = ((fact.text, locate(fact.source)) for fact in facts)
        return {text: place for text, place in places if place is not None}

    @functools.cached_property
    def _user_names(self) -> dict[str, str]:
        """Of a packed mask, what the user calls the metadata that packing added."""
        if not self._mask.is_packed:
            return {}
        own = {p.name for p in self._mask.surface.parameters}
        added = [p.name for p in self._mask.facts.parameters if p.name not in own]
        names = dict(zip(added[-ADDED:], ("cu_seqlens", "cu_seqlens_k", "max_seqlen"), strict=True))
        return {name: names.get(name, name) for name in added}

    def _plan(
        self,
        rows: int,
        cols: int | None,
        device: torch.device | str | None,
        tile: Sequence[int] | None,
        metadata: Mapping[str, Any],
        longest: Longest | None,
    ) -> tuple[Plan, PackedMetadata]:
        """The launch for such arguments, and the metadata as it takes them; all checked."""
        from cmir.runtime import descriptor
        from cmir.runtime.launch import default_device
        from cmir.runtime.metadata import pack

        rows, length = whole(rows), whole(rows if cols is None else cols)
        if type(rows) is int and type(length) is int and min(rows, length) >= 0:
            if self._checks.orders:
                self._checks.layout(rows, length, metadata)
            self._checks.facts({"rows": rows, "cols": length, **metadata})
        if tile is None:
            devices = [v.device for v in metadata.values() if hasattr(v, "device")]
            where = str(devices[0] if devices else device or default_device())
            tile = (32, 32) if where.startswith("cpu") else (128, 128)
        elif not hasattr(tile, "__len__") or len(tile) != 2:
            raise MetadataError(
                f"mask {self._mask.name!r}, argument 'tile': expected two ints, (rows, columns); got {tile!r}"
            )
        packed = pack(self._mask.signature, rows, length, metadata, device)
        sizes = (tile[0], tile[1])
        reach = (None, None) if longest is None else longest.reach(sizes)
        plan = descriptor.make_plan(
            self._kernels(), self._mask.signature, rows, length, packed, sizes, self._live, reach
        )
        return plan, packed

    @functools.cached_property
    def _live(self) -> tuple[bool, bool]:
        """Whether kernels of the row schedule and of the column schedule test live slots only."""
        rows, cols = self._mask.signature.row_slots, self._mask.signature.col_slots
        counts = {"rows": rows, "cols": cols, "bits": 0}
        tests = self._mask.tests
        if self._mask.signature.bits:
            return False, False
        row = {tests["forward"], word_axis("forward", rows, cols)}
        col = {tests["dkv"], word_axis("backward", rows, cols)}
        row_live, col_live = (any(needs_live_test(counts[axis] or 0) for axis in axes) for axes in (row, col))
        return row_live, col_live
