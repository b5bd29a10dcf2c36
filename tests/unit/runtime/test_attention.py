"""The attention kernels under Triton's interpreter: forward and all gradients against the eager reference."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import cmir.lowering.skeletons
from cmir.errors import ShapeError
from cmir.lowering.hooks import fill
from cmir.lowering.visibility import Axis, Kernel, needs_live_test, visibility_hooks
from cmir.runtime.attention import attention
from cmir.runtime.configs import HEAD_DIMS
from cmir.runtime.loader import load
from cmir.runtime.reference import reference_attention
from cmir.signature import Signature

SKELETONS = Path(cmir.lowering.skeletons.__path__[0])


@functools.cache
def kernels(axis: Axis, slots: int) -> Any:
    """The attention kernels, all of them testing the table of `axis`."""
    comments = [["a Region, a clause"]] * slots
    module = SimpleNamespace()
    skeletons: dict[str, tuple[Kernel, ...]] = {"forward": ("forward",), "backward": ("dq", "dkv")}
    for name, hooked in skeletons.items():
        hooks: dict[str, str] = {}
        for kernel in hooked:
            hooks |= visibility_hooks(kernel, axis, slots, needs_live_test(slots), comments)
        filled = load(fill((SKELETONS / f"{name}.py").read_text(), hooks, []))
        vars(module).update({key: value for key, value in vars(filled).items() if not key.startswith("_")})
    return module


def intervals(mask: torch.Tensor) -> torch.Tensor:
    """[K, 2, M]: the runs of visible columns of each row; spread over the slots so that some before them are absent."""
    runs: list[list[tuple[int, int]]] = []
    for row in mask.tolist():
        edges = [j for j in range(len(row) + 1) if (j < len(row) and row[j]) != (j > 0 and row[j - 1])]
        runs.append(list(zip(edges[::2], edges[1::2], strict=True)))
    slots = max(1, max(map(len, runs)))
    table = torch.zeros(slots, 2, len(runs), dtype=torch.int32)
    for i, row in enumerate(runs):
        first = i % (slots - len(row) + 1)
        for slot, run in enumerate(row, first):
            table[slot, :, i] = torch.tensor(run)
    return table


def schedule(
    mask: torch.Tensor, table: torch.Tensor, tile: tuple[int, int], along: bool, by_col: bool
) -> tuple[torch.Tensor, ...]:
    """(count, index, live, order) of the tile rows of one mask, or with `by_col` of the tile columns of a flipped one;
    `along`: the table is of this axis. A full tile has all its columns inside; rows past the end do not count."""
    (rows, cols), (m, n) = mask.shape, tile
    tile_rows, tile_cols = -(-rows // m), -(-cols // n)
    count = torch.zeros(tile_rows, 2, dtype=torch.int32)
    index = torch.full((tile_rows, tile_cols), 10**6, dtype=torch.int32)
    live = torch.zeros(tile_rows, tile_cols, dtype=torch.int32)
    for t, u in itertools.product(range(tile_rows), range(tile_cols)):
        part = mask[t * m : (t + 1) * m, u * n : (u + 1) * n]
        if not part.any():
            continue
        if part.all() and ((t + 1) * m <= rows if by_col else (u + 1) * n <= cols):
            count[t, 1] += 1
            index[t, tile_cols - int(count[t, 1])] = u
            continue
        own, other = (t * m, (t + 1) * m), (u * n, (u + 1) * n)
        span, reach = (own, other) if along else (other, own)
        lo, hi = table[:, 0, span[0] : span[1]], table[:, 1, span[0] : span[1]]
        meets = (lo < hi) & (lo < reach[1]) & (hi > reach[0])
        touching = meets.any(1).nonzero().flatten().tolist()
        index[t, count[t, 0]] = u
        live[t, count[t, 0]] = touching[0] | (touching[-1] + 1) << 12 | int(meets.sum(0).max()) << 24
        count[t, 0] += 1
    order = count.sum(1).argsort(descending=True, stable=True).int()
    return count, index, live, order


def describe(masks: torch.Tensor, axis: Axis, tile: tuple[int, int] = (32, 32), batch: tuple[int, ...] = ()) -> Any:
    """The descriptor of masks bool [Z, M, N] whose kernels test the table of `axis`."""
    flipped = masks.transpose(1, 2)
    tables = [intervals(mask) for mask in (masks if axis == "rows" else flipped)]
    slots = max(len(table) for table in tables)
    tables = [torch.cat([table, table.new_zeros(slots - len(table), *table.shape[1:])]) for table in tables]
    by_row = [schedule(mask, table, tile, axis == "rows", False) for mask, table in zip(masks, tables, strict=True)]
    by_col = [
        schedule(mask, table, (tile[1], tile[0]), axis == "cols", True)
        for mask, table in zip(flipped, tables, strict=True)
    ]
    row_lists, col_lists = ([torch.stack(x) for x in zip(*lists, strict=True)] for lists in (by_row, by_col))
    table = torch.stack(tables)
    empty = torch.zeros(len(masks), dtype=torch.int64)
    fields = ("count", "index", "live", "order")
    lists = {f"row_{field}": x for field, x in zip(fields, row_lists, strict=True)}
    lists |= {f"col_{field}": x for field, x in zip(fields, col_lists, strict=True)}
    of_rows = axis == "rows"
    sequences, heads = (*batch, 1, 1)[:2]
    return SimpleNamespace(
        row_table=table if of_rows else None, col_table=None if of_rows else table, **lists,
        row_state=empty, col_state=empty, area=empty, status=empty,
        rows=masks.shape[1], cols=masks.shape[2], tile=tile, batch=batch,
        widths=(row_lists[1].shape[-1], col_lists[1].shape[-1]),
        mask_strides=(heads if sequences > 1 else 0, 1 if heads > 1 else 0), device=table.device,
        signature=Signature("test", (), slots if of_rows else None, None if of_rows else slots),
        module=kernels(axis, slots),
    )  # fmt: skip


def causal(rows: int, cols: int) -> torch.Tensor:
    return torch.arange(cols)[None, :] <= torch.arange(rows)[:, None]


def holes(rows: int, cols: int) -> torch.Tensor:
    """Two runs a row, some rows empty in the middle of a tile."""
    i, j = torch.arange(rows)[:, None], torch.arange(cols)[None, :]
    return ((j < 5) | ((j >= i // 2 + 8) & (j <= i + 20))) & (i % 7 != 3)


def late(rows: int, cols: int) -> torch.Tensor:
    """Listed tiles whose rows see nothing until a later one: the maximum stays -inf for a while."""
    i, j = torch.arange(rows)[:, None], torch.arange(cols)[None, :]
    return torch.where(i % 2 == 0, j < 3, j >= cols - 3)


def striped(width: int, period: int) -> Callable[[int, int], torch.Tensor]:
    """Many runs in every row and column."""
    return lambda rows, cols: (torch.arange(rows)[:, None] // 3 + torch.arange(cols)[None, :]) % period < width


def block(rows: int, cols: int) -> torch.Tensor:
    """Whole empty tile rows and tile columns, and full tiles in between."""
    i, j = torch.arange(rows)[:, None], torch.arange(cols)[None, :]
    return (i >= 32) & (j < 64) | (i < 0)


def nothing(rows: int, cols: int) -> torch.Tensor:
    return torch.zeros(rows, cols, dtype=torch.bool)


def everything(rows: int, cols: int) -> torch.Tensor:
    return torch.ones(rows, cols, dtype=torch.bool)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    assert got.shape == want.shape
    assert bool(torch.isfinite(got).all())
    got, want = got.detach().double(), want.detach()
    return float((got - want).norm() / want.norm().clamp(min=1e-30))


def check(
    masks: torch.Tensor, desc: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float | None = None,
    with_lse: bool = True, tolerance: float = 1e-5,
) -> None:  # fmt: skip
    """Forward and all gradients; `masks` is broadcastable to [B, Hq, M, N]."""
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    out, lse = attention(inputs[0], inputs[1], inputs[2], desc, scale=scale, return_lse=True)
    want, want_lse = reference_attention(exact[0], exact[1], exact[2], masks, scale)
    seen = masks.any(-1).expand(want_lse.shape)
    assert error(out, want) < tolerance
    assert bool((out[~seen] == 0).all())
    assert bool((lse[~seen] == -math.inf).all())
    assert not seen.any() or error(lse[seen], want_lse[seen]) < tolerance
    dout, dlse = random(*out.shape, seed=7), random(*lse.shape, seed=8)
    loss, want_loss = (out.double() * dout).sum(), (want * dout).sum()
    if with_lse:
        loss = loss + (lse.double()[seen] * dlse[seen]).sum()
        want_loss = want_loss + (want_lse[seen] * dlse[seen]).sum()
    got = torch.autograd.grad(loss, inputs)
    expected = torch.autograd.grad(want_loss, exact)
    for a, b in zip(got, expected, strict=True):
        assert error(a, b) < tolerance
        assert not bool((a[b == 0] != 0).any())


@pytest.mark.parametrize("axis", ["rows", "cols"])
@pytest.mark.parametrize(
    ("pattern", "rows", "cols"),
    [
        (causal, 70, 70), (causal, 2, 5), (causal, 64, 96), (holes, 75, 90), (late, 40, 100), (block, 100, 101),
        (nothing, 40, 40), (everything, 64, 32), (everything, 33, 65), (striped(2, 30), 50, 80),
        (striped(3, 9), 45, 70),
    ],
    ids=[
        "causal", "causal-2x5", "causal-even", "two-slots", "late", "blocks", "nothing", "everything-even",
        "everything", "three-slots", "live",
    ],
)  # fmt: skip
def test_every_mask_from_either_table(pattern: Callable[..., torch.Tensor], rows: int, cols: int, axis: Axis):
    mask = pattern(rows, cols)
    q, k, v = random(1, 2, rows, 16), random(1, 1, cols, 16, seed=1), random(1, 1, cols, 16, seed=2)
    check(mask, describe(mask[None], axis), q, k, v)


@pytest.mark.parametrize("axis", ["rows", "cols"])
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5, 9])
def test_every_slot_count(slots: int, axis: Axis):
    # Runs of 2 columns (rows), 5 apart, until there are `slots` of them; nine need three visits of a tile.
    line = torch.arange(48)
    mask = (line[None, :] % 5 < 2) & (line[None, :] < 5 * slots) & (line[:, None] % 4 != 1)
    mask = mask if axis == "rows" else mask.T.contiguous()
    desc = describe(mask[None], axis, (64, 64))
    assert (desc.signature.row_slots or desc.signature.col_slots) == slots
    check(mask, desc, random(1, 1, 48, 16), random(1, 1, 48, 16, seed=1), random(1, 1, 48, 16, seed=2))


@pytest.mark.parametrize("tile", [(16, 16), (16, 64), (64, 16), (128, 128)])
def test_tiles(tile: tuple[int, int]):
    mask = holes(70, 90)
    q, k, v = random(1, 1, 70, 16), random(1, 1, 90, 16, seed=1), random(1, 1, 90, 16, seed=2)
    check(mask, describe(mask[None], "rows", tile), q, k, v)


@pytest.mark.parametrize("dim", HEAD_DIMS)
def test_head_dims(dim: int):
    """Of queries and keys, with values of another one, which runs through all of them too."""
    value_dim = 16 + (7 * dim) % 256
    mask = holes(40, 40)
    q, k, v = random(1, 1, 40, dim), random(1, 1, 40, dim, seed=1), random(1, 1, 40, value_dim, seed=2)
    check(mask, describe(mask[None], "rows"), q, k, v)


@pytest.mark.parametrize("dim", [48, 96])
def test_columns_past_the_head_dim_are_another_tensors(dim: int):
    """A block has the next power of two of columns: those past the head dim are neither read nor written."""
    mask = causal(40, 40)
    q, k, v = (
        torch.full((1, 40, 2, dim + 16), torch.nan)[..., :dim].copy_(random(1, 40, 2, dim, seed=s)).transpose(1, 2)
        for s in range(3)
    )
    check(mask, describe(mask[None], "rows"), q, k, v)


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (4, 2), (3, 1)])
def test_groups_of_heads_and_batches_share_a_mask(heads: int, kv_heads: int):
    mask = causal(40, 50)
    q, k, v = (random(2, h, n, 16, seed=h) for h, n in ((heads, 40), (kv_heads, 50), (kv_heads, 50)))
    check(mask, describe(mask[None], "rows"), q, k, v)


def test_a_mask_per_sequence():
    masks = torch.stack([causal(40, 40), nothing(40, 40), holes(40, 40)])
    q, k, v = (random(3, 2, 40, 16, seed=s) for s in range(3))
    check(masks[:, None], describe(masks, "rows", batch=(3,)), q, k, v)


def test_a_mask_per_head():
    masks = torch.stack([pattern(20, 20) for pattern in (nothing, causal, holes, late) * 2])
    q, k, v = random(2, 4, 20, 16), random(2, 2, 20, 16, seed=1), random(2, 2, 20, 16, seed=2)
    check(masks.view(2, 4, 20, 20), describe(masks, "rows", batch=(2, 4)), q, k, v)
    shared = masks[:4]
    check(shared.view(1, 4, 20, 20), describe(shared, "cols", (16, 16), batch=(1, 4)), q, k, v)


def test_strides():
    mask = causal(40, 40)
    desc = describe(mask[None], "rows")
    packed = random(2, 40, 3, 2, 16)
    q, k, v = (packed[:, :, n].transpose(1, 2) for n in range(3))
    check(mask, desc, q, k, v)
    assert attention(q, k, v, desc).transpose(1, 2).is_contiguous()
    check(mask, desc, random(1, 2, 16, 40).transpose(2, 3), k[:1], v[:1])
    length_first = random(40, 2, 2, 16).permute(1, 2, 0, 3)
    check(mask, desc, length_first, k, v[:1].expand(2, -1, -1, -1))


@pytest.mark.parametrize("scale", [0.5, 0.0, -0.3])
def test_scales(scale: float):
    mask = holes(40, 40)
    q, k, v = (random(1, 1, 40, 16, seed=s) for s in range(3))
    check(mask, describe(mask[None], "rows"), q, k, v, scale=scale, with_lse=False)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 1e-2)])
def test_half_precision(dtype: torch.dtype, tolerance: float):
    """Triton's interpreter multiplies matrices of bfloat16 wrongly; it is given float32 instead."""
    mask = holes(40, 70)
    q, k, v = (random(1, 1, n, 16, seed=n, dtype=dtype) for n in (40, 70, 70))
    check(mask, describe(mask[None], "rows"), q, k, v, tolerance=tolerance)
    assert attention(q, k, v, describe(mask[None], "rows")).dtype == dtype


