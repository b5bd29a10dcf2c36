"""Times of GPU work: CUDA events around back-to-back calls, in interleaved rounds. On a CPU, to try out: wall clock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

Function = Callable[[], Any]

SLICE_MS = 25.0
"""About how long one function is timed in one round."""

FEWEST_CALLS, MOST_CALLS = 3, 200


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def elapsed_ms(function: Function, calls: int, device: str) -> float:
    """Milliseconds per call of `calls` calls without a pause: of the GPU, or of the host where launching is slower."""
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) * 1e3 / calls
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def interleaved(functions: Mapping[str, Function], rounds: int, device: str) -> dict[str, list[float]]:
    """Milliseconds per call of each function, one figure a round. Every round times every function, in an order of its
    own: what runs at the power limit is slower after another that does than after one that leaves the GPU cool. The L2
    cache is not flushed."""
    calls: dict[str, int] = {}
    for name, function in functions.items():
        function()  # compiles, allocates
        once = elapsed_ms(function, 1 if device == "cpu" else FEWEST_CALLS, device)
        calls[name] = 1 if device == "cpu" else max(FEWEST_CALLS, min(MOST_CALLS, round(SLICE_MS / once)))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions)
    for turn in range(rounds):
        random.Random(turn).shuffle(order)
        for name in order:
            samples[name].append(elapsed_ms(functions[name], calls[name], device))
    return samples


def host_us(function: Function, device: str, calls: int = 20, milliseconds: float = 0.0) -> float:
    """Microseconds of host time per call, the GPU idle at the start and its queue never full. The best of three.

    `milliseconds`: what a call takes the GPU, if it is known; of long ones fewer are made, since all must end.
    """
    calls = max(FEWEST_CALLS, min(calls, int(SLICE_MS / milliseconds))) if milliseconds else calls
    best = float("inf")
    for _ in range(1 if device == "cpu" else 3):
        synchronize(device)
        begin = time.perf_counter()
        for _ in range(1 if device == "cpu" else calls):
            function()
        best = min(best, (time.perf_counter() - begin) * 1e6 / (1 if device == "cpu" else calls))
        synchronize(device)
    return best


def graph_ms(function: Function, replays: int = 50) -> float:
    """Milliseconds of a replay of `function` captured as a CUDA graph: the GPU's time alone."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = function()  # what the graph writes must outlive its replays
    graph.replay()
    milliseconds = elapsed_ms(graph.replay, replays, "cuda")
    del kept
    return milliseconds
