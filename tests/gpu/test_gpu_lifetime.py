# pyright: basic
"""How long things live, and who else runs meanwhile: graphs, streams, layers, checkpoints, torch.compile, many runs of
one thing, memory. Every result is compared with the first one, to the bit."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counts import Counts
from support import BF16, DEVICE, GPU, Attend, check_attention, deterministic, make_tensors, only_gpu, step
from torch.utils.checkpoint import checkpoint

import cmir
from cmir import zoo

DIM = 64 if GPU else 16
Tensors = tuple[torch.Tensor, ...]


def hstu_metadata(n: int, history: int, width: int) -> dict[str, Any]:
    """A user of `n` tokens: a history, then candidates of `width` tokens each."""
    token = np.arange(n)
    start = np.where(token < history, 0, history + (token - history) // width * width)
    return {
        "history": torch.tensor([history], dtype=torch.int32, device=DEVICE),
        "start": torch.tensor(start[None], dtype=torch.int32, device=DEVICE),
    }


def hstu(n: int, history: int, width: int) -> tuple[Any, np.ndarray]:
    """A descriptor, and what is visible."""
    metadata = hstu_metadata(n, history, width)
    mask = zoo.load("hstu")
    host = {"history": history, "start": metadata["start"][0].cpu().numpy()}
    return mask.describe(rows=n, **metadata), mask.dense(rows=n, **host)[None, None]


def same(first: Tensors, second: Tensors) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@only_gpu
def test_a_graph_replays_with_metadata_changed_in_place(attend: Attend) -> None:
    mask, n, attend = zoo.load("hstu"), 300, deterministic(attend)
    static = hstu_metadata(n, 100, 5)
    tensors = make_tensors(1, (4, 2), n, n, DIM, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]

    def run() -> tuple[Any, ...]:
        desc = mask.describe(rows=n, **static)
        out, lse = attend(inputs[0], inputs[1], inputs[2], desc, return_lse=True)
        return desc, out, lse, *torch.autograd.grad(out, inputs, tensors[3])

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        desc, *results = run()
    for history, width in ((0, 7), (300, 1), (137, 40), (299, 3)):
        for name, value in hstu_metadata(n, history, width).items():
            static[name].copy_(value)
        graph.replay()
        torch.cuda.synchronize()
        fresh, visible = hstu(n, history, width)
        assert torch.equal(desc.check().area, fresh.check().area)
        assert same(tuple(results), check_attention(attend, fresh, visible, tensors))
    static["start"][0, n - 1] = 2**31 - 1  # a candidate's fact is broken in a replay, too, and said
    graph.replay()
    with pytest.raises(cmir.MetadataError, match=r"start\[i\] <= i"):
        desc.check()


@only_gpu
def test_two_streams(attend: Attend) -> None:
    n, streams = 500, [torch.cuda.Stream() for _ in range(2)]
    users = [(200, 9), (450, 2)]
    tensors = [make_tensors(2, (4, 2), n, n, DIM, BF16), make_tensors(2, (4, 2), n, n, DIM, BF16)]
    tensors[1] = tuple(x.flip(0) for x in tensors[1])
    metadata = [hstu_metadata(n, *user) for user in users]
    first = [step(attend, zoo.load("hstu").describe(rows=n, **m), t) for m, t in zip(metadata, tensors, strict=True)]
    torch.cuda.synchronize()
    found: list[list[Tensors]] = [[], []]
    for _ in range(20):  # each stream describes and attends while the other one does
        for number, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                desc = zoo.load("hstu").describe(rows=n, **metadata[number])
                found[number].append(step(attend, desc, tensors[number]))
    torch.cuda.synchronize()
    for number in (0, 1):
        assert all(same(first[number], one) for one in found[number])


@only_gpu
def test_a_descriptor_of_one_stream_is_used_on_another(attend: Attend) -> None:
    n, side, attend = 500, torch.cuda.Stream(), deterministic(attend)
    tensors = make_tensors(2, (4, 2), n, n, DIM, BF16)
    desc, visible = hstu(n, 200, 9)
    want = check_attention(attend, desc, visible, tensors)
    metadata = hstu_metadata(n, 200, 9)
    for _ in range(5):
        desc = zoo.load("hstu").describe(rows=n, **metadata)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            got = step(attend, desc, tensors)
        torch.cuda.current_stream().wait_stream(side)
        assert same(want, got)


def test_one_descriptor_serves_every_layer(attend: Attend) -> None:
    n, layers = 300 if GPU else 24, 8 if GPU else 2
    desc, visible = hstu(n, n // 2, 5)
    before = desc.memory.clone()
    for layer in range(layers):
        heads = ((4, 2), (4, 4), (2, 1))[layer % 3]
        tensors = make_tensors(2, heads, n, n, DIM, BF16)
        check_attention(attend, desc, visible, tuple(x * (1 + 0.1 * layer) for x in tensors))
    assert torch.equal(before, desc.memory)


def layer(attend: Attend, x: torch.Tensor, weight: torch.Tensor, desc: Any) -> torch.Tensor:
    """A layer's attention: projections, heads, output."""
    q, k, v = (x @ weight).unflatten(-1, (3, 2, DIM)).permute(2, 0, 3, 1, 4).unbind(0)
    return attend(q, k, v, desc).transpose(1, 2).flatten(-2)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(attend: Attend, reentrant: bool) -> None:
    n, attend = 300 if GPU else 24, deterministic(attend)
    desc, _ = hstu(n, n // 2, 5)
    generator = torch.Generator(DEVICE).manual_seed(1)
    x: Any = torch.randn(2, n, 2 * DIM, generator=generator, device=DEVICE).to(BF16).requires_grad_()
    weight: Any = (torch.randn(2 * DIM, 6 * DIM, generator=generator, device=DEVICE) * 0.1).to(BF16).requires_grad_()

    def model(again: bool) -> torch.Tensor:
        y: Any = x
        for _ in range(3):
            call = (lambda y: checkpoint(layer, attend, y, weight, desc, use_reentrant=reentrant)) if again else None
            y = y + (layer(attend, y, weight, desc) if call is None else call(y))
        return y.float().square().mean()

    want = torch.autograd.grad(model(False), (x, weight))
    model(True).backward()
    assert torch.equal(x.grad, want[0])
    torch.testing.assert_close(weight.grad, want[1], rtol=1e-2, atol=1e-4)  # summed in another order


@pytest.mark.parametrize("engine", ["aot_eager", "inductor"] if GPU else ["aot_eager"])
def test_torch_compile_in_one_graph(attend: Attend, engine: str) -> None:
    torch._dynamo.reset()
    generator = torch.Generator(DEVICE).manual_seed(2)
    weight = (torch.randn(2 * DIM, 6 * DIM, generator=generator, device=DEVICE) * 0.1).to(BF16)
    compiled = torch.compile(
        lambda x, weight, desc: layer(attend, x, weight, desc), backend=engine, fullgraph=True, dynamic=True
    )
    for n, history in ((300, 200), (300, 50), (411, 123)) if GPU else ((24, 12), (31, 12)):
        desc, _ = hstu(n, history, 4)
        x = torch.randn(2, n, 2 * DIM, generator=generator, device=DEVICE).to(BF16)
        results = []
        for run in (compiled, lambda x, weight, desc: layer(attend, x, weight, desc)):
            own = weight.detach().requires_grad_()
            out = run(x, own, desc)
            results.append((out.detach(), *torch.autograd.grad(out.float().square().mean(), own)))
        for ours, eager in zip(*results, strict=True):
            torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-3)
    torch._dynamo.reset()


