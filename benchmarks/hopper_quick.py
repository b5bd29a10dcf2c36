"""The Hopper kernels in half a minute, for whoever tunes them: forward and backward beside the portable kernels.

    python -m benchmarks.hopper_quick [causal:4096 hstu:16384 clear_patches:8192 ...] [--heads 32 8] [--dim 192 128]

    python -m benchmarks.hopper_quick causal:32768 packed_hstu:32768 every_partial:8192 --only forward \\
        --dim 64 --forward stages=2 --forward section=16

    git worktree add /tmp/before HEAD~1
    python -m benchmarks.hopper_quick causal:8192 --only forward --beside /tmp/before/cmir/lowering/skeletons

bf16, B=1. Medians of 5 interleaved rounds, TFLOP/s of visible pairs; at 1024 tokens also host time and CUDA graphs.
`every_partial` is causal with every tile listed as a partial one. `--forward` adds the forward kernel with other
constants (`cmir.runtime.hopper.ForwardConstants`) or another number of heads at a time (`section`) than its own,
`--beside` the kernels of other skeletons. How far outputs are from those of the portable kernels is printed; else
nothing is compared with a reference: `benchmarks.operator` and tests/gpu do that.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import cmir
from benchmarks import masks
from benchmarks.timing import graph_ms, host_us, interleaved
from cmir.lowering import skeletons
from cmir.runtime import hopper, hopper_backward
from cmir.runtime.loader import load

CASES = ("causal:1024", "causal:4096", "causal:16384", "hstu:16384", "shared_prompt:16384", "clear_patches:16384")
BACKENDS = ("gluon", "triton")
PASSES = {"forward": (2, 2), "backward": (6, 4)}
"""Operations for each visible pair and column of a head of q and k, and of a head of v."""


def describe(text: str) -> tuple[masks.Case, cmir.Descriptor]:
    """The case of `mask:length`, and its descriptor."""
    name, _, length = text.partition(":")
    every = name == "every_partial"
    case: masks.Case = getattr(masks, "causal" if every else name)(int(length), "cuda")
    desc = case.describe("cuda")
    if every:
        counts, index = desc.row_count.view(-1, 2), desc.row_index.view(-1, desc.widths[0])
        for tile_row, (partial, full) in enumerate(counts.tolist()):  # visited from the last to the first
            visited = [index[tile_row, :partial].flip(0), index[tile_row, desc.widths[0] - full :]]
            index[tile_row, : partial + full] = torch.cat(visited).flip(0)
        counts[:, 0] += counts[:, 1]
        counts[:, 1] = 0
    return case, desc


def variant(text: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: cmir.Descriptor) -> Callable[[], Any]:
    """The forward kernel with the constants that `text` says: name=number, ..."""
    wanted = {name: int(number) for name, _, number in (part.partition("=") for part in text.split(","))}
    plan = hopper.ForwardPlan(q, k, v, desc, **wanted)
    scale = math.log2(math.e) / math.sqrt(q.shape[3])
    return lambda: plan.launch(q, k, v, desc, scale)


def label(folder: Path) -> str:
    """What kernels of other skeletons are called: the folder's name but for what all checkouts have."""
    return str(folder).removesuffix("cmir/lowering/skeletons").rstrip("/")[-12:]


def beside(
    folder: Path, case: masks.Case, desc: cmir.Descriptor, inputs: Sequence[torch.Tensor], dout: torch.Tensor
) -> dict[str, Callable[[], Any]]:
    """The two passes by the kernels of the skeletons in `folder`, whose plans are made while those are in place; their
    hooks and parameters must be those of the present ones."""
    with mock.patch.object(skeletons, "__path__", [str(folder)]):
        module = load(type(case.compiled)._gluon.func(case.compiled))  # pyright: ignore[reportPrivateUsage]
    q, k, v = (x.detach() for x in inputs)
    scale = 1 / math.sqrt(q.shape[3])
    with (
        mock.patch.object(hopper, "kernels", lambda _: module),
        mock.patch.object(hopper_backward, "kernels", lambda _: module),
    ):
        forward = hopper.ForwardPlan(q, k, v, desc)
        out, lse = forward.launch(q, k, v, desc, scale * math.log2(math.e))
        backward = hopper_backward.BackwardPlan(q, k, v, out, dout, False, desc)
    return {
        f"forward {label(folder)}": lambda: forward.launch(q, k, v, desc, scale * math.log2(math.e)),
        f"backward {label(folder)}": lambda: backward.launch(q, k, v, out, lse, dout, None, desc, scale),
    }


def functions(
    case: masks.Case, desc: cmir.Descriptor, heads: tuple[int, int], dims: tuple[int, int], variants: Sequence[str],
    folders: Sequence[Path],
) -> dict[str, Callable[[], Any]]:  # fmt: skip
    """What is timed: `forward gluon`, `backward gluon`, ..."""
    shapes = zip((*heads, heads[1], heads[0]), (dims[0], dims[0], dims[1], dims[1]), strict=True)
    q, k, v, dout = (
        torch.randn(1, count, case.tokens, dim, device="cuda", dtype=torch.bfloat16) for count, dim in shapes
    )
    found: dict[str, Callable[[], Any]] = {f"forward {text}": variant(text, q, k, v, desc) for text in variants}
    inputs = [x.requires_grad_() for x in (q, k, v)]
    attention: Any = cmir.attention
    for backend in BACKENDS:
        out = attention(*inputs, desc, backend=backend)
        found[f"forward {backend}"] = lambda backend=backend: attention(*inputs, desc, backend=backend)
        found[f"backward {backend}"] = lambda out=out: torch.autograd.grad(out, inputs, dout, retain_graph=True)
    for folder in folders:
        found |= beside(folder, case, desc, inputs, dout)
    outs = {what: function() for what, function in found.items() if what.startswith("forward")}
    outs = {what: out[0] if isinstance(out, tuple) else out for what, out in outs.items()}
    for what, out in outs.items():
        print(f"  {what:24} {(out - outs['forward triton']).abs().max().item():.1e} from the portable kernel's output")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="mask:length")
    parser.add_argument("--heads", nargs=2, type=int, default=(32, 8), help="query heads, key/value heads")
    parser.add_argument("--dim", nargs="+", type=int, default=[128], help="head dim of q and k, and of v if another")
    parser.add_argument("--only", choices=PASSES, help="time this pass alone")
    parser.add_argument("--forward", action="append", default=[], metavar="NAME=NUMBER,...", help="as said above")
    parser.add_argument("--beside", action="append", default=[], type=Path, metavar="FOLDER", help="as said above")
    arguments = parser.parse_args()
    heads, dims = (arguments.heads[0], arguments.heads[1]), (arguments.dim[0], arguments.dim[-1])
    for text in arguments.cases:
        case, desc = describe(text)
        timed = functions(case, desc, heads, dims, arguments.forward, arguments.beside)
        timed = {what: function for what, function in timed.items() if arguments.only in (None, what.split()[0])}
        work = {key: (a * dims[0] + b * dims[1]) * heads[0] * case.area for key, (a, b) in PASSES.items()}
        print(text, case.tokens, flush=True)
        for what, times in interleaved(timed, 5, "cuda").items():
            ms = statistics.median(times)
            line = f"  {what:24} {ms:8.3f} ms {work[what.split()[0]] / ms / 1e9:5.0f} TFLOP/s"
            if case.tokens <= 1024:
                line += f", host {host_us(timed[what], 'cuda'):.0f} us"
                if what.startswith("forward"):
                    line += f", graph {1e3 * graph_ms(timed[what]):.0f} us"
            print(line, flush=True)


if __name__ == "__main__":
    main()
