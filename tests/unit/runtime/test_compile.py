# pyright: basic
"""`cmir.attention` where PyTorch transforms programs: torch.compile, autocast, activation checkpointing."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch._dynamo.testing
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import cmir
from cmir import zoo
from cmir.runtime.reference import reference_attention

TILE = (16, 16)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def block(x, weight, desc):
    """A layer's attention: projections, heads, output."""
    q, k, v = (x @ weight).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4).unbind(0)
    return cmir.attention(q, k, v, desc).transpose(1, 2).flatten(-2)


def run(function, x, weight, desc):
    weight = weight.detach().requires_grad_()
    out = function(x, weight, desc)
    (gradient,) = torch.autograd.grad(out.square().sum(), weight)
    return out.detach(), gradient


def describe(rows: int, history: int):
    start = torch.arange(rows, dtype=torch.int32) // 4 * 4
    start = torch.where(torch.arange(rows) < history, 0, start.clamp(min=history)).int()
    return zoo.load("hstu").describe(rows=rows, history=history, start=start, tile=TILE)


def test_compiled_in_one_graph_and_never_again() -> None:
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(block, backend=counter, fullgraph=True, dynamic=True)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(24, 96, generator=generator)
    for rows, history in ((40, 30), (40, 12), (57, 20), (33, 33)):
        x, desc = torch.randn(2, rows, 24, generator=generator), describe(rows, history)
        for ours, eager in zip(run(compiled, x, weight, desc), run(block, x, weight, desc), strict=True):
            torch.testing.assert_close(ours, eager, atol=1e-5, rtol=1e-5)
    assert counter.frame_count == 1


def test_a_descriptor_of_another_mask_does_not_recompile() -> None:
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(block, backend=counter, fullgraph=True, dynamic=True)
    x, weight = torch.randn(1, 40, 24), torch.randn(24, 96)
    windowed = zoo.load("prefix_lm").describe(rows=40, prefix=7, tile=TILE)
    for desc in (describe(40, 30), windowed):
        torch.testing.assert_close(compiled(x, weight, desc), block(x, weight, desc), atol=1e-5, rtol=1e-5)
    assert counter.frame_count == 1


def test_lse_and_its_gradient_compiled() -> None:
    def both(q, k, v, desc):
        out, lse = cmir.attention(q, k, v, desc, return_lse=True, scale=0.3)
        return out.sum() + lse.exp().sum(), lse.sum()

    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))
    desc = describe(40, 30)
    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    for pick in (0, 1):
        ours = torch.autograd.grad(compiled(q, k, v, desc)[pick], (q, k, v), allow_unused=True)
        eager = torch.autograd.grad(both(q, k, v, desc)[pick], (q, k, v), allow_unused=True)
        for a, b in zip(ours, eager, strict=True):
            torch.testing.assert_close(a if a is not None else torch.zeros_like(v), b, atol=1e-5, rtol=1e-4)


def test_the_operators_keep_their_word() -> None:
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))
    desc = describe(40, 30)
    from cmir.runtime.operators import attention_operator

    torch.library.opcheck(attention_operator, (q, k, v, desc.memory, desc.header, 0.25, "triton", True))


def test_wrong_shapes_are_named_when_the_operator_runs() -> None:
    compiled = torch.compile(lambda q, desc: cmir.attention(q, q, q, desc), backend="aot_eager", fullgraph=True)
    with pytest.raises(cmir.ShapeError, match="expected 40 rows, as the descriptor was built for, got 39"):
        compiled(torch.randn(1, 2, 39, 16), describe(40, 30))


def test_no_rows_compiled() -> None:
    desc = zoo.load("causal").describe(rows=0, device="cpu", tile=TILE)
    compiled = torch.compile(lambda q, desc: cmir.attention(q, q, q, desc).sum(), backend="aot_eager", fullgraph=True)
    q = torch.randn(1, 2, 0, 16, requires_grad=True)
    compiled(q, desc).backward()
    assert q.grad is not None and q.grad.shape == q.shape


def test_autocast() -> None:
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))
    desc = describe(40, 30)
    with torch.autocast("cpu", dtype=torch.float16):
        out = cmir.attention(q, k, v, desc)
    assert out.dtype == torch.float16
    want, _ = reference_attention(q, k, v, desc.to_dense())
    torch.testing.assert_close(out.float(), want, atol=5e-3, rtol=5e-3)
    out.float().square().sum().backward()
    assert q.grad is not None and q.grad.dtype == torch.float32


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_recomputes_the_same(reentrant: bool) -> None:
    x, desc = torch.randn(1, 40, 24, requires_grad=True), describe(40, 30)
    weight = torch.randn(24, 96)
    (want,) = torch.autograd.grad(block(x, weight, desc).square().sum(), x)
    out = checkpoint(block, x, weight, desc, use_reentrant=reentrant)
    out.square().sum().backward()
    assert x.grad is not None and torch.equal(x.grad, want)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf])
def test_a_scale_that_is_no_number_is_refused_as_it_is_outside(scale: float) -> None:
    desc, x = zoo.load("causal").describe(rows=40, tile=TILE), torch.ones(1, 1, 40, 16)
    compiled = torch.compile(lambda x: cmir.attention(x, x, x, desc, scale=scale), backend="aot_eager", fullgraph=True)
    with pytest.raises(cmir.CmirError, match=f"^scale: expected a finite number, got {scale}$"):
        compiled(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_forward_mode_is_refused_and_its_tangent_not_lost(backend: str) -> None:
    desc, x = zoo.load("causal").describe(rows=40, tile=TILE), torch.ones(1, 1, 40, 16)
    compiled = torch.compile(lambda x: cmir.attention(x, x, x, desc), backend=backend, fullgraph=True)
    compiled(x)
    with forward_ad.dual_level(), pytest.raises(cmir.CmirError) as refused:
        compiled(forward_ad.make_dual(x, x))
    said = "cmir.attention has no forward-mode derivative: compiled, it runs outside of dual levels alone"
    assert said in str(refused.value)


EXPORTED = """
import sys, torch, cmir, cmir.runtime.operators
from cmir import zoo
zoo.load("full").describe(rows=20).header  # the first mask of this process is another than the exported one
program, q, want = (load(path) for load, path in zip((torch.export.load, torch.load, torch.load), sys.argv[1:]))
try:
    program.module()(q)
except cmir.CmirError as error:
    print(error)
zoo.load("causal").describe(rows=20).header
torch.testing.assert_close(program.module()(q), want)
"""


def test_an_exported_program_is_of_no_other_mask_in_another_process(tmp_path: Path) -> None:
    desc, q = zoo.load("causal").describe(rows=20), torch.randn(1, 1, 20, 16)

    class Attends(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return cmir.attention(q, q, q, desc)

    paths = [tmp_path / name for name in ("program.pt2", "q.pt", "want.pt")]
    torch.export.save(torch.export.export(Attends(), (q,)), paths[0])
    torch.save(q, paths[1])
    torch.save(cmir.attention(q, q, q, desc), paths[2])
    said = subprocess.check_output([sys.executable, "-c", EXPORTED, *map(str, paths)], text=True)
    assert said.startswith(
        "desc: this process has no kernels for the descriptor; an exported program has a descriptor's memory, but "
        "not its kernels: describe that mask here first, with the same cmir, triton and Python, and run it then"
    )