def test_expanded_and_missing_gradients():
    mask = causal(20, 20)
    desc = describe(mask[None], "rows")
    q, k, v = (random(1, 1, 20, 16, seed=s).requires_grad_() for s in range(3))
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    out, lse = attention(q, k, v, desc, return_lse=True)
    want, want_lse = reference_attention(exact[0], exact[1], exact[2], mask)
    for mine, other, at in ((out, want, 2), (lse, want_lse, 0)):
        (got,) = torch.autograd.grad(mine.sum(), (q, k, v)[at], retain_graph=True)
        (expected,) = torch.autograd.grad(other.sum(), exact[at], retain_graph=True)
        assert error(got, expected) < 1e-5


def test_second_derivatives_are_refused():
    desc = describe(causal(20, 20)[None], "rows")
    q, k, v = (random(1, 1, 20, 16, seed=s).requires_grad_() for s in range(3))
    (dq,) = torch.autograd.grad(attention(q, k, v, desc).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"^cmir\.attention has no second derivative$"):
        dq.sum().backward()


def test_all_tiles_partial_gives_the_same_bits():
    mask = causal(100, 100)
    desc = describe(mask[None], "rows")
    partial, full = desc.row_count[0].unbind(1)
    forced = describe(mask[None], "rows")
    for t in range(len(partial)):
        for n in range(int(full[t])):
            at = int(partial[t]) + n
            forced.row_index[0, t, at] = desc.row_index[0, t, desc.row_index.shape[2] - 1 - n]
    forced.row_count[0, :, 0] += full
    forced.row_count[0, :, 1] = 0
    for t in range(len(partial)):  # full tiles are read from the back to the end: in the other order
        at = slice(int(partial[t]), int(partial[t] + full[t]))
        forced.row_index[0, t, at] = forced.row_index[0, t, at].flip(0)
    q, k, v = (random(1, 1, 100, 16, seed=s) for s in range(3))
    assert bool((attention(q, k, v, desc) == attention(q, k, v, forced)).all())


