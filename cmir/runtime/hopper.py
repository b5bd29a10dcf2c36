"""Attention on Hopper GPUs: when the Gluon kernels are used, and how the forward one is launched.

`CMIR_BACKEND` and the argument `backend` of `cmir.attention` say which kernels run: `triton` the portable ones, `gluon`
those of Hopper or an error that says why not. Left out, the Hopper kernels run wherever they can.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import torch

from cmir.errors import CmirError
from cmir.lowering.visibility import needs_live_test
from cmir.lowering.words import word_axis
from cmir.runtime.hopper_dims import Forward, forward_dims
from cmir.runtime.launch import current_stream, interpreting
from cmir.runtime.launcher import Blocks, Form, Launcher
from cmir.runtime.tensors import like

if TYPE_CHECKING:
    from cmir.dialects.attention import WordRole
    from cmir.runtime.descriptor import Descriptor

Backend = Literal["triton", "gluon"]
BACKENDS = ("triton", "gluon")

TILE = 128

L2_BYTES = 32 * 2**20
"""Of keys and values that are worked on at a time: what a Hopper GPU's L2 cache, 50 MB, holds beside all else."""

_sources: dict[str, Callable[[], str]] = {}
"""By the name of a Triton module, which says its content."""


def offer(module: ModuleType, source: Callable[[], str]) -> None:
    """Says how to get the Gluon source that goes with a Triton module, whose descriptors it reads."""
    _sources[module.__name__] = source


@functools.cache
def kernels(module: ModuleType) -> ModuleType:
    """The Gluon module that goes with a Triton module, generated and loaded when it is first used."""
    from cmir.runtime.loader import load

    return load(_sources[module.__name__]())


def choose(backend: str | None, q: torch.Tensor, v: torch.Tensor, desc: Descriptor) -> Backend:
    """Which kernels run on checked tensors. Raises CmirError where `backend`, or CMIR_BACKEND, asks for
    the impossible."""
    asked = backend or os.environ.get("CMIR_BACKEND") or None
    if asked is None or asked == "gluon":
        dims = (q.shape[3], v.shape[3])
        why_not = _why_not(q.device, q.dtype, dims, desc.tile) or (
            None
            if getattr(desc.module, "__name__", "") in _sources
            else "the descriptor's mask was not compiled by cmir.compile"
        )
        if why_not is None:
            return "gluon"
        if asked == "gluon":
            raise CmirError(f"backend 'gluon': {why_not}; leave the backend out, or ask for 'triton'")
    elif asked != "triton":
        where = "backend" if backend else "CMIR_BACKEND"
        raise CmirError(f"{where}: expected {' or '.join(BACKENDS)}, got {asked!r}")
    return "triton"


