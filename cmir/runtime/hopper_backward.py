"""Launches the backward kernels for Hopper (cmir/lowering/skeletons/gluon_backward.py): three for each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cmir.runtime.hopper import contiguous, copy, is_readable, kernels, programs, tested
from cmir.runtime.hopper_dims import backward_dims
from cmir.runtime.launcher import Blocks, Form, Launcher
from cmir.runtime.tensors import like

if TYPE_CHECKING:
    from cmir.runtime.descriptor import Descriptor

_LOG2_E = 1.4426950408889634

KEYS, QUERIES = 128, 64
"""Columns of a tile; rows of a step."""

LINE = 64
"""fp32 of accumulators that are cleared side by side."""

CONSUMER_REGISTERS = 240
"""Registers a thread of the two consumers: with 24 for the producer, all that a multiprocessor has."""

MAX_PLANS = 1024


def splits_of(tiles: int, group: int, processors: int) -> int:
    """How many programs share the query heads of a group: as few as give the device nearly two programs for each
    processor, all of the group if that is not enough."""
    enough = (n for n in range(1, group + 1) if group % n == 0 and 10 * n * tiles >= 19 * processors)
    return next(enough, group)


def is_near(widths: tuple[int, int], tiles: int) -> bool:
    """Whether the lists of `tiles` tiles are short: they have room for an eighth of them, on one axis or the other. A
    program then takes a small part of the time of all, whichever tile it has."""
    return 8 * min(widths) <= tiles


class BackwardPlan:
    """All about the launches of the backward kernels but addresses and the scale, for tensors of one form."""

    def __init__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, dout: torch.Tensor,
        has_dlse: bool, desc: Descriptor, splits: int | None = None,
    ) -> None:  # fmt: skip
        batch, heads, rows, dim = q.shape
        kv_heads, cols, value_dim = k.shape[1], k.shape[2], v.shape[3]
        dims = backward_dims(dim, value_dim)
        assert dims is not None, "what `attention.backward` asks first"
        width, value_width = widths = dims[:2]
        group = heads // kv_heads
        tiles = -(-cols // KEYS) * batch * kv_heads
        padded = -(-rows // KEYS) * KEYS
        splits = splits or splits_of(tiles * (KEYS // dims.keys), group, programs(q.device))
        module = kernels(desc.module)

        # fp32 memory: statistics of rows, the accumulator of dq, and those of dk and dv where programs share them.
        of_stats, of_q = 2 * batch * heads * padded, batch * heads * padded * width
        of_k, of_v = (batch * kv_heads * cols * w if splits > 1 else 0 for w in widths)
        self.splits = splits
        column_tiles = -(-cols // KEYS)
        # And last, of each mask and tile of columns, two int32: the rows that it sees.
        self.hull = 4 * (of_stats + of_q + of_k + of_v)
        self.floats = self.hull // 4 + 2 * desc.masks * column_tiles
        self.sums = 4 * of_stats, 4 * (of_stats + (of_q if of_k else 0)), 4 * (of_stats + of_k + (of_q if of_k else 0))
        self.gradients = [(x.shape, x.stride()) for x in (like(q, dim), like(k, dim), like(v, value_dim))]
        self.copied = [not is_readable(x) for x in (q, k, v, dout)]
        self.copies = any(self.copied)
        strides = [contiguous(x.shape) if c else x.stride() for x, c in zip((q, k, v, dout), self.copied, strict=True)]
        if splits == 1:
            kept = [
                Form(shape, stride, q.dtype, (1, 1, QUERIES, w), 128)
                for (shape, stride), w in zip(self.gradients[1:], widths, strict=True)
            ]
        else:
            sums = [torch.Size((batch, kv_heads, cols, w)) for w in widths]
            kept = [Form(x, contiguous(x), torch.float32, (1, 1, QUERIES, x[3] // 2), 128) for x in sums]
        forms = [
            Form(q.shape, strides[0], q.dtype, (1, 1, QUERIES, width), 128),
            # Swizzled by as many bytes as a block has columns: see the kernel.
            Form(k.shape, strides[1], q.dtype, (1, 1, dims.keys, width), min(width, 128)),
            Form(v.shape, strides[2], q.dtype, (1, 1, dims.keys, value_width), 128),
            Form(dout.shape, strides[3], q.dtype, (1, 1, QUERIES, value_width), 128),
            Form((of_stats,), (1,), torch.float32, (2 * QUERIES,), 0),
            Form((of_q // 256, 256), (256, 1), torch.float32, (dims.leaving // 4, 256), 0),
            *kept,
        ]
        blocks = [Blocks(form) for form in forms]

        table, stride, positions, _ = tested(desc, "backward")
        tensors = (table, desc.col_count, desc.col_index, desc.col_live, desc.col_order)
        self.offsets = [tensor.data_ptr() - desc.memory.data_ptr() for tensor in tensors]
        near = int(is_near(desc.widths, column_tiles))
        fp32, int32, device = torch.float32, torch.int32, q.device
        self.begin = Launcher(
            module.backward_begin,
            (padded // QUERIES * batch * heads, 1, 1),
            (
                *[q.dtype] * 2, *[fp32] * 4, *[int32] * 2,
                *out.stride()[:3], *strides[3][:3], rows, heads, (of_q + of_k + of_v) // LINE,
                stride, positions, column_tiles, desc.masks,
            ),
            (value_dim, has_dlse),
            device,
        )  # fmt: skip
        self.steps = Launcher(
            module.backward_wide if dims.wide else module.backward,
            (tiles * splits * (KEYS // dims.keys), 1, 1),
            (
                *blocks, *[int32] * 6,
                stride, positions, desc.widths[1],
                rows, cols, batch, kv_heads, group, splits, *desc.mask_strides, near,
                float, float,
            ),
            (CONSUMER_REGISTERS,),
            device,
        )  # fmt: skip
        blocks_q, blocks_k = (-(-n // QUERIES) * batch * h for n, h in ((rows, heads), (cols, kv_heads)))
        self.end = Launcher(
            module.backward_end,
            (blocks_q + (2 * blocks_k if splits > 1 else 0), 1, 1),
            (
                *[fp32] * 3, *[q.dtype] * 3,
                *(step for _, steps in self.gradients for step in steps[:3]), rows, cols, batch, heads, kv_heads,
                float,
            ),
            (dim, value_dim),
            device,
        )  # fmt: skip

    def launch(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
        dout: torch.Tensor, dlse: torch.Tensor | None, desc: Descriptor, scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        """(dq, dk, dv)."""
        device = q.device
        memory = torch.empty(self.floats, dtype=torch.float32, device=device)
        dq, dk, dv = (
            torch.empty_strided(shape, stride, dtype=q.dtype, device=device) for shape, stride in self.gradients
        )
        if self.copies:
            q, k, v, dout = (copy(x) if copied else x for x, copied in zip((q, k, v, dout), self.copied, strict=True))
        if dlse is not None and dlse.data_ptr() % 16:
            dlse = copy(dlse)
        stats, of_lse, of_grad = memory.data_ptr(), lse.data_ptr(), dout.data_ptr()
        of_dq, of_dk, of_dv = dq.data_ptr(), dk.data_ptr(), dv.data_ptr()
        dq_sum, dk_sum, dv_sum = (stats + offset for offset in self.sums)
        described = desc.memory.data_ptr()
        schedule = [described + offset for offset in self.offsets]
        hull = stats + self.hull
        of_dlse = of_lse if dlse is None else dlse.data_ptr()
        self.begin(out.data_ptr(), of_grad, of_lse, of_dlse, stats, dq_sum, schedule[0], hull)
        kept = (of_dk, of_dv) if self.splits == 1 else (dk_sum, dv_sum)
        self.steps(
            q.data_ptr(), k.data_ptr(), v.data_ptr(), of_grad, stats, dq_sum, *kept, *schedule, hull,
            scale * _LOG2_E, scale,
        )  # fmt: skip
        self.end(dq_sum, dk_sum, dv_sum, of_dq, of_dk, of_dv, scale)
        return dq, dk, dv


_plans: dict[tuple[object, ...], BackwardPlan] = {}


def launch_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, desc: Descriptor, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(dq, dk, dv) of checked, `usable` arguments of head dims that `backward_dims` takes; lse and dlse are
    contiguous."""
    # What autograd saved comes back as it was, unless its hooks (`saved_tensors_hooks`) keep it elsewhere.
    out, lse = (copy(x) if x.data_ptr() % 16 else x for x in (out, lse))
    key = (
        desc.module, desc.layout, desc.mask_strides, q.dtype, q.device, q.shape, q.stride(), k.shape, k.stride(),
        v.shape, v.stride(), out.stride(), dout.stride(), dlse is None,
        q.data_ptr() % 16, k.data_ptr() % 16, v.data_ptr() % 16, dout.data_ptr() % 16,
    )  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        plan = _plans[key] = BackwardPlan(q, k, v, out, dout, dlse is not None, desc)
    return plan.launch(q, k, v, out, lse, dout, dlse, desc, scale)