def test_the_operators_keep_their_word() -> None:
    from cmir.runtime.operators import attention_operator

    n = 200 if GPU else 24
    desc, _ = hstu(n, n // 2, 5)
    q, k, v = (torch.randn(1, 2, n, DIM, device=DEVICE, requires_grad=True) for _ in range(3))
    torch.library.opcheck(attention_operator, (q, k, v, desc.memory, desc.header, 0.25, "triton", True))


def test_the_same_bits_in_100_runs(attend: Attend, counts: Counts) -> None:
    n = 700 if GPU else 24
    metadata = hstu_metadata(n, n // 2, 5)
    tensors = make_tensors(2, (4, 2), n, n, DIM, BF16)
    first: Tensors | None = None
    for _ in range(100 if GPU else 3):
        found = step(attend, zoo.load("hstu").describe(rows=n, **metadata), tensors)
        first = found if first is None else first
        assert same(first, found)
        counts("runs that gave the same bits", 1)


@only_gpu
def test_ten_thousand_launches_never_race(attend: Attend, counts: Counts) -> None:
    """Describe, forward and backward, over and over in one process, on two streams at once; what differs from the first
    result is counted on the device, so that nothing waits for the host."""
    rounds, launches = 650, 0
    settings = [
        ("hstu", 300, (150, 5)),
        ("hstu", 129, (0, 3)),
        ("global_window_causal", 257, None),
        ("causal", 64, None),
    ]
    runs: list[tuple[Any, dict[str, Any], Tensors, Tensors]] = []
    for name, n, user in settings:
        metadata: dict[str, Any] = hstu_metadata(n, *user) if user else {"device": DEVICE}
        tensors = make_tensors(1, (4, 2), n, n, DIM, BF16)
        first = step(attend, zoo.load(name).describe(rows=n, **metadata).check(), tensors)
        runs.append((zoo.load(name), {"rows": n, **metadata}, tensors, first))
    wrong = [torch.zeros((), dtype=torch.int64, device=DEVICE) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in wrong]
    torch.cuda.synchronize()
    for turn in range(rounds):
        for number, (mask, arguments, tensors, first) in enumerate(runs):
            which = (turn + number) % 2
            with torch.cuda.stream(streams[which]):
                found = step(attend, mask.describe(**arguments), tensors)
                for a, b in zip(found, first, strict=True):
                    wrong[which] += (a != b).any()
            launches += 4  # preprocess, forward, delta, backward
        if turn % 50 == 49:
            torch.cuda.synchronize()  # the two streams' memory is not freed out of order without end
    torch.cuda.synchronize()
    assert launches >= 10_000
    assert [int(count) for count in wrong] == [0, 0]
    counts("launches on two streams that gave the same bits", launches)


@only_gpu
def test_memory_is_flat(attend: Attend, counts: Counts) -> None:
    """20 masks, three times: the device's memory, what the allocator holds, and the process's own."""
    masks, n = [], 400
    for width in range(2, 22):
        spec = cmir.MaskSpec(f"flat_{width}")
        spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i - spec.j < width))
        masks.append(cmir.compile(spec))
    tensors = make_tensors(1, (4, 2), n, n, DIM, BF16)
    allocated, reserved, resident = [], [], []
    for _ in range(3):
        for mask in masks:
            step(attend, mask.describe(rows=n, device=DEVICE), tensors)
        gc.collect()
        torch.cuda.synchronize()
        allocated.append(torch.cuda.memory_allocated())
        reserved.append(torch.cuda.memory_reserved())
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident.append(pages * os.sysconf("SC_PAGE_SIZE"))
    assert allocated[1:] == allocated[:1] * 2, allocated
    assert reserved[1:] == reserved[:1] * 2, reserved
    assert resident[2] - resident[1] < 2**22, resident
    counts("bytes of device memory gained in two more rounds over 20 masks", allocated[2] - allocated[0])


@only_gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer(tool: str, counts: Counts) -> None:
    """The small cases of tests/gpu/sanitized.py under NVIDIA's compute-sanitizer.

    racecheck is for the portable kernels. It does not follow the barriers in shared memory by which the warps of a
    Hopper kernel hand tiles to one another (nor Triton's own, which start those warps), and calls every hand-over a
    race: what is asked of those kernels is the same bits from thousands of launches, in the tests above.
    """
    if shutil.which("compute-sanitizer") is None and not Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        pytest.skip("there is no compute-sanitizer here; it comes with the CUDA toolkit")
    script = Path(__file__).with_name("sanitize.sh")
    backends = {**os.environ, "CMIR_SANITIZE": "triton" if tool == "racecheck" else "triton,gluon"}
    done = subprocess.run(["bash", script, tool], capture_output=True, text=True, timeout=170, env=backends)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "ERROR SUMMARY: 0 errors" in done.stdout or "RACECHECK SUMMARY: 0 hazards" in done.stdout, done.stdout[
        -4000:
    ]
