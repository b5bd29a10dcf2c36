"""Attention over a descriptor: checks the arguments, launches the generated kernels, and carries the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import torch
from torch.autograd.function import once_differentiable

from cmir.dialects.attention import ROLES
from cmir.errors import CmirError, ShapeError
from cmir.lowering.visibility import LIVE_SLOTS, Kernel, needs_live_test, table_axis
from cmir.runtime.configs import HEAD_DIMS, Block, Config, attention_config
from cmir.runtime.launch import launch, on_device

if TYPE_CHECKING:
    from cmir.runtime.descriptor import Descriptor
    from cmir.runtime.layout import Tokens

_LOG2_E = math.log2(math.e)
_BITS = {torch.float32: 32, torch.float16: 16, torch.bfloat16: 16}
_DELTA_BLOCK = 32


@overload
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    desc: Descriptor,
    *,
    scale: float | None = None,
    permute: bool = False,
    return_lse: Literal[False] = False,
) -> torch.Tensor: ...
@overload
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    desc: Descriptor,
    *,
    scale: float | None = None,
    permute: bool = False,
    return_lse: Literal[True],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    desc: Descriptor,
    *,
    scale: float | None = None,
    permute: bool = False,
    return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * q k^T) v over the pairs that the descriptor's mask shows.

    Args:
        q: [B, Hq, M, D], float32, float16 or bfloat16, on the descriptor's device; M is the descriptor's rows.
        k: [B, Hkv, N, D]; v: [B, Hkv, N, Dv]; N is the descriptor's columns, Hq a multiple of Hkv.
        desc: what `mask.describe` returned. One built for a single mask serves any batch and any heads; one built for
            a batch of masks needs that batch.
        scale: factor of q k^T before the softmax, 1 / sqrt(D) by default.
        permute: q, k, v, out and lse are in the order of the tokens, and are moved to and from the layout that the mask
            was compiled with. Left out, they are in the layout already, which saves moving them in every layer.
        return_lse: also return the natural log-sum-exp of the scaled scores.

    Returns:
        out [B, Hq, M, Dv] in q's dtype, or (out, lse) with lse [B, Hq, M] float32. A row that sees nothing has output 0
        and lse -inf. Differentiable in q, k and v, through out and through lse; the gradients are deterministic. Under
        autocast the three are cast to its dtype; in torch.compile it is one operator, no graph break.

    Raises:
        ShapeError: shapes, dtypes or devices that do not fit each other or the descriptor; a head dimension that the
            kernels do not take.
    """
    if torch.is_autocast_enabled(q.device.type):
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    compiling = torch.compiler.is_compiling()
    if not compiling:  # the operator checks, when it runs
        check(q, k, v, desc)
    if permute and desc.tokens is not None:
        return _in_layout(q, k, v, desc, desc.tokens, scale, return_lse)
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if factor <= 0.0:
        # The kernels take row maxima before they scale, which needs a positive factor.
        q, factor = q * factor, 1.0
    if compiling:
        from cmir.runtime.operators import attention_operator

        assert desc.header is not None
        out, lse = attention_operator(q, k, v, desc.memory, desc.header, factor)
    elif 0 in q.shape or 0 in k.shape:
        out, lse = _apply_nothing(q, k, v)
    else:
        out, lse = _apply(q, k, v, desc, factor)
    return (out, lse) if return_lse else out


