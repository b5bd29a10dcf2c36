"""What every launch needs: a backend that can run on the tensors' device, and that device made current."""

from __future__ import annotations

import functools
import os
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import torch

from cmir.errors import CmirError


@functools.cache
def interpreting() -> bool:
    """Whether triton was imported with TRITON_INTERPRET=1, so that kernels run on the CPU, as NumPy."""
    # Asked of triton's own functions, which are what the environment said when triton was imported.
    triton: Any = import_module("triton")
    return not isinstance(triton.language.cdiv, triton.JITFunction)


def require_backend(device: torch.device) -> None:
    """Raises CmirError where kernels cannot run on `device`: CPU tensors need Triton's interpreter."""
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
