"""One kernel on one grid: launches in which only addresses and scales change. Of the runtime, on a Hopper GPU.

The first launch is Triton's, which compiles; later ones go to the driver directly (`cmir.runtime.driver`) where that
is possible. TMA descriptors of tensors are made once an address, which comes back: memory is allocated anew for each
batch, but where it was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import torch

from cmir.runtime.driver import MOVES, Direct, direct_of, packed_map
from cmir.runtime.launch import current_stream

_KINDS = {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}
"""CUtensorMapDataType."""

MAX_BLOCKS = 1024
"""Addresses of one tensor of a plan that are remembered."""


class Form(NamedTuple):
    """A tensor but for its address, and the block of it that TMA moves."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    block: tuple[int, ...]
    swizzle: int
    """Bytes of the pattern in which shared memory has a block's lines."""


class Address:
    """An address that Triton takes for a tensor."""

    def __init__(self, address: int, dtype: torch.dtype) -> None:
        self.address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self.address


class Blocks:
    """TMA descriptors of one form, remembered by the address of the tensor: as Triton takes them, and packed."""

    def __init__(self, form: Form) -> None:
        # Where there is one of something, its stride is never used, and need not be one that TMA takes.
        self.strides = [s if n > 1 else 16 for n, s in zip(form.shape[:-1], form.strides[:-1], strict=True)] + [1]
        self.form = form
        self.meta: Any = None
        """What Triton says of the kernel's descriptor: what one instruction moves."""
        self._made: dict[int, Any] = {}
        self._packed: dict[int, bytes | None] = {}

    def at(self, address: int) -> Any:
        """The TensorDescriptor of the tensor at an address."""
        return self._made[address] if address in self._made else remembered(self._made, address, self._make(address))

    def packed(self, address: int) -> bytes | None:
        """The same, as `cmir.runtime.driver` takes it; None if the driver refuses it. Once `meta` is there."""
        if address in self._packed:
            return self._packed[address]
        return remembered(self._packed, address, self._pack(address))

    def _make(self, address: int) -> Any:
        gl: Any = import_module("triton.experimental.gluon.language")
        host: Any = import_module("triton.experimental.gluon.nvidia.hopper")
        form = self.form
        layout = gl.NVMMASharedLayout(form.swizzle, 8 * form.dtype.itemsize, len(form.shape))
        base = Address(address, form.dtype)
        return host.TensorDescriptor(base, list(form.shape), self.strides, list(form.block), layout)

    def _pack(self, address: int) -> bytes | None:
        form, meta = self.form, self.meta
        kind, itemsize = _KINDS[form.dtype], form.dtype.itemsize
        return packed_map(address, kind, form.shape, self.strides, itemsize, meta["block_size"], meta["swizzle"])


def remembered(made: dict[int, Any], address: int, new: Any) -> Any:
    """`new`, which `made` has at an address from now on."""
    if len(made) >= MAX_BLOCKS:
        made.clear()
    made[address] = new
    return new


class Launcher:
    """Launches one kernel.

    Args:
        kernel: the jit function.
        grid: its grid.
        arguments: of each argument of the kernel but its constants, first `Blocks` (a TMA descriptor; launches give
            the tensor's address), then a torch dtype (a pointer to it; launches give the address, a multiple of 16
            bytes), the type float (launches give a number), or a number, which is that of every launch.
        constants: the compile-time constants, last.
        device: of all tensors; current in every call.
    """

    def __init__(
        self,
        kernel: Any,
        grid: tuple[int, int, int],
        arguments: Sequence[object],
        constants: Sequence[object],
        device: torch.device,
    ) -> None:
        self.kernel, self.grid, self.arguments, self.constants = kernel, grid, arguments, constants
        self.device = device
        self.blocks = [argument for argument in arguments if isinstance(argument, Blocks)]
        self.fixed = [MOVES if isinstance(x, Blocks | torch.dtype) or x is float else x for x in arguments]
        self._compiled: Any = None
        self._direct: Direct | None = None

    def __call__(self, *moving: int | float) -> None:
        """Launches on the current stream with the addresses and numbers that move, in order."""
        if self._direct is not None:
            count = len(self.blocks)
            packed = [blocks.packed(place) for blocks, place in zip(self.blocks, moving[:count], strict=True)]  # pyright: ignore[reportArgumentType]
            if None not in packed and self._direct(self.grid, current_stream(self.device), [*packed, *moving[count:]]):
                return
        self._by_triton(moving)

    def given(self, moving: Sequence[int | float]) -> list[Any]:
        """The arguments as Triton takes them. It compiles for aligned pointers and the numbers that do not move, so all
        launches are alike."""
        left = iter(moving)
        every: list[Any] = []
        for argument in self.arguments:
            if isinstance(argument, Blocks):
                every.append(argument.at(int(next(left))))
            elif isinstance(argument, torch.dtype):
                every.append(Address(int(next(left)), argument))
            else:
                every.append(next(left) if argument is float else argument)
        return every

    def _by_triton(self, moving: Sequence[int | float]) -> None:
        every = self.given(moving)
        if self._compiled is not None:
            self._compiled[self.grid](*every, *self.constants)
            return
        self._compiled = compiled = self.kernel[self.grid](*every, *self.constants, num_warps=4)
        metas: list[Any] = getattr(compiled.metadata, "tensordesc_meta", None) or []
        if len(metas) != len(self.blocks) or None in metas:
            return
        for blocks, meta in zip(self.blocks, metas, strict=True):
            blocks.meta = meta
        self._direct = direct_of(compiled, self.fixed)