def _in_layout(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    desc: Descriptor,
    tokens: Tokens,
    scale: float | None,
    return_lse: bool,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of tensors that are in the order of the tokens."""
    if tokens.shards:
        raise CmirError(
            f"permute=True: the {' and '.join(tokens.shards)} of this mask are a shard of the tokens; give the shard "
            "itself, see Descriptor.permute"
        )
    q, k, v = tokens.into(q, k, v)
    out, lse = attention(q, k, v, desc, scale=scale, return_lse=True)
    out = tokens.unpermute(out, "rows", 2)
    return (out, tokens.unpermute(lse, "rows", 2)) if return_lse else out


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor) -> None:
    """Raises what `attention` raises for tensors that do not fit each other or the descriptor."""
    if not hasattr(desc, "mask_strides"):
        given = type(desc).__name__
        hint = "; call its describe(...)" if given == "CompiledMask" else ""
        raise CmirError(f"desc: expected the Descriptor that mask.describe returns, got a {given}{hint}")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 4:
            raise ShapeError(f"{name}: expected 4 dimensions (batch, heads, length, head dim), got {_shape(tensor)}")
        if tensor.dtype not in _BITS:
            raise ShapeError(f"{name}: expected float32, float16 or bfloat16, got {_name(tensor.dtype)}")
        if tensor.dtype != q.dtype:
            raise ShapeError(f"{name}: expected the dtype of q, {_name(q.dtype)}, got {_name(tensor.dtype)}")
        if tensor.device != desc.device:
            raise ShapeError(f"{name}: expected the descriptor's device, {desc.device}, got {tensor.device}")
        if tensor.shape[-1] not in HEAD_DIMS:
            allowed = ", ".join(map(str, HEAD_DIMS))
            raise ShapeError(f"{name}: expected a head dim of {allowed}, got {tensor.shape[-1]}")
    batch, heads, rows, dim = q.shape
    if rows != desc.rows:
        raise ShapeError(f"q: expected {desc.rows} rows, as the descriptor was built for, got {rows} in {_shape(q)}")
    if k.shape[2] != desc.cols:
        raise ShapeError(
            f"k: expected {desc.cols} columns, as the descriptor was built for, got {k.shape[2]} in {_shape(k)}"
        )
    if k.shape[0] != batch or k.shape[3] != dim:
        raise ShapeError(f"k: expected batch {batch} and head dim {dim}, as in q {_shape(q)}, got {_shape(k)}")
    if v.shape[:3] != k.shape[:3]:
        raise ShapeError(f"v: expected {tuple(k.shape[:3])} before its head dim, as in k, got {_shape(v)}")
    if k.shape[1] == 0 or heads % k.shape[1]:
        raise ShapeError(f"q: expected a multiple of k's {k.shape[1]} heads, got {heads} heads in {_shape(q)}")
    for what, built_for, given in zip(("batch", "heads"), desc.batch, (batch, heads), strict=False):
        if built_for not in (1, given):
            raise ShapeError(
                f"q: expected {what} {built_for}, as the descriptor was built for, got {given} in {_shape(q)}"
            )


def _shape(tensor: torch.Tensor) -> str:
    return str(tuple(tensor.shape))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Nothing(torch.autograd.Function):
    """What attention gives where there are no rows, no columns, no heads or no batch: nothing is read."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(q, k, v)
        return q.new_zeros((*q.shape[:3], v.shape[3])), q.new_full(q.shape[:3], -math.inf, dtype=torch.float32)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grads: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        return tuple(map(torch.zeros_like, ctx.saved_tensors))


class _Attention(torch.autograd.Function):
    """(q, k, v, desc, scale) -> (out, lse); scale > 0."""

    @staticmethod
    def forward(
        ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = usable(q), usable(k), usable(v)
        with on_device(q.device):
            out, lse = launch_forward(q, k, v, desc, scale)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.set_materialize_grads(False)
        ctx.desc, ctx.scale = desc, scale
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grads: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        dout, dlse = grads
        q, k, v, out, lse = ctx.saved_tensors
        if dout is None and dlse is None:
            return None, None, None, None, None
        dout = torch.zeros_like(out) if dout is None else usable(dout)
        dlse = None if dlse is None else dlse.contiguous()
        with on_device(q.device):
            return *launch_backward(q, k, v, out, lse, dout, dlse, ctx.desc, ctx.scale), None, None


_apply = cast("Callable[..., tuple[torch.Tensor, torch.Tensor]]", _Attention.apply)  # pyright: ignore[reportUnknownMemberType]
_apply_nothing = cast("Callable[..., tuple[torch.Tensor, torch.Tensor]]", _Nothing.apply)  # pyright: ignore[reportUnknownMemberType]


def launch_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, scale: float, config: Config | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of checked, `usable` arguments."""
    config = config or _config(q, v, desc)
    batch, heads, rows, dim = q.shape
    group, value_dim = heads // k.shape[1], v.shape[3]
    out = like(q, value_dim)
    lse = torch.empty((batch, heads, rows), dtype=torch.float32, device=q.device)
    tile_m, tile_n = desc.tile
    block = config.forward
    schedule, live_slots = _schedule(desc, "forward")
    launch(
        desc.module.forward,
        (_programs(rows, tile_m, block.m, batch * heads), 1, 1),
        (
            q, k, v, out, lse,
            *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3],
            *schedule,
            rows, k.shape[2], batch * heads, heads, group, *desc.mask_strides,
            scale * _LOG2_E,
        ),
        dict(
            D=dim, DV=value_dim, TILE_M=tile_m, TILE_N=tile_n, BLOCK_M=block.m, BLOCK_N=block.n,
            EVEN_M=rows % tile_m == 0, EVEN_N=k.shape[2] % tile_n == 0,
            LIVE_SLOTS=live_slots,
        ),
        _options(block),
        q.device,
    )  # fmt: skip
    return out, lse


def launch_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, desc: Descriptor, scale: float, config: Config | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(dq, dk, dv) of checked, `usable` arguments; lse and dlse are contiguous."""
    config = config or _config(q, v, desc)
    batch, heads, rows, dim = q.shape
    kv_heads, cols, value_dim = k.shape[1], k.shape[2], v.shape[3]
    group = heads // kv_heads
    tile_m, tile_n = desc.tile
    padded = -(-rows // tile_m) * tile_m
    stats = torch.empty((batch * heads, padded, 2), dtype=torch.float32, device=q.device)
    delta_block = min(_DELTA_BLOCK, tile_m)
    launch(
        desc.module.backward_delta,
        (padded // delta_block, batch * heads, 1),
        (
            out, dout, lse, lse if dlse is None else dlse, stats,
            *out.stride()[:3], *dout.stride()[:3], rows, heads,
        ),
        dict(DV=value_dim, TILE_M=tile_m, BLOCK=delta_block, HAS_DLSE=dlse is not None),
        {"num_warps": 4},
        q.device,
    )  # fmt: skip

    dq, dk, dv = like(q, dim), like(k, dim), like(v, value_dim)
    dkv_programs = _programs(cols, tile_n, config.dkv.n, batch * kv_heads)
    dq_programs = _programs(rows, tile_m, config.dq.m, batch * heads)
    row_schedule, row_live_slots = _schedule(desc, "dq")
    col_schedule, col_live_slots = _schedule(desc, "dkv")
    arguments = (
        q, k, v, dout, stats, dq, dk, dv,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *dout.stride()[:3],
        *dq.stride()[:3], *dk.stride()[:3], *dv.stride()[:3],
        *row_schedule, *col_schedule,
        rows, cols, batch, heads, group, *desc.mask_strides,
        scale * _LOG2_E,
    )  # fmt: skip
    if config.together:
        launches = [(dkv_programs + dq_programs, True, True, config.dkv)]
    else:
        launches = [(dkv_programs, True, False, config.dkv), (dq_programs, False, True, config.dq)]
    for programs, has_dkv, has_dq, block in launches:
        constants = dict(
            D=dim, DV=value_dim, TILE_M=tile_m, TILE_N=tile_n,
            DKV=has_dkv, DKV_BLOCK_M=config.dkv.m, DKV_BLOCK_N=config.dkv.n,
            DQ=has_dq, DQ_BLOCK_M=config.dq.m, DQ_BLOCK_N=config.dq.n,
            EVEN_M=rows % tile_m == 0, EVEN_N=cols % tile_n == 0,
            ROW_LIVE_SLOTS=row_live_slots, COL_LIVE_SLOTS=col_live_slots,
        )  # fmt: skip
        launch(desc.module.backward, (programs, 1, 1), arguments, constants, _options(block), q.device)
    return dq, dk, dv


def _config(q: torch.Tensor, v: torch.Tensor, desc: Descriptor) -> Config:
    slots = max(desc.signature.row_slots or 0, desc.signature.col_slots or 0)
    many = needs_live_test(slots)
    return _cached_config(
        max(q.shape[3], v.shape[3]), _BITS[q.dtype], "many" if many else "few", desc.tile, q.device.type == "cpu"
    )


_cached_config = cache(attention_config)


@cache
def _options(block: Block) -> dict[str, int]:
    return {"num_warps": block.num_warps, "num_stages": block.num_stages}


def _programs(length: int, tile: int, block: int, heads: int) -> int:
    return -(-length // tile) * (tile // block) * heads


def _schedule(desc: Descriptor, kernel: Kernel) -> tuple[tuple[torch.Tensor | int, ...], int]:
    """The arguments of a kernel that say what it visits and tests (a table and its positions, or bits and the words of
    a row), and the slots of its live test (0: unrolled, or bits)."""
    row_slots, col_slots, tests = desc.signature.row_slots, desc.signature.col_slots, desc.signature.tests
    test = table_axis(kernel, row_slots, col_slots) if tests is None else tests[ROLES.index(kernel)]
    slots = 0
    if test == "bits":
        table = desc.bits
        positions = 0 if table is None else table.shape[2]
    elif test == "rows":
        table, slots, positions = desc.row_table, row_slots, desc.rows
    else:
        table, slots, positions = desc.col_table, col_slots, desc.cols
    if table is None:  # nothing is visible: nothing is read
        table, stride = desc.row_count, 0
    else:
        stride = table.stride(0)
    if kernel == "dkv":
        lists, width = (desc.col_count, desc.col_index, desc.col_live, desc.col_order), desc.widths[1]
    else:
        lists, width = (desc.row_count, desc.row_index, desc.row_live, desc.row_order), desc.widths[0]
    return (table, *lists, stride, positions, width), LIVE_SLOTS if needs_live_test(slots or 0) else 0


def usable(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` with a unit last stride, and rows not spaced by the batch size: row strides are compile-time constants,
    which neither lengths nor batches may change."""
    batch_stride, _, row_stride, last_stride = tensor.stride()
    if last_stride == 1 and (tensor.shape[0] == 1 or batch_stride == 0 or batch_stride >= row_stride):
        return tensor
    return tensor.contiguous()


def like(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """An uninitialised [B, H, L, dim] with the order of dimensions of `tensor`, so that a transposed view stays one."""
    batch, heads, length, _ = tensor.shape
    if tensor.stride(1) < tensor.stride(2):
        return tensor.new_empty((batch, length, heads, dim)).transpose(1, 2)
    return tensor.new_empty((batch, heads, length, dim))
