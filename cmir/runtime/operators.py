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

from cmir.runtime.attention import check, launch_backward, launch_forward, like, usable
from cmir.runtime.descriptor import from_header
from cmir.runtime.launch import on_device

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@torch.library.custom_op("cmir::attention", mutates_args=())
def attention_operator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, memory: torch.Tensor, header: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of `cmir.attention`, for the descriptor of that memory and header; scale > 0."""
    desc = from_header(memory, header)
    check(q, k, v, desc)
    if 0 in q.shape or 0 in k.shape:
        lse = q.new_full(q.shape[:3], -math.inf, dtype=torch.float32)
        return like(usable(q), v.shape[3]).zero_(), lse
    with on_device(q.device):
        return launch_forward(usable(q), usable(k), usable(v), desc, scale)


@torch.library.custom_op("cmir::attention_backward", mutates_args=())
def backward_operator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, memory: torch.Tensor, header: torch.Tensor, scale: float,
) -> Three:  # fmt: skip
    """(dq, dk, dv) of `cmir::attention`."""
    if 0 in q.shape or 0 in k.shape:
        dq, dk, dv = _gradients(q, k, v)
        return dq.zero_(), dk.zero_(), dv.zero_()
    desc = from_header(memory, header)
    q, k, v, dout = usable(q), usable(k), usable(v), usable(dout)
    with on_device(q.device):
        return launch_backward(q, k, v, out, lse, dout, None if dlse is None else dlse.contiguous(), desc, scale)


def _gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    q, k, v = usable(q), usable(k), usable(v)
    return like(q, q.shape[3]), like(k, k.shape[3]), like(v, v.shape[3])


@attention_operator.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, memory: torch.Tensor, header: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return like(usable(q), v.shape[3]), q.new_empty(q.shape[:3], dtype=torch.float32)


@backward_operator.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, memory: torch.Tensor, header: torch.Tensor, scale: float,
) -> Three:  # fmt: skip
    return _gradients(q, k, v)


def _save(ctx: Any, inputs: tuple[object, ...], output: tuple[object, ...]) -> None:
    q, k, v, memory, header, scale = inputs
    ctx.save_for_backward(q, k, v, *output, memory, header)
    ctx.set_materialize_grads(False)
    ctx.scale = scale


def _backward(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    q, k, v, out, lse, memory, header = ctx.saved_tensors
    if dout is None and dlse is None:
        return None, None, None, None, None, None
    dout = torch.zeros_like(out) if dout is None else dout
    scale = ctx.scale
    return *backward_operator(q, k, v, out, lse, dout, dlse, memory, header, scale), None, None, None


attention_operator.register_autograd(_backward, setup_context=_save)
