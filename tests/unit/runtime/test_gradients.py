# pyright: basic
"""Gradients against finite differences, which know nothing of how attention is computed."""

from typing import Any

import pytest
import torch
from support import Attend
from torch.autograd import forward_ad

import cmir
from cmir import zoo

ROWS, COLS, DIM = 7, 9, 16


def holes() -> Any:
    """Causal from the bottom right, less row 3 and column 4."""
    spec = cmir.MaskSpec("holes")
    seen = (spec.j <= spec.i + (COLS - ROWS)) & (spec.i != 3) & (spec.j != 4)
    spec.region("all", 0, spec.rows, visible=seen)
    return cmir.compile(spec).describe(rows=ROWS, cols=COLS, device="cpu", tile=(16, 16)).check()


def bits() -> Any:
    return zoo.load("strided", stride=3).describe(rows=ROWS, cols=COLS, device="cpu", tile=(16, 16)).check()


@pytest.mark.filterwarnings("ignore:Input #")  # gradcheck prefers float64, which kernels do not take
@pytest.mark.parametrize("describe", [holes, bits])
@pytest.mark.parametrize("what", ["out", "lse"])
def test_gradients_are_finite_differences(attend: Attend, describe: Any, what: str) -> None:
    desc, generator = describe(), torch.Generator().manual_seed(0)
    shapes = ((1, 2, ROWS, DIM), (1, 1, COLS, DIM), (1, 1, COLS, DIM))
    q, k, v = (torch.randn(shape, generator=generator).requires_grad_() for shape in shapes)
    seen = desc.to_dense()[0, 0].any(-1)

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out, lse = attend(q, k, v, desc, return_lse=True)
        return out[:, :, seen] if what == "out" else lse[:, :, seen] + 0 * v.sum()

    assert torch.autograd.gradcheck(function, (q, k, v), eps=1e-2, atol=2e-3, rtol=2e-2, fast_mode=True)


@pytest.mark.parametrize("rows", [5, 0])
def test_a_second_derivative_is_refused_and_not_taken_for_zero(rows: int) -> None:
    """Whether the incoming gradient needs a gradient, as of a square, or not, as of a sum."""
    desc = zoo.load("causal").describe(rows=rows)
    for loss in (lambda out: out.sum(), lambda out: out.square().sum()):
        q = torch.randn(1, 1, rows, 16, requires_grad=True)
        (gradient,) = torch.autograd.grad(loss(cmir.attention(q, q, q, desc)), q, create_graph=True)
        with pytest.raises(RuntimeError, match=r"cmir\.attention has no second derivative"):
            gradient.square().sum().backward()
        plain = torch.randn(1, 1, rows, 16, requires_grad=True)
        loss(cmir.attention(plain, plain, plain, desc)).backward()
        assert plain.grad is not None and not plain.grad.requires_grad


@pytest.mark.parametrize("at", range(3))
def test_forward_mode_is_refused_and_its_tangent_not_lost(at: int) -> None:
    desc = zoo.load("causal").describe(rows=5, tile=(16, 16))
    tensors = [torch.ones(1, 1, 5, 16) for _ in range(3)]
    q, k, v = tensors
    with forward_ad.dual_level():
        assert cmir.attention(q, k, v, desc).shape == (1, 1, 5, 16)
        tensors[at] = forward_ad.make_dual(tensors[at], tensors[at])
        q, k, v = tensors
        with pytest.raises(cmir.CmirError, match=f"^{'qkv'[at]}: cmir.attention has no forward-mode derivative, and"):
            cmir.attention(q, k, v, desc)


def test_forward_mode_over_a_function_is_refused() -> None:
    desc, x = zoo.load("causal").describe(rows=5, tile=(16, 16)), torch.ones(1, 1, 5, 16)
    with pytest.raises(
        cmir.CmirError, match=r"^q: cmir\.attention has no forward-mode derivative, and q is a dual tensor"
    ):
        torch.func.jvp(lambda q: cmir.attention(q, x, x, desc), (x,), (x,))


def test_a_scale_that_requires_grad_is_refused() -> None:
    desc, x = zoo.load("causal").describe(rows=5, tile=(16, 16)), torch.ones(1, 1, 5, 16)
    scale: Any = torch.tensor(0.5, requires_grad=True)
    with pytest.raises(cmir.CmirError) as refused:
        cmir.attention(x, x, x, desc, scale=scale)
    assert str(refused.value) == (
        "scale: expected a number, got a tensor that requires grad, and there is no gradient of the scale; for one "
        "give q * scale, and scale=1.0"
    )
    with torch.no_grad():
        out = cmir.attention(x, x, x, desc, scale=scale)
    torch.testing.assert_close(out, cmir.attention(x, x, x, desc, scale=0.5))
