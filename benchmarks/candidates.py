"""The attention kernels in the configurations of a sweep: filled in, compiled ahead by worker processes, launched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.closed import TILE, Mask, describe, slots_of
from cmir.lowering.hooks import fill
from cmir.lowering.visibility import FIXED_AXIS, needs_live_test, table_axis, visibility_hooks
from cmir.runtime import attention as runtime
from cmir.runtime.configs import Block, Config
from cmir.runtime.loader import load

SKELETONS = Path(__file__).resolve().parent.parent / "cmir" / "lowering" / "skeletons"
HEADS, KV_HEADS, DIM = 32, 8, 128


def kernels(row_slots: int, col_slots: int) -> Any:
    hooks: dict[str, str] = {}
    for kernel in FIXED_AXIS:
        axis = table_axis(kernel, row_slots, col_slots)
        slots = row_slots if axis == "rows" else col_slots
        hooks |= visibility_hooks(kernel, axis, slots, needs_live_test(slots), [[]] * slots)
    found = SimpleNamespace()
    for name in ("forward", "backward"):
        text = (SKELETONS / f"{name}.py").read_text()
        module = load(fill(text, {key: value for key, value in hooks.items() if f"# hook: {key}\n" in text}, []))
        for kernel in ("forward", "backward", "backward_delta"):
            if hasattr(module, kernel):
                setattr(found, kernel, getattr(module, kernel))
    return found


def with_kernels(desc: Any, module: Any) -> Any:
    """The descriptor with other kernels."""
    return SimpleNamespace(**{**vars(desc), "module": module})


class Launcher:
    """launcher[grid] is at(grid); all else is asked of the kernel."""

    def __init__(self, kernel: Any, at: Callable[[Any], Callable[..., Any]]) -> None:
        self.kernel, self.at = kernel, at

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.at(grid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


class Skipped:
    """What launching nothing compiles: it can be launched again."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *_: None


class Selected:
    """A module of which only some launches happen: forward, delta, dkv, dq, together; or all are only compiled."""

    def __init__(self, module: Any, *wanted: str, compile_only: bool = False) -> None:
        self.module, self.wanted, self.compile_only = module, wanted, compile_only
        self.launchers: dict[str, Launcher] = {}

    def __getattr__(self, kernel: str) -> Any:
        if kernel in self.launchers:
            return self.launchers[kernel]
        function = getattr(self.module, kernel)

        def at(grid: Any) -> Callable[..., Any]:
            def launch(*args: Any, **options: Any) -> Any:
                part = {"backward_delta": "delta"}.get(kernel, kernel)
                if kernel == "backward":
                    parts = {(True, True): "together", (True, False): "dkv", (False, True): "dq"}
                    part = parts[options["DKV"], options["DQ"]]
                if part not in self.wanted:
                    return Skipped()
                if self.compile_only:
                    return function.warmup(*args, grid=grid, **options)
                return function[grid](*args, **options)

            return launch

        self.launchers[kernel] = Launcher(function, at)
        return self.launchers[kernel]


_DQ_BLOCK = Block(128, 64, 8, 3)


@dataclass(frozen=True)
class Candidate:
    """One kernel configuration of a sweep."""

    part: str
    block: Block
    other: Block = _DQ_BLOCK
    """The blocks of dq in one launch with dk/dv; its warps and stages are those of `block`."""

    def __str__(self) -> str:
        name = f"{self.block.m}x{self.block.n} w{self.block.num_warps} s{self.block.num_stages}"
        if self.part == "together":
            name += f" +{self.other.m}x{self.other.n}"
        return name

    def config(self) -> Config:
        return Config(
            forward=self.block, dkv=self.block, dq=self.other if self.part == "together" else self.block,
            together=self.part == "together",
        )  # fmt: skip


def candidates_of(live: bool) -> list[Candidate]:
    """Most promising first."""
    forward = [
        (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 64, 8, 2), (64, 64, 4, 2), (128, 64, 8, 4),
        (128, 64, 4, 3), (128, 32, 4, 3), (64, 128, 4, 2), (128, 32, 8, 4), (128, 128, 8, 3), (64, 32, 4, 4),
    ]  # fmt: skip
    dkv = [
        (64, 128, 8, 3), (64, 128, 8, 2), (32, 128, 8, 3), (64, 64, 4, 2), (64, 64, 4, 3), (32, 64, 4, 3),
        (32, 128, 8, 4), (128, 64, 8, 2),
    ]  # fmt: skip
    dq = [
        (128, 64, 8, 3), (128, 128, 8, 2), (128, 64, 8, 2), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2),
        (128, 32, 8, 4), (128, 32, 4, 3),
    ]  # fmt: skip
    found = [Candidate("together", Block(64, 128, 8, stages)) for stages in (3, 2)]
    found += [Candidate("forward", Block(*block)) for block in forward]
    found += [Candidate("dkv", Block(*block)) for block in dkv]
    found += [Candidate("dq", Block(*block)) for block in dq]
    found += [
        Candidate("together", Block(32, 128, 8, 3)),
        Candidate("together", Block(64, 64, 4, 2), Block(64, 64, 4, 2)),
        Candidate("together", Block(32, 64, 4, 3), Block(64, 64, 4, 3)),
        Candidate("together", Block(64, 128, 8, 2), Block(128, 128, 8, 2)),
    ]
    return found


def tensors(length: int, device: str, dtype: torch.dtype = torch.bfloat16, heads: tuple[int, int] = (HEADS, KV_HEADS)):
    torch.manual_seed(0)
    shapes = [
        (1, heads[0], length, DIM),
        (1, heads[1], length, DIM),
        (1, heads[1], length, DIM),
        (1, heads[0], length, DIM),
    ]
    return [torch.randn(shape, device=device).to(dtype) for shape in shapes]


def start_worker(capability: int) -> None:
    """Makes this process compile for the GPU without touching it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class Ahead(DriverBase):
        def __init__(self) -> None:
            pass

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", capability, 32)

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, index: int = 0) -> int:
            return 0

        def get_benchmarker(self) -> Any:
            raise NotImplementedError

        def get_device_interface(self) -> Any:
            raise NotImplementedError

        def get_empty_cache_for_benchmark(self) -> Any:
            raise NotImplementedError

        def clear_cache(self, cache: Any) -> None:
            pass

    triton.runtime.driver.set_active(Ahead())
    torch.set_num_threads(1)


def compile_ahead(row_slots: int, col_slots: int, ragged: bool, candidate: Candidate) -> float:
    """Seconds it took. Lengths are no part of a kernel's key, so a small call compiles what a large one needs."""
    begin = time.time()
    length = 2 * TILE - (7 if ragged else 0)
    i = torch.arange(length, dtype=torch.int32)
    rows, cols = (slots_of([(i, i)] * slots) for slots in (row_slots, col_slots))
    module = Selected(kernels(row_slots, col_slots), candidate.part, "delta", compile_only=True)
    desc = describe(Mask("ahead", length, rows, cols, lambda *_: None), module)
    run(candidate, desc, *tensors(length, "cpu"))
    return time.time() - begin


def run(candidate: Candidate, desc: Any, q: Any, k: Any, v: Any, dout: Any, out: Any = None, lse: Any = None) -> Any:
    scale = 1.0 / math.sqrt(DIM)
    if candidate.part == "forward":
        return runtime.launch_forward(q, k, v, desc, scale, candidate.config())
    if lse is None:
        out, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    return runtime.launch_backward(q, k, v, out, lse, dout, None, desc, scale, candidate.config())
