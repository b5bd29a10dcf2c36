"""What a pass costs the host, its launches direct (`cmir.runtime.driver`) and Triton's own, and what autograd costs.

    python -m benchmarks.launching [causal:1024 hstu:1024 ...] [--json out.json]

bf16, B=1, 32 query heads, 8 key/value heads, D=128. Microseconds of the host for a call, and of a call in a row of
them (the GPU's time where that is longer); the two kinds of launches in turn, `--rounds` times. `autograd`: a function
that launches nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton

import cmir
from benchmarks import masks
from benchmarks.timing import elapsed_ms, host_us
from cmir.runtime import driver, hopper, hopper_backward, launch, launcher

CASES = ("causal:1024", "hstu:1024", "causal:4096")
CALLS = 100


def choose_launches(case: masks.Case, direct: bool) -> None:
    """Forgets all plans, so that those to come launch in one way."""
    found = driver.direct_of if direct else lambda *_: None
    launcher.direct_of = launch.direct_of = found  # pyright: ignore
    for plans in (hopper._plans, hopper_backward._plans, launch._ready, case.compiled._describer.plans):  # pyright: ignore
        plans.clear()


class Nothing(torch.autograd.Function):
    """A forward and a backward pass that launch nothing."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(q, k, v)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (*ctx.saved_tensors, None)


def passes(case: masks.Case, attend: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Forward, backward and both of `attend`, a function of q, k, v and memory for an output."""
    q, k, v, dout = (
        torch.randn(1, heads, case.tokens, 128, device="cuda", dtype=torch.bfloat16) for heads in (32, 8, 8, 32)
    )
    inputs = [x.requires_grad_() for x in (q, k, v)]
    memory = torch.empty_like(dout)
    out = attend(*inputs, memory)
    return {
        "forward": lambda: attend(*inputs, memory),
        "backward": lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True),
        "both": lambda: torch.autograd.grad(attend(*inputs, memory), inputs, dout),
    }


def microseconds(functions: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Of each the host's time, and that of a call among others."""
    for function in functions.values():
        for _ in range(5):
            function()
    return {
        name: (
            min(host_us(function, "cuda") for _ in range(3)),
            1e3 * statistics.median(elapsed_ms(function, CALLS, "cuda") for _ in range(5)),
        )
        for name, function in functions.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="mask:length")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "command": "python -m benchmarks.launching " + shlex.join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "triton": triton.__version__},
        "us": {},
    }
    for text in arguments.cases:
        name, _, length = text.partition(":")
        case: masks.Case = getattr(masks, name)(int(length), "cuda")
        for turn in range(arguments.rounds):
            for kind in ("direct", "triton", "autograd"):
                choose_launches(case, kind == "direct")
                desc = case.describe("cuda")
                attend: Any = (
                    Nothing.apply  # pyright: ignore[reportUnknownMemberType]
                    if kind == "autograd"
                    else lambda q, k, v, _, desc=desc: cmir.attention(q, k, v, desc, backend="gluon")
                )
                functions = passes(case, attend)
                if kind != "autograd":
                    functions["describe"] = lambda case=case: case.describe("cuda")
                found = report["us"][f"{text} {kind} {turn}"] = microseconds(functions)
                said = ", ".join(f"{what} {host:.0f} ({call:.0f})" for what, (host, call) in found.items())
                print(f"{text:14} {kind:9} {said}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