@functools.cache
def _why_not(device: torch.device, dtype: torch.dtype, dims: tuple[int, int], tile: tuple[int, int]) -> str | None:
    """Why the Hopper kernels cannot run, None if they can."""
    if interpreting() or device.type != "cuda":
        return f"its kernels need a Hopper GPU, got {device}"
    if torch.cuda.get_device_capability(device) != (9, 0):
        return f"its kernels need a Hopper GPU, got {torch.cuda.get_device_name(device)}"
    if importlib.util.find_spec("triton.experimental.gluon") is None:
        return "the installed triton has no Gluon"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"its kernels take bfloat16 and float16, got {str(dtype).removeprefix('torch.')}"
    if forward_dims(*dims) is None:
        return f"its kernels take head dims from 48 to 256, got {dims[0]} and {dims[1]}"
    if tile != (TILE, TILE):
        return f"its kernels take tiles of {TILE} x {TILE}, the descriptor has {tile[0]} x {tile[1]}"
    return None


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether TMA can read a tensor: an aligned address, a unit last stride, the others of multiples of 16 bytes."""
    strides = tensor.stride()
    return (
        tensor.data_ptr() % 16 == 0
        and strides[3] == 1
        and all(n == 1 or (s > 0 and s % 8 == 0) for n, s in zip(tensor.shape[:3], strides[:3], strict=True))
    )


def tested(desc: Descriptor, kernel: WordRole) -> tuple[torch.Tensor, int, int, bool]:
    """What a kernel makes its words of: (table or bits, their int32 for one mask, the positions of the table or the
    words of a row of bits, whether words are of live slots)."""
    signature = desc.signature
    if signature.bits:
        bits = cast("torch.Tensor", desc.bits)
        return bits, bits.stride(0), bits.shape[2], False
    axis = word_axis(kernel, signature.row_slots, signature.col_slots)
    slots = (signature.row_slots if axis == "rows" else signature.col_slots) or 0
    positions = desc.rows if axis == "rows" else desc.cols
    return desc.view(f"{axis[:-1]}_table"), 2 * slots * positions, positions, needs_live_test(slots)


_drawn: dict[tuple[torch.device, int], torch.Tensor] = {}


def counter(device: torch.device) -> torch.Tensor:
    """A zero on `device`, for one launch on the current stream, which leaves it zero.

    Launches on one stream follow one another and share it. A graph may be replayed on any stream, beside any other: a
    launch that is captured has one of its own.
    """
    if torch.cuda.is_current_stream_capturing():
        return torch.zeros(1, dtype=torch.int32, device=device)
    stream = current_stream(device)
    found = _drawn.get((device, stream))
    if found is None:
        found = _drawn[device, stream] = torch.zeros(1, dtype=torch.int32, device=device)
    return found


@functools.cache
def programs(device: torch.device) -> int:
    """Programs that run at once: one a multiprocessor, whose shared memory it fills."""
    cuda: Any = torch.cuda
    return cuda.get_device_properties(device).multi_processor_count


def contiguous(shape: torch.Size) -> tuple[int, ...]:
    """The strides of a contiguous [B, H, L, D]."""
    return shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1


def blocks_of(shape: torch.Size, strides: tuple[int, ...], dtype: torch.dtype, rows: int, width: int) -> Blocks:
    """Blocks [1, 1, rows, width] of a tensor of 16-bit elements; past the head dim there are zeros."""
    return Blocks(Form(tuple(shape), strides, dtype, (1, 1, rows, width), min(128, 2 * width)))


class ForwardConstants(NamedTuple):
    """The compile-time constants of the forward kernel, in the order of its parameters."""

    live: bool
    stages: int
    pieces: int
    out_in_q: bool


def forward_constants(dims: Forward, live: bool) -> ForwardConstants:
    """Those of head dims, and of words of live slots or not."""
    return ForwardConstants(live, dims.stages, dims.pieces, dims.out_in_q)


class ForwardPlan:
    """All about a launch of the forward kernel but addresses and the scale, for one form of q, k, v and descriptor.

    `section` and constants by name are for whoever tunes the kernel."""

    def __init__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, section: int | None = None,
        **constants: int,
    ) -> None:  # fmt: skip
        batch, heads, rows, dim = q.shape
        group, value_dim = heads // k.shape[1], v.shape[3]
        dims = forward_dims(dim, value_dim)
        assert dims is not None, "what `choose` says"
        table, stride, positions, live = tested(desc, "forward")
        work = -(-rows // TILE) * batch * heads
        section = section or group * max(1, L2_BYTES // (k.shape[2] * (dim + value_dim) * k.element_size()))
        self.copied = tuple(not is_readable(tensor) for tensor in (q, k, v))
        self.copies = any(self.copied)
        out = like(q, value_dim)
        self.out_shape, self.out_stride = out.shape, out.stride()
        self.lse_shape = (batch, heads, rows)
        tensors = (table, desc.row_count, desc.row_index, desc.row_live, desc.row_order)
        self.offsets = tuple(tensor.data_ptr() - desc.memory.data_ptr() for tensor in tensors)
        blocks = [
            blocks_of(x.shape, contiguous(x.shape) if copied else x.stride(), q.dtype, length, width)
            for x, copied, length, width in zip(
                (q, k, v, out),
                (*self.copied, False),
                (64, dims.step, dims.step, 64),
                (dims.width, dims.width, dims.value_width, dims.value_width),
                strict=True,
            )
        ]
        numbers = (
            stride, positions, desc.widths[0],
            rows, batch * heads, heads, group, *desc.mask_strides, min(section, batch * heads),
        )  # fmt: skip
        self.forward = Launcher(
            kernels(desc.module).forward,
            (min(programs(q.device), work), 1, 1),
            (*blocks, torch.float32, *[torch.int32] * 6, *numbers, float),
            forward_constants(dims, live)._replace(**constants),
            q.device,
        )

    def launch(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(out, lse); `scale` includes log2(e)."""
        device = q.device
        out = torch.empty_strided(self.out_shape, self.out_stride, dtype=q.dtype, device=device)
        lse = torch.empty(self.lse_shape, dtype=torch.float32, device=device)
        if self.copies:
            q, k, v = (copy(x) if copied else x for x, copied in zip((q, k, v), self.copied, strict=True))
        drawn = counter(device)
        memory = desc.memory.data_ptr()
        self.forward(
            q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr(), drawn.data_ptr(),
            *[memory + offset for offset in self.offsets],
            scale,
        )  # fmt: skip
        return out, lse


def copy(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy, whose address TMA takes."""
    return tensor.clone(memory_format=torch.contiguous_format)


_plans: dict[tuple[object, ...], ForwardPlan] = {}
MAX_PLANS = 1024


def launch_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of checked, `usable` arguments; `scale` includes log2(e)."""
    key = (
        desc.module, desc.layout, desc.mask_strides, q.dtype, q.device,
        q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride(),
        q.data_ptr() % 16, k.data_ptr() % 16, v.data_ptr() % 16,
    )  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        plan = _plans[key] = ForwardPlan(q, k, v, desc)
    return plan.launch(q, k, v, desc, scale)
