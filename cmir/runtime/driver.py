"""Launches of compiled kernels by one call of the CUDA driver, their parameters packed as the kernel reads them.

Triton's own launch looks at every argument again and encodes every TMA descriptor anew: most of what an attention pass
costs the host. But of the arguments of a plan only addresses and a scale change from call to call:

    direct = direct_of(compiled, [MOVES, MOVES, 4096, 32, MOVES])      # after the first launch, which is Triton's
    direct(grid, stream, [pointer, pointer, scale])                    # False: not launched, let Triton do it

Which parameters there are the kernel's PTX says, and it must be what Triton's signature of the kernel says too:

    .param .u64 .ptr .global .align 1 name     a pointer
    .param .u32 name                           a number of 4 bytes; and so on
    .param .align 64 .b8 name[128]             a TMA descriptor; after it its shape, of u32, and its strides, of u64
    .param .u64 ...                            last, Triton's own: scratch memory, which our kernels have none of

Where they differ, where Triton takes part in a launch (scratch memory, clusters, a profiler's hooks), and where the
driver refuses, there is no direct launch: Triton makes it, or says what is wrong. The driver gets a pointer to each
parameter (cuLaunchKernel of the CUDA Driver API): only it knows where they lie for the kernel, since ptxas aligns TMA
descriptors in the bank of constants, not in the block of parameters.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

MOVES: Final = object()
"""In place of an argument: every launch gives its own."""

_MAP_BYTES = 128
"""Of a CUtensorMap."""

_SCRATCH = 2
"""Most parameters that Triton adds at the end."""

_WARP = 32

_USUAL = {
    "num_ctas": 1, "warp_size": _WARP, "global_scratch_size": 0, "profile_scratch_size": 0,
    "launch_cooperative_grid": False, "launch_pdl": False,
}  # fmt: skip
"""Of a kernel's metadata: what a launch needs nothing for. A Triton that calls it otherwise launches itself."""

_SCALARS = {
    "i8": (".u8", "b"), "i16": (".u16", "h"), "i32": (".u32", "i"), "i64": (".u64", "q"),
    "u8": (".u8", "B"), "u16": (".u16", "H"), "u32": (".u32", "I"), "u64": (".u64", "Q"),
    "fp32": (".f32", "f"), "fp64": (".f64", "d"),
}  # fmt: skip
"""Triton's types of numbers: how PTX and how `struct` has them."""


class Field(NamedTuple):
    """A parameter: its type in PTX, and how `struct` has it."""

    ptx: str
    code: str

    @property
    def size(self) -> int:
        return struct.calcsize("=" + self.code)

    @property
    def alignment(self) -> int:
        return 64 if self.code.endswith("s") else self.size


def fields_of(kind: str) -> list[Field] | None:
    """The parameters that an argument of one of Triton's types becomes; None for a type that is not known here."""
    if kind.startswith("*"):
        return [Field(".u64", "Q")]
    if kind.startswith("tensordesc<"):
        rank = kind[kind.index("[") + 1 : kind.index("]")].count(",") + 1
        shape, strides = [Field(".u32", "i")] * rank, [Field(".u64", "q")] * rank
        return [Field(f".b8[{_MAP_BYTES}]", f"{_MAP_BYTES}s"), *shape, *strides]
    return [Field(*_SCALARS[kind])] if kind in _SCALARS else None


def parameters_of(ptx: str) -> list[str]:
    """The types of the parameters of the one kernel of a PTX module, in order."""
    listed = re.search(r"\.entry\s+[\w$]+\s*\(([^)]*)\)", ptx)
    found: list[str] = []
    for line in listed[1].splitlines() if listed else ():
        if match := re.match(r"\s*\.param\s+(?:\.align \d+ )?(\.\w+)\b[^\[]*(\[\d+\])?", line):
            found.append(match[1] + (match[2] or ""))
    return found


class Group(NamedTuple):
    """Arguments `begin` to `end` of those that move, side by side: how they are packed, and where."""

    packing: struct.Struct
    offset: int
    begin: int
    end: int


class Packing(NamedTuple):
    """How a kernel's parameters are packed in memory: what never changes, in place, and the groups of what does."""

    template: bytes
    offsets: list[int]
    """Where each parameter is."""
    groups: list[Group]


def packing_of(ptx: str, signature: Sequence[str], arguments: Sequence[object]) -> Packing | None:
    """How the parameters of a kernel are packed.

    Args:
        ptx: the kernel's PTX.
        signature: Triton's type of each argument, `constexpr` for what was compiled in.
        arguments: a number, or MOVES, for each argument; those that are left out at the end were compiled in.

    Returns:
        None if the PTX does not have the parameters that the signature says, or if an argument that moves was
        compiled in. A TMA descriptor moves as one `packed_map`.
    """
    given = _given(signature, arguments)
    if given is None:
        return None
    present = parameters_of(ptx)
    expected = [field.ptx for fields, _ in given for field in fields]
    scratch = present[len(expected) :]
    if present[: len(expected)] != expected or scratch != [".u64"] * min(len(scratch), _SCRATCH):
        return None
    return _laid_out([*given, *[([Field(".u64", "Q")], 0)] * len(scratch)])


def _given(signature: Sequence[str], arguments: Sequence[object]) -> list[tuple[list[Field], object]] | None:
    """Of each argument that was not compiled in its parameters, and its number or MOVES."""
    if len(arguments) > len(signature) or any(kind != "constexpr" for kind in signature[len(arguments) :]):
        return None
    found: list[tuple[list[Field], object]] = []
    for kind, value in zip(signature, arguments, strict=False):
        if kind == "constexpr" and value is not MOVES:
            continue
        fields = fields_of(kind)
        if fields is None or (len(fields) > 1 and value is not MOVES):
            return None
        found.append((fields, value))
    return found


