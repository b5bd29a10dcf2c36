"""Attention over a descriptor: checks the arguments, launches the generated kernels, and carries the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

import torch
from torch.autograd import forward_ad

from cmir.dialects.attention import ROLES
from cmir.errors import CmirError, ShapeError
from cmir.lowering.visibility import LIVE_SLOTS, Kernel, needs_live_test, table_axis
from cmir.runtime import hopper, hopper_backward
from cmir.runtime.configs import HEAD_DIMS, Block, Config, attention_config
from cmir.runtime.hopper_dims import backward_dims
from cmir.runtime.launch import launch, on_device
from cmir.runtime.tensors import like, usable

if TYPE_CHECKING:
    from cmir.runtime.descriptor import Descriptor
    from cmir.runtime.hopper import Backend
    from cmir.runtime.layout import Tokens

_LOG2_E = math.log2(math.e)
_MOST_SCALE = 2e38
"""Times log2(e) it is a number of float32."""
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
    backend: Backend | None = None,
    deterministic: bool | None = None,
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
    backend: Backend | None = None,
    deterministic: bool | None = None,
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
    backend: Backend | None = None,
    deterministic: bool | None = None,
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
        backend: "triton", the portable kernels, or "gluon", those of Hopper GPUs, which take float16 and bfloat16, head
            dims from 48 to 256 and tiles of 128 x 128. Left out, what the environment's CMIR_BACKEND says, else the
            Hopper kernels wherever they can run.
        deterministic: whether gradients must be the same in every run; by default what
            `torch.use_deterministic_algorithms` says. The portable kernels' always are.

    Returns:
        out [B, Hq, M, Dv] in q's dtype, or (out, lse) with lse [B, Hq, M] float32. A row that sees nothing has output 0
        and lse -inf. Differentiable in q, k and v, through out and through lse. Under autocast the three are cast to
        its dtype; in torch.compile it is one operator, no graph break.

    Raises:
        ShapeError: shapes, dtypes or devices that do not fit each other or the descriptor; a head dimension that the
            kernels do not take.
        CmirError: a backend that cannot run on these tensors; a scale that is no finite number, or that a gradient is
            wanted of; a dual tensor: there are no forward-mode derivatives.
    """
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    if not (isinstance(q, torch.Tensor) and isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)):  # pyright: ignore[reportUnnecessaryIsInstance]
        _refuse_others(q, k, v)
    if torch.is_autocast_enabled(q.device.type):
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    compiling = torch.compiler.is_compiling()
    if not compiling:  # the operator checks, when it runs
        check(q, k, v, desc)
        if forward_mode():
            _refuse_tangents(q, k, v, scale)
    if permute and desc.tokens is not None:
        return _in_layout(q, k, v, desc, desc.tokens, scale, return_lse, backend, deterministic)
    dtype = q.dtype
    if dtype == torch.bfloat16 and q.device.type == "cpu":
        q, k, v = q.float(), k.float(), v.float()  # Triton's interpreter multiplies matrices of bfloat16 wrongly
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else _number(scale)
    if -math.inf < factor <= 0.0:  # the operator refuses what is not finite
        # The kernels take row maxima before they scale, which needs a positive factor.
        q, factor = q * factor, 1.0
    if compiling:
        from cmir.runtime.operators import attention_operator

        assert desc.header is not None
        out, lse = attention_operator(q, k, v, desc.memory, desc.header, factor, backend, deterministic)
    elif 0 in q.shape or 0 in k.shape:
        out, lse = _apply_nothing(q, k, v)
    else:
        chosen = hopper.choose(backend, q, v, desc)
        if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
            out, lse = _apply(q, k, v, desc, factor, chosen, deterministic)
        else:
            out, lse = forward(usable(q), usable(k), usable(v), desc, factor, chosen)
    out = out.to(dtype)
    return (out, lse) if return_lse else out