def test_no_leak_between_packed_sequences():
    owner = torch.tensor([0] * 3 + [1] * 5 + [2] * 2)
    mask = (owner[:, None] == owner[None, :]) & causal(10, 10)
    desc = describe(mask[None], "rows")
    q, k, v = (random(1, 1, 10, 16, seed=s) for s in range(3))
    before = attention(q, k, v, desc)
    k[:, :, 3:8] += 1.0
    assert bool((attention(q, k, v, desc)[:, :, 8:] == before[:, :, 8:]).all())


def test_no_heads_or_batch():
    desc = describe(causal(20, 20)[None], "rows")
    q = torch.zeros(0, 2, 20, 16, requires_grad=True)
    out, lse = attention(q, q, q, desc, return_lse=True)
    assert out.shape == (0, 2, 20, 16)
    assert lse.shape == (0, 2, 20)
    out.sum().backward()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": (2, 30, 16)}, r"q: expected 4 dimensions \(batch, heads, length, head dim\), got \(2, 30, 16\)"),
        ({"q": (1, 2, 31, 16)}, r"q: expected 30 rows, as the descriptor was built for, got 31"),
        ({"k": (1, 2, 41, 16)}, r"k: expected 40 columns, as the descriptor was built for, got 41"),
        ({"k": (1, 2, 40, 32)}, r"k: expected batch 1 and head dim 16, as in q \(1, 2, 30, 16\), got \(1, 2, 40, 32"),
        ({"k": (2, 2, 40, 16)}, r"k: expected batch 1 and head dim 16"),
        ({"v": (1, 1, 40, 16)}, r"v: expected \(1, 2, 40\) before its head dim, as in k, got \(1, 1, 40, 16\)"),
        ({"q": (1, 3, 30, 16)}, r"q: expected a multiple of k's 2 heads, got 3 heads"),
        ({"q": (1, 2, 30, 24), "k": (1, 2, 40, 24)}, "q: expected a head dim that is a multiple of 16 up.* got 24"),
        ({"v": (1, 2, 40, 272)}, "v: expected a head dim that is a multiple of 16 up to 256, got 272"),
    ],
)  # fmt: skip
def test_refused_shapes(change: dict[str, tuple[int, ...]], message: str):
    desc = describe(causal(30, 40)[None], "rows")
    shapes = {"q": (1, 2, 30, 16), "k": (1, 2, 40, 16), "v": (1, 2, 40, 16)} | change
    with pytest.raises(ShapeError, match=message):
        attention(random(*shapes["q"]), random(*shapes["k"]), random(*shapes["v"]), desc)


def test_refused_dtypes_devices_and_batches():
    desc = describe(torch.stack([causal(30, 30)] * 2), "rows", batch=(2,))
    q = random(2, 1, 30, 16)
    with pytest.raises(ShapeError, match="k: expected the dtype of q, float32, got float16"):
        attention(q, q.half(), q, desc)
    with pytest.raises(ShapeError, match="q: expected float32, float16 or bfloat16, got int32"):
        attention(q.int(), q.int(), q.int(), desc)
    with pytest.raises(ShapeError, match="v: expected the descriptor's device, cpu, got meta"):
        attention(q, q, q.to("meta"), desc)
    q = random(3, 1, 30, 16)
    with pytest.raises(ShapeError, match=r"q: expected batch 2, as the descriptor was built for, got 3"):
        attention(q, q, q, desc)
