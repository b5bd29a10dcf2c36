# pyright: basic
"""What tests of attention share: where they run, with which backend, and the comparison with eager float32."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.runtime.attention import launch_backward
from cmir.runtime.reference import reference_attention

GPU = os.environ.get("CMIR_TEST_GPU") == "1"
DEVICE = "cuda" if GPU else "cpu"
BF16, FP16 = (torch.bfloat16, torch.float16) if GPU else (torch.float16, torch.float16)
TOLERANCE = 5e-3

only_gpu = pytest.mark.skipif(not GPU, reason="needs a GPU, not an interpreter")

Attend = Callable[..., Any]
"""`cmir.attention` with a backend: (q, k, v, desc, **options)."""

BACKENDS = ("triton", "gluon") if GPU else ("triton",)


@functools.cache
def missing_backend(name: str) -> str | None:
    """Why attention cannot run with a backend here; None if it can."""
    if name == "triton":
        return None
    if "backend" not in inspect.signature(cmir.attention).parameters:
        return "this cmir.attention takes no backend"
    if not (GPU and torch.cuda.is_available()) or torch.cuda.get_device_capability() != (9, 0):
        return f"the {name} kernels are for Hopper"
    try:
        import triton.experimental.gluon  # noqa: F401
    except ImportError as error:
        return f"this Triton has no {name}: {error}"
    return None


def attend_with(name: str) -> Attend:
    """`cmir.attention` with the backend of that name, which must be available. What it says it does not take, skips."""
    if name == "triton" and "backend" not in inspect.signature(cmir.attention).parameters:
        return cmir.attention
    call: Any = cmir.attention

    def attend(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, backend=name, **options)
        except cmir.CmirError as error:
            if name != "triton" and name in str(error):
                pytest.skip(f"{name}: {error}")
            raise

    attend.backend = name
    return attend


def make_tensors(
    batch: int,
    heads: tuple[int, int],
    rows: int,
    cols: int,
    dim: int,
    dtype: torch.dtype,
    value_dim: int | None = None,
) -> tuple[torch.Tensor, ...]:
    """q, k, v, and gradients of out and lse."""
    generator = torch.Generator(DEVICE).manual_seed(rows * 1000 + cols)
    value_dim = dim if value_dim is None else value_dim
    shapes = [
        *((batch, heads[0], rows, dim), (batch, heads[1], cols, dim), (batch, heads[1], cols, value_dim)),
        *((batch, heads[0], rows, value_dim), (batch, heads[0], rows)),
    ]
    made = [torch.randn(shape, generator=generator, device=DEVICE) for shape in shapes]
    return *(x.to(dtype) for x in made[:4]), made[4]


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    """||got - want|| / ||want||; entries that are all nearly 0 (a row that sees one column has no dq) count as 1e-3."""
    wrong = (got.float() - want.float()).norm().item()
    return wrong / max(want.float().norm().item(), 1e-3 * math.sqrt(max(1, want.numel())))


def deterministic(attend: Attend) -> Attend:
    """`attend` for tests that compare bits of gradients: the gluon kernels sum dq in no fixed order unless asked."""
    return functools.partial(attend, deterministic=True)


def step(attend: Attend, desc: Any, tensors: tuple[torch.Tensor, ...], **options: Any) -> tuple[torch.Tensor, ...]:
    """(out, lse, dq, dk, dv), without a reference and the same bits each time; `tensors` are q, k, v and dout, and may
    have more."""
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]
    options = {"deterministic": True, **options}
    out, lse = attend(inputs[0], inputs[1], inputs[2], desc, return_lse=True, **options)
    return out.detach(), lse.detach(), *torch.autograd.grad(out, inputs, tensors[3])


def check_attention(
    attend: Attend,
    desc: Any,
    visible: np.ndarray | torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    *,
    with_lse: bool = False,
    tolerance: float = TOLERANCE,
) -> tuple[torch.Tensor, ...]:
    """out, lse and gradients against float32. `visible` is bool [B or 1, H or 1, M, N]."""
    q, k, v, dout, *rest = tensors
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    out, lse = attend(inputs[0], inputs[1], inputs[2], desc, return_lse=True)
    loss = (out * dout).sum(dtype=torch.float32)
    shown = torch.as_tensor(visible).to(DEVICE)
    seen = shown.any(-1).expand(lse.shape)
    exact = [x.detach().float().requires_grad_() for x in (q, k, v)]
    want, want_lse = reference_attention(exact[0], exact[1], exact[2], shown)
    want_loss = (want * dout.float()).sum()
    if with_lse:
        (dlse,) = rest
        loss = loss + torch.where(seen, lse * dlse, 0).sum()
        want_loss = want_loss + torch.where(seen, want_lse * dlse, 0).sum()
    grads, want_grads = torch.autograd.grad(loss, inputs), torch.autograd.grad(want_loss, exact)
    for name, a, b in zip(("out", "dq", "dk", "dv"), (out, *grads), (want, *want_grads), strict=True):
        assert error(a, b) < tolerance, f"{name}: {error(a, b):.1e}"  # also where it is NaN
    assert torch.equal(lse.isneginf(), ~seen)
    torch.testing.assert_close(lse[seen], want_lse[seen], rtol=1e-3, atol=1e-3)
    assert not out[~seen].any()
    assert not grads[0][~seen].any()
    unseen = ~shown.any(-2).expand(q.shape[0], q.shape[1], -1)
    unseen = unseen.reshape(q.shape[0], k.shape[1], -1, k.shape[2]).all(2)
    assert not grads[1][unseen].any()
    assert not grads[2][unseen].any()
    return out, lse, *grads


def all_partial(desc: Any, backend: str) -> Any:
    """The descriptor with its full tiles listed as partial ones too, so that the kernels of a backend visit all in the
    same order; in place. Only for tables whose slots are all tested: live slots of full tiles are not stored.

    Full tiles follow partial ones, but in the rows of the gluon kernels, which visit partial ones from the last to the
    first: there those come after the full ones, of which the last is first."""
    for axis in ("row", "col"):
        count, index = getattr(desc, f"{axis}_count"), getattr(desc, f"{axis}_index")
        width = index.shape[-1]
        partial, full = count.unbind(-1)
        place = torch.arange(width, device=index.device).expand_as(index)
        if axis == "row" and backend == "gluon":
            source = torch.where(place < full[..., None], width - 1 - place, place - full[..., None])
        else:
            behind = place - partial[..., None]
            moved = (behind >= 0) & (behind < full[..., None])
            source = torch.where(moved, width - full[..., None] + behind, place)
        index.copy_(index.gather(-1, source.clamp(0, max(width - 1, 0))))
        count.copy_(torch.stack([partial + full, torch.zeros_like(full)], -1))
    return desc


def check_all_partial(attend: Attend, describe: Callable[[], Any], tensors: tuple[torch.Tensor, ...]) -> None:
    """Output and gradients are the same bits when the descriptor's full tiles are listed as partial ones."""
    q, k, v, dout, *_ = tensors
    desc = describe()
    forced = all_partial(describe(), getattr(attend, "backend", "triton"))
    assert desc.row_count[..., 1].any() and desc.col_count[..., 1].any()
    assert not (forced.row_count[..., 1].any() or forced.col_count[..., 1].any())
    out, lse, *grads = step(attend, desc, tensors)
    forced_out, forced_lse = attend(q, k, v, forced, return_lse=True)
    # Deterministic gradients are the portable kernels', whichever attends.
    scale = 1 / math.sqrt(q.shape[3])
    forced_grads = launch_backward(q, k, v, out, lse, dout, None, all_partial(describe(), "triton"), scale)
    pairs = zip((out, lse, *grads), (forced_out, forced_lse, *forced_grads), strict=True)
    for what, (a, b) in zip(("out", "lse", "dq", "dk", "dv"), pairs, strict=True):
        assert torch.equal(a, b), f"{what} differs by {(a.float() - b.float()).abs().max().item()}"