def _laid_out(given: Sequence[tuple[list[Field], object]]) -> Packing:
    """A packing in which every parameter is aligned, as C would have it in a struct."""
    template = bytearray()
    offsets: list[int] = []
    groups: list[Group] = []
    format_, start, begin, end = "=", 0, 0, 0  # of the group that is being made
    for fields, value in given:
        gap = -len(template) % fields[0].alignment
        template += bytes(gap)
        first = at = len(template)
        for field in fields:
            at += -at % field.alignment
            offsets.append(at)
            at += field.size
        code = f"{at - first}s" if len(fields) > 1 else fields[0].code
        if value is MOVES:
            if begin == end:
                format_, start = "=", first
            else:
                format_ += f"{gap}x"
            format_ += code
            end += 1
            template += bytes(at - first)
        else:
            if begin < end:
                groups.append(Group(struct.Struct(format_), start, begin, end))
                begin = end
            template += struct.pack("=" + code, value)
    if begin < end:
        groups.append(Group(struct.Struct(format_), start, begin, end))
    return Packing(bytes(template), offsets, groups)


class Direct:
    """What launches a kernel that Triton has loaded."""

    def __init__(self, compiled: Any, packing: Packing) -> None:
        self.compiled = compiled  # keeps the module loaded
        self.packing = packing
        self._function: int = compiled.function
        self._threads = _WARP * compiled.metadata.num_warps  # of all partitions, where a kernel has some
        self._shared: int = compiled.metadata.shared
        self._groups = [(group.packing.pack_into, *group[1:]) for group in packing.groups]
        self._places = threading.local()  # threads launch at the same time, each from a place of its own

    def __call__(self, grid: tuple[int, int, int], stream: int, moving: Sequence[object]) -> bool:
        """Launches with the arguments that move, in order: whether it did."""
        if _hooked():
            return False
        try:
            place, pointers = self._places.place
        except AttributeError:
            place, pointers = self._places.place = self._new_place()
        try:
            for pack_into, offset, begin, end in self._groups:
                pack_into(place, offset, *moving[begin:end])
        except (struct.error, OverflowError):
            return False
        x, y, z = grid
        return not _cuda().cuLaunchKernel(
            self._function, x, y, z, self._threads, 1, 1, self._shared, stream, pointers, None
        )

    def _new_place(self) -> tuple[Any, Any]:
        """Memory for the parameters, and a pointer to each."""
        template, offsets = self.packing.template, self.packing.offsets
        place = (ctypes.c_char * len(template)).from_buffer(bytearray(template))
        first = ctypes.addressof(place)
        return place, (ctypes.c_void_p * len(offsets))(*[first + offset for offset in offsets])


def direct_of(compiled: Any, arguments: Sequence[object]) -> Direct | None:
    """What launches `compiled`, which Triton has launched, with `arguments`: a number or MOVES for each but the
    constants at the end. None where Triton has to do it."""
    metadata = compiled.metadata
    if metadata.target.backend != "cuda" or _cuda() is None:
        return None
    if any(getattr(metadata, name, None) != usual for name, usual in _USUAL.items()):
        return None
    packing = packing_of(compiled.asm["ptx"], list(compiled.src.signature.values()), arguments)
    return None if packing is None else Direct(compiled, packing)


def packed_map(
    address: int, kind: int, shape: Sequence[int], strides: Sequence[int], itemsize: int, box: Sequence[int],
    swizzle: int,
) -> bytes | None:  # fmt: skip
    """A TMA descriptor as kernels take it: the CUtensorMap, the shape, the strides. None if the driver refuses it.

    Args:
        address: of the tensor.
        kind: its CUtensorMapDataType.
        shape: and `strides`: in elements, the last stride 1.
        itemsize: bytes of an element.
        box: what one instruction moves.
        swizzle: the CUtensorMapSwizzle.
    """
    rank = len(shape)
    room = ctypes.create_string_buffer(2 * _MAP_BYTES)
    place = -ctypes.addressof(room) % 64  # the driver wants it there
    sizes = (ctypes.c_uint64 * rank)(*reversed(shape))
    steps = (ctypes.c_uint64 * max(1, rank - 1))(*[itemsize * step for step in reversed(strides[:-1])])
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    interleave, promotion, fill = 0, 2, 0  # none; lines of 128 bytes in the L2 cache; what is outside is zero
    refused = _cuda().cuTensorMapEncodeTiled(
        ctypes.addressof(room) + place, kind, rank, address, sizes, steps, boxes, ones, interleave, swizzle,
        promotion, fill,
    )  # fmt: skip
    if refused:
        return None
    return struct.pack(f"@{_MAP_BYTES}s{rank}i{rank}q", room.raw[place : place + _MAP_BYTES], *shape, *strides)


@functools.cache
def _cuda() -> Any:
    """The CUDA driver; None where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        launch, encode = driver.cuLaunchKernel, driver.cuTensorMapEncodeTiled
    except (OSError, AttributeError):
        return None
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    launch.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
    encode.argtypes = [pointer, number, number, *[pointer] * 5, *[number] * 4]
    return driver


@functools.cache
def _runtime() -> Any:
    knobs: Any = import_module("triton.knobs")
    return knobs.runtime


def _hooked() -> bool:
    """Whether somebody, a profiler say, wants to see Triton's launches."""
    runtime = _runtime()
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter)) or bool(getattr(leave, "calls", leave))
