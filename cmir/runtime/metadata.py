"""Metadata as a user gives them, checked against the mask's signature and packed as kernel arguments.

A scalar is an int, or an int32/int64 tensor [], [B] or [B, H]. A table is an int32/int64 tensor [length], [B, length]
or [B, H, length], where length is `rows`, `cols` or, for a free table, any number from 1; where an entry holds K
integers, K is one more dimension at the end. B sequences and H heads are the batch; sizes must agree or be 1, and a
metadatum without a batch holds for all masks.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from cmir.errors import MetadataError, not_given
from cmir.runtime.launch import default_device
from cmir.signature import DESCRIBE_ARGUMENTS, Parameter, Signature

MAX_LENGTH = 2**30
"""Most rows or columns: positions, and sums of two of them, are int32 in the kernels."""

MAX_MASKS = 65535
"""Most masks in one descriptor: they are one dimension of the launch grid."""

_DTYPES = (torch.int32, torch.int64)
_INT32 = range(-(2**31), 2**31)
_LENGTH = {"row": "rows", "col": "cols", "free": "n"}


def _form(parameter: Parameter) -> str:
    """What a metadatum may be."""
    if parameter.kind == "scalar":
        return "an int, or an int32 or int64 tensor [], [B] or [B, H]"
    entry = _LENGTH[parameter.kind] + ("" if parameter.entries is None else f", {parameter.entries}")
    form = f"an int32 or int64 tensor [{entry}], [B, {entry}] or [B, H, {entry}]"
    return form + (" with n >= 1" if parameter.kind == "free" else "")


def _dimensions(parameter: Parameter) -> int:
    """Dimensions of one mask's metadatum: those after the batch."""
    return (parameter.kind != "scalar") + (parameter.entries is not None)


@dataclass(frozen=True, eq=False)
class PackedMetadata:
    """Kernel arguments in the order of the signature, and what the launch needs to know about them."""

    arguments: tuple[torch.Tensor | int | bool, ...]
    batch: tuple[int, ...]
    """(), (B,) or (B, H): the masks of the descriptor, mask number z = b * H + h."""
    device: torch.device
    entries: int
    """Length of the longest free table, 0 without one."""
    places: tuple[int, ...]
    """Where among the arguments each metadatum stands."""

    @property
    def masks(self) -> int:
        return _product(self.batch)


def pack(
    signature: Signature,
    rows: int,
    cols: int,
    metadata: Mapping[str, Any],
    device: torch.device | str | None = None,
) -> PackedMetadata:
    """Checks `rows`, `cols` and `metadata` against `signature`; raises MetadataError naming the argument at fault.

    Nothing is read back from the device: values are checked by the facts, in the preprocess kernel. Where all
    metadata are ints, `device` says where the descriptor goes (by default CUDA if there is one).
    """
    for name, value in (("rows", rows), ("cols", cols)):
        if type(value) is not int or not 0 <= value <= MAX_LENGTH:
            raise _error(signature, name, f"an int from 0 to {MAX_LENGTH}", value)
    _check_names(signature, metadata)
    lengths = {"row": rows, "col": cols}
    values = [_checked(signature, parameter, metadata[parameter.name], lengths) for parameter in signature.parameters]
    where = _device(signature, values, device)
    batch = _batch(signature, values)
    arguments: list[torch.Tensor | int | bool] = []
    places: list[int] = []
    entries = 0
    for parameter, value in zip(signature.parameters, values, strict=True):
        places.append(len(arguments))
        if isinstance(value, int):
            arguments += (value, 0, False)
        elif parameter.kind == "scalar":
            tensor, stride = _strided(value, batch, tail=0)
            arguments += (tensor, stride, True)
        else:
            # Hooks clamp positions into range, so that even an empty table is read at 0.
            tail = _dimensions(parameter)
            tensor, stride = _strided(value, batch, tail) if value.numel() else (value.new_empty(1), 0)
            arguments += (tensor, stride)
            if parameter.kind == "free":
                arguments.append(value.shape[-tail])
                entries = max(entries, value.shape[-tail])
    return PackedMetadata(tuple(arguments), batch, where, entries, tuple(places))


def form_of(metadata: Mapping[str, Any]) -> tuple[object, ...] | None:
    """All that `pack` looks at but the values of ints; None if there is a value that it may refuse by its type."""
    form: list[object] = []
    for name, value in metadata.items():
        if isinstance(value, torch.Tensor):
            form += (name, value.dtype, value.shape, value.stride(), value.device)
        elif type(value) is int and value in _INT32:
            form.append(name)
        else:
            return None
    return tuple(form)


def _check_names(signature: Signature, metadata: Mapping[str, Any]) -> None:
    known = [parameter.name for parameter in signature.parameters]
    takes = ", ".join(known) or "no metadata"
    for name in metadata:
        if name not in known:
            close = difflib.get_close_matches(name, [*known, *DESCRIBE_ARGUMENTS], n=1)
            hint = f", did you mean {close[0]!r}?" if close else "."
            raise MetadataError(f"mask {signature.name!r} has no metadatum {name!r}{hint} It takes {takes}")
    if missing := {p.name: _form(p) for p in signature.parameters if p.name not in metadata}:
        raise not_given(signature.name, missing)


