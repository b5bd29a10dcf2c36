"""What every launch needs: a backend that can run on the tensors' device, that device made current, and little time."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import torch

from cmir.errors import CmirError
from cmir.runtime.driver import MOVES, direct_of


@functools.cache
def interpreting() -> bool:
    """Whether triton was imported with TRITON_INTERPRET=1, so that kernels run on the CPU, as NumPy."""
    # Asked of triton's own functions, which are what the environment said when triton was imported.
    triton: Any = import_module("triton")
    return not isinstance(triton.language.cdiv, triton.JITFunction)


def require_backend(device: torch.device) -> None:
    """Raises CmirError where kernels cannot run on `device`: CPU tensors need Triton's interpreter."""
    if device.type == "meta":
        raise CmirError("tensors on meta have no values to read; give CPU or CUDA tensors")
    if device.type != "cpu" or interpreting():
        return
    late = os.environ.get("TRITON_INTERPRET") == "1"
    raise CmirError(
        "CPU tensors need Triton's interpreter: "
        + (
            "TRITON_INTERPRET=1 was set after triton was imported; set it before"
            if late
            else "set TRITON_INTERPRET=1 before triton is imported, or give CUDA tensors"
        )
    )


def default_device() -> torch.device:
    """Where a descriptor goes when no tensor says: the current CUDA device, else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """Makes `device` current for a launch: Triton launches on the current device, whatever the tensors' own."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


def is_capturing(device: torch.device) -> bool:
    """Whether launches on `device` become part of a CUDA graph, so that nothing may wait for them."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


@functools.cache
def _stream_of() -> Callable[[int], int]:
    triton: Any = import_module("triton")
    return triton.runtime.driver.active.get_current_stream


def current_stream(device: torch.device) -> int:
    """The handle of the current stream of a GPU."""
    return _stream_of()(device.index)


_zeros: dict[tuple[torch.device, int], torch.Tensor] = {}


def zeros_to_return(count: int, device: torch.device) -> torch.Tensor | None:
    """int32 zeros, `count` of them or more, for launches on the current stream that leave them zero.

    Launches on one stream follow one another and share them; clearing anew would cost the host another launch. None
    where there are none to share: a graph may be replayed on any stream, beside any other, and on a CPU an exception
    may leave a kernel half run.
    """
    if device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return None
    place = device, current_stream(device)
    found = _zeros.get(place)
    if found is None or found.shape[0] < count:
        found = _zeros[place] = torch.zeros(max(count, 2**14), dtype=torch.int32, device=device)
    return found


Argument = torch.Tensor | int | float


class Ready:
    """What Triton compiled for one form of arguments, to launch again.

    `tail`: the constants that follow the arguments."""

    def __init__(self, compiled: Any, arguments: Sequence[object], tail: tuple[object, ...]) -> None:
        self._compiled, self._tail = compiled, tail
        kinds: list[str] = list(compiled.src.signature.values())
        self._moving = [place for place, kind in enumerate(kinds[: len(arguments)]) if kind != "constexpr"]
        fixed = [MOVES if place in self._moving else argument for place, argument in enumerate(arguments)]
        self._direct = direct_of(compiled, fixed)
        self._every = len(self._moving) == len(arguments)

    def __call__(self, grid: tuple[int, int, int], stream: int, arguments: Sequence[int | float]) -> None:
        """The next launch of this form; addresses stand for tensors."""
        if self._direct is not None:
            moving = arguments if self._every else [arguments[place] for place in self._moving]
            if self._direct(grid, stream, moving):
                return
        self._compiled[grid](*arguments, *self._tail, stream=stream)


_ready: dict[tuple[object, ...], Ready] = {}
"""By kernel, device, constants and form of the arguments."""


def launch(
    kernel: Any,
    grid: tuple[int, int, int],
    arguments: Sequence[Argument],
    constants: Mapping[str, int],
    options: Mapping[str, int],
    device: torch.device,
) -> Ready | None:
    """`kernel[grid](*arguments, **constants, **options)` on the current stream of `device`, which is current.

    The first launch of a form goes through Triton, which binds, inspects and hashes every argument. Later ones go
    straight to the kernel that it compiled: half the host's time or less. Our key tells apart all that Triton compiles
    apart, and a little more, so that a kernel never gets arguments that it was not compiled for.

    Returns what was launched, for callers whose own key tells as much apart. None in the interpreter.
    """
    if interpreting():
        kernel[grid](*arguments, **constants, **options)
        return None
    key = (
        kernel,
        device,
        *constants.values(),
        *options.values(),
        *map(form, arguments),
        *[arguments[place] for place in _constant_places(kernel) if place < len(arguments)],
    )
    found = _ready.get(key)
    if found is None:
        compiled = kernel[grid](*arguments, **constants, **options)
        names: list[str] = kernel.arg_names
        tail = tuple(constants[name] for name in names[len(arguments) :])
        found = _ready[key] = Ready(compiled, arguments, tail)
    else:
        places = [x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments]
        found(grid, current_stream(device), places)
    return found


@functools.cache
def _constant_places(kernel: Any) -> tuple[int, ...]:
    return tuple(place for place, parameter in enumerate(kernel.params) if parameter.is_constexpr)


_INT32 = range(-(2**31), 2**31)


def form(argument: Argument) -> object:
    """What Triton may specialise a kernel on: dtype and alignment of a pointer; of an int, whether it is 1, a multiple
    of 16, or wide; of anything else, its type."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16
    if type(argument) is int:
        return 1 if argument == 1 else (argument % 16 == 0, argument in _INT32)
    return type(argument)
