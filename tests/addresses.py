# pyright: basic
"""Every address that a kernel touches in Triton's interpreter, checked: an address sanitizer for tests.

    with addresses.checked() as memory:
        desc = mask.describe(...)
        cmir.attention(q, k, v, desc)
    memory.check_gaps(desc)

A load, store or atomic of an active lane must lie within the tensors that its launch was given: within their own
extent, not only within their allocation. A descriptor is one allocation: what lies between its tensors must never be
written, and the kernels that build it read nothing of it that was neither cleared nor stored. (Attention kernels fetch
the first entry of a list before they know that it has none; it lies within the list, and is not used.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class OutOfBounds(AssertionError):
    """A kernel touched memory that is none of its arguments'."""


class Memory:
    """What launches may touch, and which words of descriptors have been stored."""

    def __init__(self) -> None:
        self.begins, self.ends = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.written: dict[int, np.ndarray] = {}
        self.building = False
        self.touched = 0

    def allow(self, tensors: list[torch.Tensor]) -> None:
        """The extents of the tensors of a launch."""
        last = [(t, sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))) for t in tensors if t.numel()]
        extents = sorted((t.data_ptr(), t.data_ptr() + t.element_size() * (1 + at)) for t, at in last)
        self.begins = np.array([begin for begin, _ in extents], np.uint64)
        # An extent that lies within an earlier, longer one: addresses are looked up by the last that begins before.
        self.ends = np.maximum.accumulate(np.array([end for _, end in extents], np.uint64))

    def check(self, what: str, pointers: Any, mask: Any, size: int) -> None:
        """Raises OutOfBounds if an active lane's address is in no extent."""
        at = np.asarray(pointers, np.uint64)[np.asarray(mask, bool)]
        self.touched += at.size
        place = np.searchsorted(self.begins, at, side="right").astype(np.int64) - 1
        wrong = (place < 0) | (at + np.uint64(size) > self.ends[np.maximum(place, 0)])
        if wrong.any():
            bad = int(at[wrong][0])
            near = int(self.begins[max(int(place[wrong][0]), 0)])
            raise OutOfBounds(f"{what} of {size} bytes at {bad - near} of a tensor, {wrong.sum()} of {at.size} lanes")
        for base, words in self.written.items():
            index = (at - np.uint64(base)).astype(np.int64) // 4
            index = index[(at >= np.uint64(base)) & (index < len(words))]
            index = (index[:, None] + np.arange(max(1, size // 4))).reshape(-1)
            if what != "load":
                words[index] = True
            elif self.building and not words[index].all():
                raise OutOfBounds(f"load of word {int(index[~words[index]][0])} of a descriptor, which nothing stored")

    def track(self, memory: torch.Tensor, cleared: int) -> None:
        """Follow which words of a descriptor are stored; the first `cleared` are."""
        words = np.zeros(memory.numel(), bool)
        words[:cleared] = True
        self.written[memory.data_ptr()] = words

    def check_gaps(self, desc: Any) -> None:
        """Nothing was stored between the tensors of a descriptor."""
        words = self.written[desc.memory.data_ptr()].copy()
        for place in desc.layout.places.values():
            scale = 2 if place.wide else 1
            size = int(np.prod(place.shape)) * scale
            words[place.offset * scale : place.offset * scale + size] = False
        assert not words.any(), f"words {np.flatnonzero(words)[:9].tolist()} between tensors were stored"


@contextmanager
def checked() -> Iterator[Memory]:
    """Checks every address while it lasts. For the interpreter only."""
    from triton.runtime import interpreter

    from cmir.runtime import descriptor

    memory = Memory()
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas, convert = builder.create_atomic_rmw, builder.create_atomic_cas, executor._init_args_hst
    launch = descriptor.launch

    def width(pointer: Any) -> int:
        return max(1, pointer.get_element_ty().primitive_bitwidth // 8)

    def checked_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        memory.check("load", ptrs.data, mask.data, width(ptrs))
        return load(self, ptrs, mask, *rest)

    def checked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        memory.check("store", ptrs.data, mask.data, width(ptrs))
        return store(self, ptrs, value, mask, *rest)

    def checked_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        memory.check("atomic", ptr.data, mask.data, width(ptr))
        return rmw(self, op, ptr, val, mask, *rest)

    def checked_cas(self: Any, ptr: Any, *rest: Any) -> Any:
        memory.check("atomic", ptr.data, np.ones_like(ptr.data, bool), width(ptr))
        return cas(self, ptr, *rest)

    def with_extents(self: Any, args: Any, kwargs: Any) -> Any:
        memory.allow([a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)])
        return convert(self, args, kwargs)

    def tracked(kernel: Any, grid: Any, arguments: Any, *rest: Any) -> Any:
        if kernel.__name__ == "preprocess":
            masks = grid[1]
            rows, cols = arguments[1], arguments[2]
            tile_m, tile_n = rest[0]["TILE_M"], rest[0]["TILE_N"]
            counters = masks * (4 + -(-rows // tile_m) + 1 + -(-cols // tile_n) + 1)
            memory.track(arguments[0], counters)
        memory.building = True
        try:
            return launch(kernel, grid, arguments, *rest)
        finally:
            memory.building = False

    patches = [
        (builder, "create_masked_load", checked_load, load),
        (builder, "create_masked_store", checked_store, store),
        (builder, "create_atomic_rmw", checked_rmw, rmw),
        (builder, "create_atomic_cas", checked_cas, cas),
        (executor, "_init_args_hst", with_extents, convert),
        (descriptor, "launch", tracked, launch),
    ]
    try:
        for owner, name, new, _ in patches:
            setattr(owner, name, new)
        yield memory
    finally:
        for owner, name, _, old in patches:
            setattr(owner, name, old)
