"""Describing a mask beside FlexAttention's compiled `create_block_mask`, in half a minute, for whoever makes it faster.

    python -m benchmarks.describe [causal:32768 clear_patches:32768 ...] [--warps 4 8] [--alone]

Before a mask is timed its area is compared with the closed form; of masks that are tested by bits also every pair that
the descriptor shows with the mask_mod. Medians of 5 interleaved rounds of back-to-back calls, the host's time a call,
and a replay as a CUDA graph, which is the GPU's time alone. `--warps` times masks by bits with other numbers of warps.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import cmir
from benchmarks import masks
from benchmarks.timing import graph_ms, host_us, interleaved

CASES = ("causal", "hstu", "shared_prompt", "clear", "packed_hstu", "clear_patches", "strided")
ROWS = 4096
"""Rows that are compared with the mask_mod at once."""


def check(case: masks.Case) -> None:
    """Raises AssertionError if the descriptor says another mask than the mask_mod."""
    desc = case.describe("cuda").check()
    assert desc.area.tolist() == [case.area], (desc.area.tolist(), case.area)
    if not desc.signature.bits:
        return
    n, dense = case.tokens, desc.to_dense()[0, 0]
    column = torch.arange(n, device="cuda")[None, :]
    for first in range(0, n, ROWS):
        row = torch.arange(first, min(n, first + ROWS), device="cuda")[:, None]
        assert torch.equal(dense[first : first + ROWS], case.mask_mod(0, 0, row, column).expand(len(row), n)), first


def block_mask(case: masks.Case) -> Callable[[], Any]:
    """FlexAttention's way, compiled."""
    from torch.nn.attention.flex_attention import create_block_mask

    torch._dynamo.reset()
    build: Any = torch.compile(create_block_mask, dynamic=False)
    return lambda: build(case.mask_mod, None, None, case.tokens, case.tokens, device="cuda")


def with_warps(case: masks.Case, warps: int) -> Callable[[], cmir.Descriptor]:
    """The launch of a plan with another number of warps, without the checks of `describe`."""
    *_, plan = case.compiled._describer.plans.values()  # pyright: ignore[reportPrivateUsage]
    other = replace(plan, options={"num_warps": warps}, _ready={})
    return lambda: other.build_from(case.metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[f"{name}:32768" for name in CASES], metavar="mask:length")
    parser.add_argument("--warps", nargs="+", type=int, default=())
    parser.add_argument("--alone", action="store_true", help="without create_block_mask")
    arguments = parser.parse_args()
    print(f"{'':22} {'call us':>8} {'host us':>8} {'graph us':>8}   create_block_mask us, ratio", flush=True)
    for text in arguments.cases:
        name, _, length = text.partition(":")
        case = getattr(masks, name)(int(length), "cuda")
        check(case)
        bits = case.describe("cuda").signature.bits
        ours: dict[str, Callable[[], cmir.Descriptor]] = {"": lambda case=case: case.describe("cuda")}
        ours |= {f" w{w}": with_warps(case, w) for w in (arguments.warps if bits else ())}
        calls: dict[str, Callable[[], Any]] = dict(ours)
        if not arguments.alone:
            calls["peer"] = block_mask(case)
        times = {key: statistics.median(found) * 1e3 for key, found in interleaved(calls, 5, "cuda").items()}
        check(case)  # launches leave their counters as they found them
        for warps, call in ours.items():
            label = f"{name} {case.tokens}{warps}"
            line = f"{label:22} {times[warps]:8.1f} {host_us(call, 'cuda', 50):8.1f} {graph_ms(call) * 1e3:8.1f}"
            peer = times.get("peer")
            print(line + ("" if peer is None else f"   {peer:8.1f} {peer / times[warps]:6.2f}"), flush=True)


if __name__ == "__main__":
    main()
