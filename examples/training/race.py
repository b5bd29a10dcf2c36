"""Training steps of one model with several attention engines: interleaved rounds, medians, tokens a second.

A step is all of it: the mask of a new batch, forward, backward, optimizer. Every engine trains the same model, one
after another, so that clocks and heat are the same for all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.layers import QWEN3_8B, TINY, Attend, Shape

START = time.monotonic()

Prepare = Callable[[Any], Attend]
"""What an engine does with a batch: its mask, ready to attend with."""


def say(*words: object) -> None:
    print(f"[{time.monotonic() - START:5.1f} s]", *words, file=sys.stderr, flush=True)


def options(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", choices=("small", "full"), default="small",
        help="small: check, and a few steps, on a GPU or a CPU; full: Qwen3-8B's layers and 32K tokens, on a GPU",
    )  # fmt: skip
    parser.add_argument("--layers", type=int, help="by default 1 small, 8 full, of about 7 GB each")
    parser.add_argument("--steps", type=int, help="timed steps of each engine, by default 1 small, 3 full")
    parser.add_argument("--recompute", action="store_true", help="recompute activations: many more layers fit")
    parser.add_argument("--engines", default="", help="of those that the script has, by commas; by default all")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    chosen = parser.parse_args()
    chosen.full = chosen.size == "full"
    chosen.layers = chosen.layers or (8 if chosen.full else 1)
    chosen.steps = chosen.steps or (3 if chosen.full else 1)
    chosen.device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen.dtype = torch.bfloat16 if chosen.full else torch.float32
    if chosen.full and chosen.device == "cpu":
        parser.error("--size full needs a GPU")
    return chosen


def shape_of(chosen: argparse.Namespace) -> Shape:
    return QWEN3_8B if chosen.full else TINY


def with_cmir(describe: Callable[[Any], Any]) -> Prepare:
    """cmir's kernels over the descriptor of a batch."""
    import cmir

    def prepare(batch: Any) -> Attend:
        desc = describe(batch)
        return lambda q, k, v: cmir.attention(q, k, v, desc)

    return prepare


def fill(buffers: Mapping[str, torch.Tensor], batch: Any) -> None:
    """Copies the batch's tables of these names."""
    for name, buffer in buffers.items():
        buffer.copy_(getattr(batch, name))


def with_flex(mask_mod: Any, buffers: Mapping[str, torch.Tensor], tokens: int, device: str, backend: str) -> Prepare:
    """FlexAttention, compiled, over a block mask of the batch. `mask_mod` reads `buffers`, which are overwritten with
    the batch's tables: the same tensors every time, so that nothing is compiled twice."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    attention: Any = torch.compile(flex_attention, dynamic=False)
    build: Any = torch.compile(create_block_mask, dynamic=False)
    kernels = {"BACKEND": backend} if backend == "FLASH" else None

    def prepare(batch: Any) -> Attend:
        fill(buffers, batch)
        blocks = build(mask_mod, None, None, tokens, tokens, device=device)
        return lambda q, k, v: attention(q, k, v, block_mask=blocks, enable_gqa=True, kernel_options=kernels)

    return prepare


def flex_backends() -> dict[str, str]:
    """Names of engines, and what FlexAttention calls them: FlashAttention 4 only where it is installed."""
    try:
        import flash_attn.cute  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return {"flex-triton": "TRITON"}
    return {"flex-triton": "TRITON", "flex-flash": "FLASH"}


@dataclass
class Task:
    """What is trained: a model, batches, and a loss of a batch's attention."""

    name: str
    tokens: int
    model: nn.Module
    batch: Callable[[int], Any]
    """The batch of a step: another one for each number."""
    loss: Callable[[Any, Attend], torch.Tensor]
    engines: Mapping[str, Prepare]


