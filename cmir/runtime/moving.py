# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
"""One launch that moves the tokens of up to three tensors: q, k and v to a layout, or an output back.

    gather:   y[b, h, p, :] = x[b, h, order[b, p], :]
    scatter:  y[b, h, order[b, p], :] = x[b, h, p, :]

Each is the other's gradient where `order` is a permutation. torch's own indexing reads and writes through index tensors
of every element's dimension and takes several times what the bytes cost; here a program copies BLOCK whole rows of one
head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import triton
import triton.language as tl

from cmir.runtime.launch import launch, on_device

MOST = 3
"""Tensors of one launch."""

BLOCK = 32
"""Tokens of one program: 8 KiB of bfloat16 at head dimension 128."""


@triton.jit
def move_rows(
    x, y, order, place, head, batch, heads,
    stride_xb, stride_xh, stride_xl, stride_order, places, dim,
    BLOCK: tl.constexpr, LANES: tl.constexpr, SCATTER: tl.constexpr,
):  # fmt: skip
    """Copies the rows at `place`, [BLOCK], of one head; `y` is contiguous [B, heads, places, dim]."""
    inside = place < places
    token = tl.load(order + batch * stride_order + place, mask=inside, other=0).to(tl.int64)
    source = place.to(tl.int64) if SCATTER else token
    target = token if SCATTER else place.to(tl.int64)
    x += batch * stride_xb + head * stride_xh
    y += (batch * heads + head) * places.to(tl.int64) * dim
    for first in range(0, dim, LANES):
        lane = first + tl.arange(0, LANES)
        mask = inside[:, None] & (lane < dim)[None, :]
        row = tl.load(x + source[:, None] * stride_xl + lane[None, :], mask=mask)
        tl.store(y + target[:, None] * dim + lane[None, :], row, mask=mask)


@triton.jit(do_not_specialize=["heads0", "heads1", "heads2", "places0", "places1", "places2"])
def move(
    x0, y0, order0, x1, y1, order1, x2, y2, order2,
    stride_b0, stride_h0, stride_l0, stride_o0, heads0, places0, dim0,
    stride_b1, stride_h1, stride_l1, stride_o1, heads1, places1, dim1,
    stride_b2, stride_h2, stride_l2, stride_o2, heads2, places2, dim2,
    BLOCK: tl.constexpr, LANES: tl.constexpr, SCATTER: tl.constexpr,
):  # fmt: skip
    """Grid: (blocks of the longest, heads of all, batch)."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    if head < heads0:
        move_rows(
            x0, y0, order0, place, head.to(tl.int64), batch, heads0,
            stride_b0, stride_h0, stride_l0, stride_o0, places0, dim0, BLOCK, LANES, SCATTER,
        )  # fmt: skip
    elif head < heads0 + heads1:
        move_rows(
            x1, y1, order1, place, (head - heads0).to(tl.int64), batch, heads1,
            stride_b1, stride_h1, stride_l1, stride_o1, places1, dim1, BLOCK, LANES, SCATTER,
        )  # fmt: skip
    else:
        move_rows(
            x2, y2, order2, place, (head - heads0 - heads1).to(tl.int64), batch, heads2,
            stride_b2, stride_h2, stride_l2, stride_o2, places2, dim2, BLOCK, LANES, SCATTER,
        )  # fmt: skip


def movable(tensors: Sequence[torch.Tensor], orders: Sequence[torch.Tensor]) -> bool:
    """Whether they are moved by `moved`: [B, H, L, D] on a GPU, as many places as tokens. (The interpreter can too, at
    a thousandth of the speed of torch's indexing.)"""
    return not torch.compiler.is_compiling() and all(
        x.dim() == 4
        and 0 not in x.shape
        and x.device.type == "cuda"
        and order.shape[-1] == x.shape[2]
        and order.shape[:-1].numel() in (1, x.shape[0])
        for x, order in zip(tensors, orders, strict=True)
    )


def moved(tensors: Sequence[torch.Tensor], orders: Sequence[torch.Tensor], scatter: bool) -> tuple[torch.Tensor, ...]:
    """The tensors with their tokens moved, in one launch; differentiable.

    Args:
        tensors: one to MOST of [B, H, L, D] (H and D may differ), on one device; see `movable`.
        orders: for each a permutation, int32 [L] or [B, L].
        scatter: whether row p goes to token order[p], instead of token order[p] to row p.
    """
    return cast("tuple[torch.Tensor, ...]", _Moved.apply(scatter, *orders, *tensors))


class _Moved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scatter: bool, *both: torch.Tensor) -> tuple[torch.Tensor, ...]:
        orders, tensors = both[: len(both) // 2], both[len(both) // 2 :]
        ctx.save_for_backward(*orders)
        ctx.scatter = scatter
        return _launched(tensors, orders, scatter)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        orders = ctx.saved_tensors
        return None, *(None for _ in orders), *moved(grads, orders, not ctx.scatter)


def _launched(
    tensors: Sequence[torch.Tensor], orders: Sequence[torch.Tensor], scatter: bool
) -> tuple[torch.Tensor, ...]:
    sources = [x if x.stride(3) == 1 else x.contiguous() for x in tensors]
    results = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in sources]
    pointers: list[torch.Tensor] = []
    numbers: list[int] = []
    for place in range(MOST):
        index = min(place, len(sources) - 1)
        x, y, order = sources[index], results[index], orders[index]
        each = order.stride(0) if order.dim() == 2 and order.shape[0] > 1 else 0
        pointers += [x, y, order]
        # A tensor that is not there has no heads: no program is its.
        heads = x.shape[1] if place < len(sources) else 0
        numbers += [*x.stride()[:3], each, heads, x.shape[2], x.shape[3]]
    longest, widest = (max(x.shape[axis] for x in sources) for axis in (2, 3))
    grid = (-(-longest // BLOCK), sum(x.shape[1] for x in sources), sources[0].shape[0])
    constants = {"BLOCK": BLOCK, "LANES": min(128, triton.next_power_of_2(widest)), "SCATTER": scatter}
    with on_device(sources[0].device):
        launch(move, grid, (*pointers, *numbers), constants, {"num_warps": 4}, sources[0].device)
    return tuple(results)
