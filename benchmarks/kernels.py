"""Sweep of the attention kernels' launch configurations beside FlexAttention, on one GPU.

    python -m benchmarks.kernels [--seconds 420] [--lengths 4096 8192 32768] [--masks causal hstu clear]

bf16, B=1, 32 query heads, 8 key/value heads, D=128. Descriptors are made here with torch, from closed-form interval
tables: no compiler, no preprocess kernel. First a check against the fp32 reference at small sizes, then the sweep in
interleaved rounds (medians, L2 not flushed), then a table; all figures go to $OUT/kernels.json if OUT is set.
Kernels are compiled ahead by worker processes, the most promising first; what is not ready in time is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import time
import traceback
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from cmir.lowering.hooks import fill
from cmir.lowering.visibility import FIXED_AXIS, needs_live_test, table_axis, visibility_hooks
from cmir.runtime import attention as runtime
from cmir.runtime.configs import Block, Config, attention_config
from cmir.runtime.loader import load
from cmir.runtime.reference import reference_attention
from cmir.signature import Signature

ROOT = Path(__file__).resolve().parent.parent
SKELETONS = ROOT / "cmir" / "lowering" / "skeletons"
TILE = 128
HEADS, KV_HEADS, DIM = 32, 8, 128
START = time.time()


def say(*words: object) -> None:
    print(f"[{time.time() - START:5.0f}s]", *words, flush=True)


# Masks: interval tables in closed form -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mask:
    """Interval tables [K, 2, N] of the rows and of the columns, and the same mask as a predicate for FlexAttention."""

    name: str
    length: int
    rows: torch.Tensor
    cols: torch.Tensor
    predicate: Callable[..., Any]

    @property
    def area(self) -> int:
        return int((self.rows[:, 1] - self.rows[:, 0]).long().sum())

    def dense(self) -> torch.Tensor:
        j = torch.arange(self.length, device=self.rows.device)
        lo, hi = self.rows[:, 0, :, None], self.rows[:, 1, :, None]
        return ((j >= lo) & (j < hi)).any(0)


def causal(length: int, device: str) -> Mask:
    i = torch.arange(length, dtype=torch.int32, device=device)
    zero, end = torch.zeros_like(i), torch.full_like(i, length)
    return Mask("causal", length, _slots([(zero, i + 1)]), _slots([(i, end)]), lambda b, h, q, k: k <= q)


def candidates(name: str, length: int, history: int, item: int, device: str) -> Mask:
    """Causal history; then items of `item` tokens, each causal in itself and seeing the history."""
    i = torch.arange(length, dtype=torch.int32, device=device)
    zero, old = torch.zeros_like(i), i < history
    start = torch.where(old, 0, history + (i - history) // item * item).int()
    end = torch.where(old, length, (start + item).clamp(max=length)).int()
    rows = [
        (zero, torch.where(old, i + 1, history).int()),
        (torch.where(old, 0, start).int(), torch.where(old, 0, i + 1).int()),
    ]

    def predicate(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((k < history) | (start[q] <= k))

    return Mask(name, length, _slots(rows), _slots([(i, end)]), predicate)


def clear(height: int, width: int, text: int, device: str, radius: int = 16) -> Mask:
    """Image tokens see a disc around them and the text; text tokens, at the end, see everything."""
    pixels = height * width
    length = pixels + text
    i = torch.arange(length, dtype=torch.int32, device=device)
    y, x, image = i // width, i % width, i < pixels
    slots: list[tuple[torch.Tensor, torch.Tensor]] = []
    for dy in range(-radius, radius + 1):
        reach = math.isqrt(radius * radius - dy * dy)
        real = image & (y + dy >= 0) & (y + dy < height)
        lo = (y + dy) * width + (x - reach).clamp(min=0)
        hi = (y + dy) * width + (x + reach).clamp(max=width - 1) + 1
        slots.append((torch.where(real, lo, 0).int(), torch.where(real, hi, 0).int()))
    slots.append((torch.where(image, pixels, 0).int(), torch.full_like(i, length)))
    table = _slots(slots)

    def predicate(b: Any, h: Any, q: Any, k: Any) -> Any:
        dy, dx = q // width - k // width, q % width - k % width
        return (q >= pixels) | (k >= pixels) | (dy * dy + dx * dx <= radius * radius)

    return Mask("clear", length, table, table, predicate)


def _slots(slots: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    return torch.stack([torch.stack([lo, hi]) for lo, hi in slots]).contiguous()


def make_mask(name: str, length: int, device: str) -> Mask:
    if name == "causal":
        return causal(length, device)
    if name == "hstu":
        return candidates("hstu", length, length // 4 * 3, 16, device)
    if name == "shared prompt":
        return candidates("shared prompt", length, length // 4, (length - length // 4 + 5) // 6, device)
    height, width = {1024: (32, 31), 4096: (64, 64), 8192: (90, 91), 32768: (181, 181)}[length]
    return clear(height, width, 512 if length > 1024 else 77, device)


# Descriptors ---------------------------------------------------------------------------------------------------------


def schedule(table: torch.Tensor, length: int, by_col: bool) -> list[torch.Tensor]:
    """(count, index, live, order), each with one mask in front, of square masks of `length`."""
    tiles, device = -(-length // TILE), table.device
    starts = torch.arange(tiles, device=device, dtype=torch.int32) * TILE
    slots = table.shape[0]
    area = torch.zeros(tiles, tiles, dtype=torch.int32, device=device)
    begin = torch.full_like(area, slots)
    end, most = torch.zeros_like(area), torch.zeros(tiles, TILE, tiles, dtype=torch.int32, device=device)
    for slot in range(slots):
        lo, hi = (torch.nn.functional.pad(x, (0, tiles * TILE - length)) for x in table[slot])
        seen = (torch.minimum(hi[:, None], starts + TILE) - torch.maximum(lo[:, None], starts)).clamp(min=0)
        seen = seen.view(tiles, TILE, tiles)
        most += seen > 0
        seen = seen.sum(1).int()
        area += seen
        begin = torch.where(seen > 0, begin.clamp(max=slot), begin)
        end = torch.where(seen > 0, slot + 1, end)
    valid = (length - starts).clamp(max=TILE)
    rows, cols = (valid[None, :], valid[:, None]) if by_col else (valid[:, None], valid[None, :])
    full = (area == rows * TILE) & (cols == TILE)
    partial = (area > 0) & ~full
    count = torch.stack([partial.sum(1), full.sum(1)], 1).int()
    ids = torch.arange(tiles, device=device, dtype=torch.int32).expand(tiles, tiles)
    order = torch.argsort(torch.where(partial, 0, torch.where(full, 2, 1)), dim=1, stable=True)
    index = torch.gather(ids, 1, order)
    live = torch.gather(begin | (end << 12) | (most.amax(1) << 24), 1, order)
    return [
        x[None].contiguous() for x in (count, index, live, count.sum(1).argsort(descending=True, stable=True).int())
    ]


def describe(mask: Mask, module: Any) -> Any:
    length = mask.length
    none = torch.zeros(1, dtype=torch.int64, device=mask.rows.device)
    count, index, live, order = schedule(mask.rows, length, False)
    col_count, col_index, col_live, col_order = schedule(mask.cols, length, True)
    return SimpleNamespace(
        row_table=mask.rows[None], row_state=none, row_count=count, row_index=index, row_live=live, row_order=order,
        col_table=mask.cols[None], col_state=none, col_count=col_count, col_index=col_index, col_live=col_live,
        col_order=col_order, area=none, status=none, rows=length, cols=length, tile=(TILE, TILE), batch=(),
        mask_strides=(0, 0), device=mask.rows.device, widths=(index.shape[-1], col_index.shape[-1]),
        signature=Signature(mask.name, (), mask.rows.shape[0], mask.cols.shape[0]), module=module,
    )  # fmt: skip


# Kernels -------------------------------------------------------------------------------------------------------------


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


def _with(desc: Any, module: Any) -> Any:
    """The descriptor with other kernels."""
    return SimpleNamespace(**{**vars(desc), "module": module})


class Launcher:
    """launcher[grid] is at(grid)."""

    def __init__(self, at: Callable[[Any], Callable[..., Any]]) -> None:
        self.at = at

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.at(grid)


class Selected:
    """A module of which only some launches happen: forward, delta, dkv, dq, together; or all are only compiled."""

    def __init__(self, module: Any, *wanted: str, compile_only: bool = False) -> None:
        self.module, self.wanted, self.compile_only = module, wanted, compile_only

    def __getattr__(self, kernel: str) -> Any:
        function = getattr(self.module, kernel)

        def at(grid: Any) -> Callable[..., Any]:
            def launch(*args: Any, **options: Any) -> Any:
                part = {"backward_delta": "delta"}.get(kernel, kernel)
                if kernel == "backward":
                    parts = {(True, True): "together", (True, False): "dkv", (False, True): "dq"}
                    part = parts[options["DKV"], options["DQ"]]
                if part not in self.wanted:
                    return None
                if self.compile_only:
                    return function.warmup(*args, grid=grid, **options)
                return function[grid](*args, **options)

            return launch

        return Launcher(at)


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


# Ahead-of-time compilation in worker processes ------------------------------------------------------------------------


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
    rows, cols = (_slots([(i, i)] * slots) for slots in (row_slots, col_slots))
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


# Measuring -----------------------------------------------------------------------------------------------------------


def interleaved(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median milliseconds; every function once a round. One that fails is reported and dropped."""
    repeats: dict[str, int] = {}
    for name, function in list(functions.items()):
        try:
            function()
            torch.cuda.synchronize()
            repeats[name] = max(1, min(20, int(12 / max(_time(function, 1), 1e-3))))
        except Exception as error:
            say(f"    {name}: FAILED {type(error).__name__} {str(error)[:150]}")
            del functions[name]
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(_time(function, repeats[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def _time(function: Callable[[], Any], repeats: int) -> float:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        function()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / repeats


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    if not bool(torch.isfinite(got).all()):
        return math.inf
    return float((got.double() - want.double()).norm() / want.double().norm())


def check() -> list[dict[str, Any]]:
    """bf16 kernels against the fp32 reference, at 1K."""
    results: list[dict[str, Any]] = []
    for name in ("causal", "hstu", "shared prompt", "clear"):
        for trim in (0, 5):
            if name == "clear" and trim:
                continue
            mask = make_mask(name, 1024, "cuda") if not trim else {
                "causal": lambda: causal(1019, "cuda"), "hstu": lambda: candidates("hstu", 1019, 700, 16, "cuda"),
                "shared prompt": lambda: candidates("shared prompt", 1019, 250, 130, "cuda"),
            }[name]()  # fmt: skip
            try:
                desc = describe(mask, kernels(mask.rows.shape[0], mask.cols.shape[0]))
                q, k, v, dout = tensors(mask.length, "cuda", heads=(4, 2))
                inputs = [x.requires_grad_() for x in (q, k, v)]
                exact = [x.detach().float().requires_grad_() for x in (q, k, v)]
                out = runtime.attention(inputs[0], inputs[1], inputs[2], desc)
                want = reference_attention(exact[0], exact[1], exact[2], mask.dense())[0]
                errors = [relative(out, want)]
                for a, b in zip(
                    torch.autograd.grad(out, inputs, dout), torch.autograd.grad(want, exact, dout.float()), strict=True
                ):
                    errors.append(relative(a, b))
                ok = max(errors) < 8e-3
                results.append({"mask": name, "length": mask.length, "errors": errors, "ok": ok})
                say(f"check {name} {mask.length}: out dq dk dv", *(f"{e:.1e}" for e in errors), "ok" if ok else "WRONG")
            except Exception as error:
                traceback.print_exc(limit=4)
                say(f"check {name} {mask.length}: FAILED {type(error).__name__} {str(error)[:200]}")
                results.append({"mask": name, "length": mask.length, "ok": False, "failed": str(error)[:500]})
    return results


def flex(mask: Mask, q: Any, k: Any, v: Any, dout: Any) -> dict[str, Callable[[], Any]]:
    import torch._dynamo
    import torch._functorch.config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    blocks = create_block_mask(mask.predicate, None, None, mask.length, mask.length, device="cuda", _compile=True)
    compiled = torch.compile(flex_attention, dynamic=False)
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    out = compiled(*inputs, block_mask=blocks, enable_gqa=True)

    def forward() -> Any:
        with torch.no_grad():
            return compiled(*inputs, block_mask=blocks, enable_gqa=True)

    return {"forward": forward, "backward": lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True)}


def sweep(mask: Mask, ready: list[Candidate], rounds: int) -> dict[str, Any]:
    """Times of all ready candidates of one mask, and FlexAttention's."""
    q, k, v, dout = tensors(mask.length, "cuda")
    slots = mask.rows.shape[0], mask.cols.shape[0]
    module = kernels(*slots)
    desc = describe(mask, module)
    default = attention_config(DIM, 16, "many" if needs_live_test(max(slots)) else "few", (TILE, TILE))
    out, lse = runtime.launch_forward(q, k, v, desc, 1.0 / math.sqrt(DIM), default)
    grads = runtime.launch_backward(q, k, v, out, lse, dout, None, desc, 1.0 / math.sqrt(DIM), default)
    functions: dict[str, Callable[[], Any]] = {}
    for candidate in ready:
        selected = _with(desc, Selected(module, candidate.part))
        call = lambda c=candidate, d=selected: run(c, d, q, k, v, dout, out, lse)  # noqa: E731
        try:  # right, or not measured; gradients need the delta kernel too
            checked = _with(desc, Selected(module, candidate.part, "delta"))
            got = run(candidate, checked, q, k, v, dout, out, lse)
            compared = {
                "forward": [(got[0], out)],
                "dkv": [(got[1], grads[1]), (got[2], grads[2])] if len(got) > 2 else [],
            }
            compared |= {"dq": [(got[0], grads[0])], "together": list(zip(got, grads, strict=False))}
            error = max(relative(a, b) for a, b in compared[candidate.part])
            if error < 1e-2:
                functions[f"{candidate.part} {candidate}"] = call
            else:
                say(f"    {candidate.part} {candidate}: WRONG by {error:.1e}")
        except Exception as error:
            say(f"    {candidate.part} {candidate}: FAILED {type(error).__name__} {str(error)[:150]}")
    # `run` of a backward part without the delta kernel would read uninitialised statistics: times are the same.
    delta = _with(desc, Selected(module, "delta"))
    functions["delta"] = lambda: runtime.launch_backward(q, k, v, out, lse, dout, None, delta, 1.0, default)
    functions["forward default"] = lambda: runtime.launch_forward(q, k, v, desc, 1.0, default)
    functions["backward default"] = lambda: runtime.launch_backward(q, k, v, out, lse, dout, None, desc, 1.0, default)
    try:
        for name, function in flex(mask, q, k, v, dout).items():
            functions[f"flex {name}"] = function
        difference = relative(functions["flex forward"](), out)
        say(f"    flex differs by {difference:.1e}" + ("" if difference < 1e-2 else " TOO MUCH"))
    except Exception as error:
        say(f"    flex: FAILED {type(error).__name__} {str(error)[:200]}")
    times = interleaved(functions, rounds)
    flops = 4.0 * mask.area * HEADS * DIM
    work = {"forward": 1.0, "backward": 2.5, "together": 2.5, "dkv": 2.0, "dq": 1.5, "delta": 0.0}
    rates = {name: work[name.removeprefix("flex ").split()[0]] * flops / ms / 1e9 for name, ms in times.items()}
    for part in ("forward", "dkv", "dq", "together", "backward", "delta", "flex"):
        named = sorted((ms, name) for name, ms in times.items() if name.startswith(part))
        for ms, name in named:
            say(f"    {mask.name} {mask.length} {name:42s} {ms:9.3f} ms {rates[name]:6.0f} TFLOP/s")
    return {"mask": mask.name, "length": mask.length, "area": mask.area, "ms": times, "tflops": rates}


def table(results: list[dict[str, Any]]) -> str:
    """The best of each part beside FlexAttention."""
    lines = [
        f"{'mask':8s}{'length':>7s} | {'forward: best':26s}{'TF/s':>5s}{'dflt':>6s}{'flex':>6s} | "
        f"{'dkv: best':24s}{'ms':>8s} | {'dq: best':20s}{'ms':>8s} | {'one launch: best':28s}{'ms':>8s} | "
        f"{'bwd ms':>8s}{'flex':>8s} | f+b TF/s, flex, ratio"
    ]
    for result in results:
        ms, flops = result["ms"], 4.0 * result["area"] * HEADS * DIM
        best: dict[str, tuple[str, float]] = {}
        for part in ("forward", "dkv", "dq", "together"):
            named = [
                (value, name.removeprefix(part + " ")) for name, value in ms.items() if name.startswith(part + " ")
            ]
            value, name = min(named, default=(math.nan, "-"))
            best[part] = name, value
        two = best["dkv"][1] + best["dq"][1]
        one = best["together"][1]
        backward = min(two, one) + ms.get("delta", math.nan)
        nan = math.nan
        fwd, flex_fwd, flex_bwd = best["forward"][1], ms.get("flex forward", nan), ms.get("flex backward", nan)
        ours, theirs = 3.5 * flops / (fwd + backward) / 1e9, 3.5 * flops / (flex_fwd + flex_bwd) / 1e9
        lines.append(
            f"{result['mask']:8s}{result['length']:7d} | {best['forward'][0]:26s}{flops / fwd / 1e9:5.0f}"
            f"{flops / ms.get('forward default', nan) / 1e9:6.0f}{flops / flex_fwd / 1e9:6.0f} | "
            f"{best['dkv'][0]:24s}{best['dkv'][1]:8.3f} | {best['dq'][0]:20s}{best['dq'][1]:8.3f} | "
            f"{best['together'][0]:28s}{one:8.3f} | {backward:8.3f}{flex_bwd:8.3f} | "
            f"{ours:.0f}, {theirs:.0f}, {ours / theirs:.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420, help="time budget for everything")
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 32768, 8192])
    parser.add_argument("--masks", nargs="+", default=["causal", "clear", "hstu"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    options = parser.parse_args()
    deadline = START + options.seconds
    major, minor = torch.cuda.get_device_capability()
    say(torch.cuda.get_device_name(), "torch", torch.__version__, "workers", options.workers)

    slots: dict[str, tuple[int, int, bool]] = {}
    for name in options.masks:
        mask = make_mask(name, options.lengths[0], "cpu")
        slots[name] = mask.rows.shape[0], mask.cols.shape[0], mask.length % TILE != 0
    pool = ProcessPoolExecutor(
        options.workers, multiprocessing.get_context("spawn"), initializer=start_worker, initargs=(10 * major + minor,)
    )
    jobs: dict[Future[float], tuple[str, bool, Candidate]] = {}
    queue: list[tuple[int, str, bool, Candidate]] = []
    for name in options.masks:
        kinds = {make_mask(name, length, "cpu").length % TILE != 0 for length in options.lengths}
        for ragged in kinds:
            for rank, candidate in enumerate(candidates_of(needs_live_test(slots[name][0]))):
                queue.append((rank, name, ragged, candidate))
    for _, name, ragged, candidate in sorted(queue, key=lambda job: job[0]):
        jobs[pool.submit(compile_ahead, slots[name][0], slots[name][1], ragged, candidate)] = name, ragged, candidate
    say(f"{len(jobs)} kernels to compile")

    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": []}
    try:
        report["check"] = check()
    except Exception:
        traceback.print_exc(limit=4)
    ready: dict[tuple[str, bool], list[Candidate]] = {}
    pending = set(jobs)
    seconds: list[float] = []
    while pending and time.time() < START + 0.4 * options.seconds:
        done, pending = wait(pending, timeout=5, return_when=FIRST_COMPLETED)
        for job in done:
            name, ragged, candidate = jobs[job]
            try:
                seconds.append(job.result())
                ready.setdefault((name, ragged), []).append(candidate)
            except Exception as error:
                say(f"compile {name} {candidate.part} {candidate}: FAILED {type(error).__name__} {str(error)[:200]}")
    say(f"{len(seconds)} compiled, mean {statistics.mean(seconds or [0]):.1f} s each, {len(pending)} left out")
    for job in pending:
        job.cancel()
    pool.shutdown(wait=False, cancel_futures=True)

    for length in options.lengths:
        for name in options.masks:
            if time.time() > deadline - 25:
                say(f"out of time before {name} {length}")
                continue
            try:
                mask = make_mask(name, length, "cuda")
                say(f"{name} {mask.length}, area {mask.area / mask.length**2:.3f} of the square")
                found = ready.get((name, mask.length % TILE != 0), [])
                report["results"].append(sweep(mask, found, options.rounds))
                write(report)
            except Exception as error:
                traceback.print_exc(limit=4)
                say(f"{name} {length}: FAILED {type(error).__name__} {str(error)[:300]}")
            torch.cuda.empty_cache()
    write(report)
    wrong = [f"{c['mask']} {c['length']}" for c in report.get("check", []) if not c["ok"]]
    print("\ncheck:", "all right" if report.get("check") and not wrong else f"WRONG: {wrong}")
    print(table(report["results"]), flush=True)


def write(report: dict[str, Any]) -> None:
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "kernels.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
