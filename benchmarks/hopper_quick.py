"""The Hopper kernels in half a minute, for whoever tunes them: forward and backward beside the portable kernels.

    python -m benchmarks.hopper_quick [causal:4096 hstu:16384 clear_patches:8192 ...] [--heads 32 8] [--dim 192 128]

bf16, B=1. Medians of 5 interleaved rounds, TFLOP/s of visible pairs; at 1024 tokens also host time and CUDA graphs.
Nothing is compared with a reference: `benchmarks.operator` and tests/gpu do that.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch

import cmir
from benchmarks import masks
from benchmarks.timing import graph_ms, host_us, interleaved

CASES = ("causal:1024", "causal:4096", "causal:16384", "hstu:16384", "shared_prompt:16384", "clear_patches:16384")
BACKENDS = ("gluon", "triton")
PASSES = {"forward": (2, 2), "backward": (6, 4)}
"""Operations for each visible pair and column of a head of q and k, and of a head of v."""


def functions(case: masks.Case, heads: tuple[int, int], dims: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    """What is timed: `forward gluon`, `backward gluon`, ..."""
    desc, n = case.describe("cuda"), case.tokens
    shapes = zip((*heads, heads[1], heads[0]), (dims[0], dims[0], dims[1], dims[1]), strict=True)
    q, k, v, dout = (torch.randn(1, count, n, dim, device="cuda", dtype=torch.bfloat16) for count, dim in shapes)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    attention: Any = cmir.attention
    found: dict[str, Callable[[], Any]] = {}
    for backend in BACKENDS:
        out = attention(*inputs, desc, backend=backend)
        found[f"forward {backend}"] = lambda backend=backend: attention(*inputs, desc, backend=backend)
        found[f"backward {backend}"] = lambda out=out: torch.autograd.grad(out, inputs, dout, retain_graph=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="mask:length")
    parser.add_argument("--heads", nargs=2, type=int, default=(32, 8), help="query heads, key/value heads")
    parser.add_argument("--dim", nargs="+", type=int, default=[128], help="head dim of q and k, and of v if another")
    arguments = parser.parse_args()
    heads, dims = (arguments.heads[0], arguments.heads[1]), (arguments.dim[0], arguments.dim[-1])
    for text in arguments.cases:
        name, _, length = text.partition(":")
        case = getattr(masks, name)(int(length), "cuda")
        timed = functions(case, heads, dims)
        work = {key: (a * dims[0] + b * dims[1]) * heads[0] * case.area for key, (a, b) in PASSES.items()}
        print(f"{name} {case.tokens}", flush=True)
        for what, times in interleaved(timed, 5, "cuda").items():
            ms = statistics.median(times)
            line = f"  {what:16} {ms:8.3f} ms {work[what.split()[0]] / ms / 1e9:5.0f} TFLOP/s"
            if case.tokens <= 1024:
                line += f", host {host_us(timed[what], 'cuda'):.0f} us"
                if what.startswith("forward"):
                    line += f", graph {1e3 * graph_ms(timed[what]):.0f} us"
            print(line, flush=True)


if __name__ == "__main__":
    main()