def race(task: Task, chosen: argparse.Namespace) -> dict[str, Any]:
    """Times `chosen.steps` steps of each engine; prints and returns what was found, beside the first engine."""
    fused = chosen.device == "cuda"
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=1e-4 if chosen.full else 3e-3, fused=fused)
    wanted = chosen.engines.split(",") if chosen.engines else list(task.engines)
    if unknown := [name for name in wanted if name not in task.engines]:
        raise SystemExit(f"no engine {', '.join(unknown)}; there are {', '.join(task.engines)}")

    def gradients(name: str, batch: Any) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = task.loss(batch, task.engines[name](batch))
        loss.backward()
        return loss.detach()

    running, failed = [], {}
    losses: dict[str, float] = {}
    batch = task.batch(0)
    for name in wanted:
        say(f"{task.name}: {name}, first step (compiles)")
        try:
            losses[name] = gradients(name, batch).item()
            running.append(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            say(f"{name}: FAILED, {failed[name]}")
    agree = all(abs(losses[name] - losses[running[0]]) <= 2e-2 * abs(losses[running[0]]) for name in running)
    say("the loss of the same weights:", ", ".join(f"{name} {losses[name]:.5f}" for name in running))
    optimizer.step()
    samples: dict[str, list[float]] = {name: [] for name in running}
    for number in range(1, chosen.steps + 1):
        batch = task.batch(number)
        for name in running:
            synchronize(chosen.device)
            begin = time.perf_counter()
            loss = gradients(name, batch)
            optimizer.step()
            synchronize(chosen.device)
            samples[name].append((time.perf_counter() - begin) * 1e3)
            say(f"step {number}: {name} {samples[name][-1]:.0f} ms, loss {loss.item():.4f}")
    report = {
        "task": task.name, "command": "python " + shlex.join(sys.argv), "tokens": task.tokens,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "layers": chosen.layers, "shape": shape_of(chosen)._asdict(), "dtype": str(chosen.dtype),
        "recompute": chosen.recompute, "device": torch.cuda.get_device_name() if fused else platform.processor(),
        "torch": torch.__version__, "cmir_backend": os.environ.get("CMIR_BACKEND", "default"),
        "losses_agree": agree, "first_losses": losses, "failed": failed,
        "ms": {name: statistics.median(times) for name, times in samples.items()}, "samples_ms": samples,
        "memory_gib": torch.cuda.max_memory_allocated() / 2**30 if fused else None,
    }  # fmt: skip
    report["tokens_per_s"] = {name: task.tokens / ms * 1e3 for name, ms in report["ms"].items()}
    print(f"{task.name}: {task.tokens} tokens, {chosen.layers} layers of {shape_of(chosen)}")
    for name, rate in report["tokens_per_s"].items():
        ratio = report["ms"][name] / report["ms"][running[0]]
        print(f"  {name:24}{report['ms'][name]:10.1f} ms a step{rate:12.0f} tokens/s{ratio:8.2f}x {running[0]}'s time")
    if not agree:
        print(f"  the engines' losses differ: {losses}")
    write(report, chosen.json)
    return report


def write(report: dict[str, Any], path: Path | None) -> None:
    """To the path, and under the same name into the folder $OUT, if there is one."""
    paths = [path] if path else []
    if path and "OUT" in os.environ:
        paths.append(Path(os.environ["OUT"]) / path.name)
    for place in paths:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(report, indent=1))


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def assert_same_pairs(mask_mod: Any, desc: Any) -> None:
    """A mask_mod of FlexAttention and a descriptor of one mask say the same."""
    q, k = (torch.arange(length, device=desc.device) for length in (desc.rows, desc.cols))
    seen = torch.as_tensor(mask_mod(0, 0, q[:, None], k[None, :])).expand(desc.rows, desc.cols)
    assert torch.equal(desc.to_dense()[0, 0], seen)


def assert_same_gradients(model: nn.Module, loss: torch.Tensor, other: torch.Tensor) -> None:
    """Both losses, and their gradients by all weights, are equal to rounding."""
    torch.testing.assert_close(loss, other, rtol=1e-4, atol=1e-5)
    weights = list(model.parameters())
    for a, b in zip(torch.autograd.grad(loss, weights), torch.autograd.grad(other, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-5)
