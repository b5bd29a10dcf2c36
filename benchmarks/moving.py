"""Tokens of q, k and v put into a mask's layout, in one launch (`cmir.runtime.moving`) beside torch's indexing.

    python -m benchmarks.moving [--heads 32 8] [--dim 128]

bf16, B=1, the tokens of `clear_patches` at 32K. Both move the same bytes, which are compared first: what is read and
written, once each, at 4.3 TB/s is the floor. Medians of 5 interleaved rounds, forward alone and with gradients.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import masks
from benchmarks.timing import host_us, interleaved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", nargs=2, type=int, default=(32, 8), help="query heads, key/value heads")
    parser.add_argument("--dim", type=int, default=128)
    arguments = parser.parse_args()
    case = masks.clear_patches(32768, "cuda")
    desc = case.describe("cuda")
    assert desc.tokens is not None and desc.tokens.rows is not None
    tokens, order = desc.tokens, desc.tokens.rows
    inverse = torch.argsort(order)
    heads: list[int] = [arguments.heads[0], arguments.heads[1], arguments.heads[1]]
    q, k, v = (
        torch.randn(1, count, case.tokens, arguments.dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for count in heads
    )
    inputs, long = (q, k, v), order.long()

    def indexed() -> tuple[torch.Tensor, ...]:
        return tuple(x[:, :, long] for x in inputs)

    def selected() -> tuple[torch.Tensor, ...]:
        return tuple(x.index_select(2, order) for x in inputs)

    def fused() -> tuple[torch.Tensor, ...]:
        return tokens.into(*inputs)

    grads = [torch.randn_like(x) for x in inputs]
    ways: dict[str, Callable[[], tuple[torch.Tensor, ...]]] = {
        "fused": fused,
        "x[:, :, i]": indexed,
        "index_select": selected,
    }
    calls: dict[str, Callable[[], Any]] = {}
    for name, way in ways.items():
        found = way()
        back = torch.autograd.grad(found, inputs, grads, retain_graph=True)
        for x, y, g, b in zip(inputs, found, grads, back, strict=True):
            assert torch.equal(y, x[:, :, long]) and torch.equal(b, g[:, :, inverse]), name
        calls[name] = way
        calls[f"{name} backward"] = lambda found=found: torch.autograd.grad(found, inputs, grads, retain_graph=True)
    size = 2 * sum(x.nbytes for x in inputs)
    print(f"{size / 2**20:.0f} MiB read and written, {size / 4.3e6:.0f} us at 4.3 TB/s")
    for name, times in interleaved(calls, 5, "cuda").items():
        us = statistics.median(times) * 1e3
        print(
            f"{name:24} {us:8.1f} us {size / us / 1e6:6.2f} TB/s, host {host_us(calls[name], 'cuda'):6.1f} us",
            flush=True,
        )


if __name__ == "__main__":
    main()