def _checked(signature: Signature, parameter: Parameter, value: Any, lengths: Mapping[str, int]) -> torch.Tensor | int:
    """The value, if its type, dtype, number of dimensions and length are right for the parameter."""
    name, form = parameter.name, _form(parameter)
    if not isinstance(value, torch.Tensor):
        if parameter.kind == "scalar" and type(value) is int:
            if value not in _INT32:
                raise _error(signature, name, "an int within int32", value)
            return value
        raise _error(signature, name, form, value)
    tail = _dimensions(parameter)
    if value.dtype not in _DTYPES or not tail <= value.dim() <= tail + 2:
        raise _error(signature, name, form, value)
    if value.layout is not torch.strided:
        raise _error(signature, name, f"{form}, dense", value)
    if tail:
        length = value.shape[-tail]
        expected = lengths.get(parameter.kind)
        if parameter.entries is not None and value.shape[-1] != parameter.entries:
            raise _error(signature, name, f"{form}, that is {parameter.entries} integers in each entry", value)
        if expected is not None and length != expected:
            axis = "rows" if parameter.kind == "row" else "cols"
            raise _error(signature, name, f"{form}, that is one entry for each of the {expected} {axis}", value)
        if expected is None and not 1 <= length <= MAX_LENGTH:
            raise _error(signature, name, form, value)
    return value


def _device(signature: Signature, values: list[torch.Tensor | int], device: torch.device | str | None) -> torch.device:
    """The one device of all tensors, which `device` must name too if it is given."""
    try:
        wanted = None if device is None else torch.device(device)
    except (RuntimeError, TypeError):
        raise _error(signature, "device", "a torch.device or the name of one, 'cuda' or 'cpu'", device) from None
    found: torch.device | None = None
    source = "device="
    if wanted is not None and (wanted.type == "cpu" or cast("int | None", wanted.index) is not None):
        found = wanted
    for parameter, value in zip(signature.parameters, values, strict=True):
        if isinstance(value, int):
            continue
        agrees = value.device == found if found is not None else wanted is None or value.device.type == wanted.type
        if not agrees:
            raise _error(signature, parameter.name, f"a tensor on {found or wanted}, where {source} is", value)
        if found is None:
            found, source = value.device, f"{parameter.name!r}"
    if found is not None:
        return found
    if wanted is None:
        return default_device()
    return torch.device("cuda", torch.cuda.current_device()) if wanted.type == "cuda" else wanted


def _batch(signature: Signature, values: list[torch.Tensor | int]) -> tuple[int, ...]:
    """The batch shape that all metadata broadcast to: a missing dimension is a missing H, not a missing B."""
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for parameter, value in zip(signature.parameters, values, strict=True):
        if not isinstance(value, int):
            shape = tuple(value.shape[: value.dim() - _dimensions(parameter)])
            shapes.append((parameter.name, shape))
    batch = [1] * max((len(shape) for _, shape in shapes), default=0)
    owner = [""] * len(batch)
    for name, shape in shapes:
        for axis, size in enumerate(shape):
            if size == batch[axis] or size == 1:
                continue
            if batch[axis] != 1 or size == 0:
                what = ("sequences", "heads")[axis]
                expected = f"{batch[axis]} {what}, as {owner[axis]!r} has, or 1" if owner[axis] else f"1 or more {what}"
                raise MetadataError(f"mask {signature.name!r}, argument {name!r}: expected {expected}; got {size}")
            batch[axis], owner[axis] = size, name
    if _product(tuple(batch)) > MAX_MASKS:
        raise MetadataError(
            f"mask {signature.name!r}: at most {MAX_MASKS} masks fit one descriptor; got a batch of {tuple(batch)}"
        )
    return tuple(batch)


def _strided(value: torch.Tensor, batch: tuple[int, ...], tail: int) -> tuple[torch.Tensor, int]:
    """The tensor (a copy if need be) and one stride from a mask to the next; the last `tail` dimensions are dense."""
    lead = value.dim() - tail
    step = 1
    for axis in range(1, tail + 1):
        if value.shape[-axis] > 1 and value.stride(-axis) != step:
            value = value.contiguous()
            break
        step *= value.shape[-axis]
    if all(size == 1 for size in value.shape[:lead]):
        return value, 0
    if tuple(value.shape[:lead]) + (1,) * (len(batch) - lead) != batch:
        value = value.reshape(*value.shape[:lead], *[1] * (len(batch) - lead), *value.shape[lead:])
        value = value.expand(*batch, *value.shape[len(batch) :]).contiguous()
        lead = len(batch)
    # Dimensions of one mask aside, two batch dimensions are one if the outer steps over the whole inner.
    strides = [(value.stride(axis), value.shape[axis]) for axis in range(lead) if value.shape[axis] > 1]
    if len(strides) == 2 and strides[0][0] != strides[1][0] * strides[1][1]:
        value = value.contiguous()
        strides = [(value.stride(axis), value.shape[axis]) for axis in range(lead) if value.shape[axis] > 1]
    return value, strides[-1][0]


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _error(signature: Signature, name: str, expected: str, value: Any) -> MetadataError:
    hint = ""
    if isinstance(value, torch.Tensor):
        given = f"{str(value.dtype).removeprefix('torch.')} tensor {list(value.shape)} on {value.device}"
        if value.layout is not torch.strided:
            given = f"{str(value.layout).removeprefix('torch.')} {given}"
        if "tensor" in expected and value.dtype not in _DTYPES:
            unsigned = value.dtype in (torch.uint32, torch.uint64)
            hint = f"; write {name}.to(torch.{'int64' if unsigned else 'int32'})"
    elif type(value) is int:
        given = str(value)
    else:
        given = f"{value!r} of type {type(value).__name__}" if not hasattr(value, "shape") else type(value).__name__
        if "tensor" in expected:
            hint = f"; write torch.as_tensor({name}, dtype=torch.int32)"
    return MetadataError(f"mask {signature.name!r}, argument {name!r}: expected {expected}; got {given}{hint}")