def _in_layout(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    desc: Descriptor,
    tokens: Tokens,
    scale: float | None,
    return_lse: bool,
    backend: Backend | None,
    deterministic: bool,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of tensors that are in the order of the tokens."""
    if tokens.shards:
        raise CmirError(
            f"permute=True: the {' and '.join(tokens.shards)} of this mask are a shard of the tokens; give the shard "
            "itself, see Descriptor.permute"
        )
    q, k, v = tokens.into(q, k, v)
    out, lse = attention(q, k, v, desc, scale=scale, return_lse=True, backend=backend, deterministic=deterministic)
    out = tokens.unpermute(out, "rows", 2)
    return (out, tokens.unpermute(lse, "rows", 2)) if return_lse else out


def _refuse_others(*given: object) -> NoReturn:
    """Raises for what is no tensor among q, k and v."""
    name, wrong = next((n, x) for n, x in zip("qkv", given, strict=True) if not isinstance(x, torch.Tensor))
    raise ShapeError(f"{name}: expected a tensor [batch, heads, length, head dim], got {type(wrong).__name__}")


def forward_mode() -> bool:
    """Whether forward-mode derivatives are being taken, which the kernels would drop without a word."""
    return forward_ad._current_level >= 0  # pyright: ignore


def _refuse_tangents(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: object) -> None:
    for name, x in (("q", q), ("k", k), ("v", v), ("scale", scale)):
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:  # pyright: ignore
            raise CmirError(f"{name}: cmir.attention has no forward-mode derivative, and {name} is a dual tensor")


def _number(scale: object) -> float:
    if isinstance(scale, torch.Tensor) and scale.requires_grad and torch.is_grad_enabled():
        raise CmirError(
            "scale: expected a number, got a tensor that requires grad, and there is no gradient of the scale; for one "
            "give q * scale, and scale=1.0"
        )
    try:
        factor = float(cast(float, scale))
    except (TypeError, ValueError):
        raise CmirError(f"scale: expected a number, got {scale!r}") from None
    except OverflowError:
        factor = math.inf  # of either sign
    if not torch.compiler.is_compiling():
        require_finite(factor)
    return factor


def require_finite(factor: float) -> None:
    if not math.isfinite(factor):
        raise CmirError(f"scale: expected a finite number, got {factor}")
    if abs(factor) > _MOST_SCALE:
        raise CmirError(f"scale: expected {_MOST_SCALE} at most either way, which float32 holds, got {factor}")


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor) -> None:
    """Raises what `attention` raises for tensors that do not fit each other or the descriptor."""
    if not hasattr(desc, "batch"):
        given = type(desc).__name__
        hint = "; call its describe(...)" if given == "CompiledMask" else ""
        raise CmirError(f"desc: expected the Descriptor that mask.describe returns, got a {given}{hint}")
    _check(
        q.shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, q.device, k.device, v.device,
        desc.rows, desc.cols, desc.batch, desc.device,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _check(
    q: torch.Size, k: torch.Size, v: torch.Size, q_dtype: torch.dtype, k_dtype: torch.dtype, v_dtype: torch.dtype,
    q_device: torch.device, k_device: torch.device, v_device: torch.device,
    desc_rows: int, desc_cols: int, desc_batch: tuple[int, ...], desc_device: torch.device,
) -> None:  # fmt: skip
    """`check` of shapes, dtypes and devices: what has passed once is not looked at again."""
    for name, shape, dtype, device in (
        ("q", q, q_dtype, q_device),
        ("k", k, k_dtype, k_device),
        ("v", v, v_dtype, v_device),
    ):
        if len(shape) != 4:
            raise ShapeError(f"{name}: expected 4 dimensions (batch, heads, length, head dim), got {tuple(shape)}")
        if dtype not in _BITS:
            raise ShapeError(f"{name}: expected float32, float16 or bfloat16, got {_name(dtype)}")
        if dtype != q_dtype:
            raise ShapeError(f"{name}: expected the dtype of q, {_name(q_dtype)}, got {_name(dtype)}")
        if device != desc_device:
            raise ShapeError(f"{name}: expected the descriptor's device, {desc_device}, got {device}")
        if shape[-1] not in HEAD_DIMS:
            raise ShapeError(f"{name}: expected a head dim that is a multiple of 16 up to 256, got {shape[-1]}")
    batch, heads, rows, dim = q
    swapped = q[1] == desc_rows and k[1] == desc_cols
    hint = "; where tensors are [batch, length, heads, head dim], give transpose(1, 2) of each" if swapped else ""
    if rows != desc_rows:
        raise ShapeError(
            f"q: expected {desc_rows} rows, as the descriptor was built for, got {rows} in {tuple(q)}{hint}"
        )
    if k[2] != desc_cols:
        raise ShapeError(
            f"k: expected {desc_cols} columns, as the descriptor was built for, got {k[2]} in {tuple(k)}{hint}"
        )
    if k[0] != batch or k[3] != dim:
        raise ShapeError(f"k: expected batch {batch} and head dim {dim}, as in q {tuple(q)}, got {tuple(k)}")
    if v[:3] != k[:3]:
        raise ShapeError(f"v: expected {tuple(k[:3])} before its head dim, as in k, got {tuple(v)}")
    if k[1] == 0 or heads % k[1]:
        raise ShapeError(f"q: expected a multiple of k's {k[1]} heads, got {heads} heads in {tuple(q)}")
    for what, built_for, given in zip(("batch", "heads"), desc_batch, (batch, heads), strict=False):
        if built_for not in (1, given):
            raise ShapeError(
                f"q: expected {what} {built_for}, as the descriptor was built for, got {given} in {tuple(q)}"
            )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


_ONCE = b"cmir.attention has no second derivative"

Backward = Callable[..., tuple[torch.Tensor | None, ...]]


def _once(backward: Backward) -> Backward:
    """A backward pass that has none itself, and says so when it is asked for one.

    torch's `once_differentiable` says it only where the incoming gradient needs a gradient: the second derivative of
    `out.sum()` would be missing without a word.
    """

    @wraps(backward)
    def differentiated(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        with torch.no_grad():
            found = backward(ctx, *grads)
        if not torch.is_grad_enabled():  # no graph of the gradients is being made
            return found
        refused = cast("Backward", torch._C._functions.DelayedError(_ONCE, len(found)))  # pyright: ignore
        return refused(*(None if x is None else x.detach().requires_grad_() for x in found))

    return differentiated


class _Nothing(torch.autograd.Function):
    """What attention gives where there are no rows, no columns, no heads or no batch: nothing is read."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(q, k, v)
        return q.new_zeros((*q.shape[:3], v.shape[3])), q.new_full(q.shape[:3], -math.inf, dtype=torch.float32)

    @staticmethod
    @_once
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grads: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        return tuple(map(torch.zeros_like, ctx.saved_tensors))


class _Attention(torch.autograd.Function):
    """(q, k, v, desc, scale, backend, deterministic) -> (out, lse); scale > 0."""

    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        desc: Descriptor,
        scale: float,
        backend: Backend,
        deterministic: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = usable(q), usable(k), usable(v)
        out, lse = forward(q, k, v, desc, scale, backend)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.set_materialize_grads(False)
        ctx.options = desc, scale, backend, deterministic
        return out, lse

    @staticmethod
    @_once
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grads: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        dout, dlse = grads
        q, k, v, out, lse = ctx.saved_tensors
        if dout is None and dlse is None:
            return (None,) * 7
        dout = torch.zeros_like(out) if dout is None else usable(dout)
        dlse = None if dlse is None else dlse.contiguous()
        return *backward(q, k, v, out, lse, dout, dlse, *ctx.options), None, None, None, None


_apply = cast("Callable[..., tuple[torch.Tensor, torch.Tensor]]", _Attention.apply)  # pyright: ignore[reportUnknownMemberType]
_apply_nothing = cast("Callable[..., tuple[torch.Tensor, torch.Tensor]]", _Nothing.apply)  # pyright: ignore[reportUnknownMemberType]


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, desc: Descriptor, scale: float, backend: Backend
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of checked, `usable` arguments, by the kernels of a backend."""
    with on_device(q.device):
        if backend == "gluon":
            return hopper.launch_forward(q, k, v, desc, scale * _LOG2_E)
        return launch_forward(q, k, v, desc, scale)


def backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dout: torch.Tensor, dlse: torch.Tensor | None, desc: Descriptor, scale: float,
    backend: Backend, deterministic: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(dq, dk, dv) of checked, `usable` arguments, by the kernels of a backend; lse and dlse are contiguous.

    The Hopper kernels sum dq in no fixed order."""
    with on_device(q.device):
        if backend == "gluon" and not deterministic and backward_dims(q.shape[3], v.shape[3]):
            return hopper_backward.launch_backward(q, k, v, out, lse, dout, dlse, desc, scale)
        return launch_backward(q, k, v, out, lse, dout, dlse, desc, scale)


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
