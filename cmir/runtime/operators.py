# pyright: basic
"""Attention as operators of torch, `cmir::attention` and `cmir::attention_backward`: what torch.compile sees of it.

An operator takes tensors and numbers, not descriptors: the descriptor's memory, and its header, a small tensor on the
CPU that says how the memory is cut and for which mask. Neither the values of metadata nor lengths are part of a
compiled graph that way, so new ones do not recompile it.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from cmir.errors import CmirError
from cmir.runtime import hopper
from cmir.runtime.attention import backward, check, forward, forward_mode, require_finite
from cmir.runtime.descriptor import from_header
from cmir.runtime.tensors import like, usable

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@torch.library.custom_op("cmir::attention", mutates_args=())
def attention_operator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, memory: torch.Tensor, header: torch.Tensor, scale: float,
    backend: str | None, deterministic: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """(out, lse) of `cmir.attention`, for the descriptor of that memory and header; scale > 0."""
    desc = from_header(memory, header)
    check(q, k, v, desc)
    if forward_mode():  # which of the tensors are dual, cannot be asked here
        raise CmirError("cmir.attention has no forward-mode derivative: compiled, it runs outside of dual levels alone")
    require_finite(scale)
    if 0 in q.shape or 0 in k.shape:
        lse = q.new_full(q.shape[:3], -math.inf, dtype=torch.float32)
        return like(usable(q), v.shape[3]).zero_(), lse
    return forward(usable(q), usable(k), usable(v), desc, scale, hopper.choose(backend, q, v, desc))


@torch.library.custom_op("cmir::attention_backward", mutates_args=())
def backward_operator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, memory: torch.Tensor, header: torch.Tensor, scale: float,
    backend: str | None, deterministic: bool,
) -> Three:  # fmt: skip
    """(dq, dk, dv) of `cmir::attention`."""
    if 0 in q.shape or 0 in k.shape:
        dq, dk, dv = _gradients(q, k, v)
        return dq.zero_(), dk.zero_(), dv.zero_()
    desc = from_header(memory, header)
    q, k, v, dout = usable(q), usable(k), usable(v), usable(dout)
    dlse = None if dlse is None else dlse.contiguous()
    chosen = hopper.choose(backend, q, v, desc)
    return backward(q, k, v, out, lse, dout, dlse, desc, scale, chosen, deterministic)


def _gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    q, k, v = usable(q), usable(k), usable(v)
    return like(q, q.shape[3]), like(k, k.shape[3]), like(v, v.shape[3])


@attention_operator.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, memory: torch.Tensor, header: torch.Tensor, scale: float,
    backend: str | None, deterministic: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return like(usable(q), v.shape[3]), q.new_empty(q.shape[:3], dtype=torch.float32)


@backward_operator.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, memory: torch.Tensor, header: torch.Tensor, scale: float,
    backend: str | None, deterministic: bool,
) -> Three:  # fmt: skip
    return _gradients(q, k, v)


def _save(ctx: Any, inputs: tuple[object, ...], output: tuple[object, ...]) -> None:
    q, k, v, memory, header, *options = inputs
    ctx.save_for_backward(q, k, v, *output, memory, header)
    ctx.set_materialize_grads(False)
    ctx.options = options


def _backward(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    q, k, v, out, lse, memory, header = ctx.saved_tensors
    if dout is None and dlse is None:
        return (None,) * 8
    dout = torch.zeros_like(out) if dout is None else dout
    return *backward_operator(q, k, v, out, lse, dout, dlse, memory, header, *ctx.options), *[None] * 5


attention_operator.register_autograd(_backward, setup_context=_save)
