# pyright: basic
"""Numbers that attention must get right on a GPU: nothing visible, one pair, every length, scores far apart, any layout
of the tensors, every head dimension and dtype; compared with eager float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from counts import Counts
from support import (
    BF16,
    DEVICE,
    FP16,
    GPU,
    Attend,
    check_all_partial,
    check_attention,
    deterministic,
    error,
    make_tensors,
    only_gpu,
    step,
)

import cmir
from cmir import zoo

DIM = 64 if GPU else 16


def holes() -> cmir.CompiledMask:
    """Causal, less the rows [lo, hi) and the columns [left, right)."""
    spec = cmir.MaskSpec("holes_both_ways")
    i, j = spec.i, spec.j
    lo, hi, left, right = (spec.scalar(name) for name in ("lo", "hi", "left", "right"))
    seen = (j <= i) & ((i < lo) | (hi <= i)) & ((j < left) | (right <= j))
    spec.region("all", 0, spec.rows, visible=seen)
    return cmir.compile(spec)


def two_ends() -> cmir.CompiledMask:
    """Even rows see the first three columns, odd rows the last three: whatever tile comes first, half of its rows see
    nothing in it; a running maximum that starts at a number like -1e30 instead of -inf adds what they do not see."""
    spec = cmir.MaskSpec("two_ends")
    i, j = spec.i, spec.j
    rule = ((i % 2 == 0) & (j < 3)) | ((i % 2 == 1) & (spec.cols - 3 <= j))
    spec.region("all", 0, spec.rows, visible=rule)
    return cmir.compile(spec)


def shown(mask: Any, **metadata: Any) -> np.ndarray:
    return mask.dense(**metadata)[None, None]


@pytest.mark.parametrize(
    ("lo", "hi", "left", "right"),
    [(0, 0, 0, 300), (0, 300, 0, 0), (128, 256, 0, 0), (0, 0, 128, 256), (5, 6, 7, 8), (100, 300, 0, 90)],
)
def test_empty_rows_and_columns(attend: Attend, lo: int, hi: int, left: int, right: int) -> None:
    mask, n = holes(), 300 if GPU else 20
    metadata: dict[str, Any] = {
        name: min(x, n) for name, x in (("lo", lo), ("hi", hi), ("left", left), ("right", right))
    }
    desc = mask.describe(rows=n, device=DEVICE, **metadata).check()
    check_attention(attend, desc, shown(mask, rows=n, **metadata), make_tensors(2, (4, 2), n, n, DIM, BF16))


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 300), (300, 1), (300, 257)] if GPU else [(9, 20)])
def test_one_visible_pair(attend: Attend, rows: int, cols: int) -> None:
    spec = cmir.MaskSpec("one_pair")
    row, col = spec.scalar("row"), spec.scalar("col")
    spec.region("all", 0, spec.rows, visible=(spec.i == row) & (spec.j == col))
    mask = cmir.compile(spec)
    for at in {(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 2)}:
        metadata: dict[str, Any] = {"rows": rows, "cols": cols, "row": at[0], "col": at[1]}
        desc = mask.describe(**metadata, device=DEVICE).check()
        assert desc.area.tolist() == [1]
        tensors = make_tensors(1, (4, 2), rows, cols, DIM, BF16)
        out, lse, *_ = check_attention(attend, desc, shown(mask, **metadata), tensors)
        assert torch.equal(out[0, :, at[0]], tensors[2][0].repeat_interleave(2, 0)[:, at[1]])
        assert int(lse.isfinite().sum()) == 4


@pytest.mark.parametrize("first", [1, 101, 201])
def test_every_length_from_1_to_300(attend: Attend, counts: Counts, first: int) -> None:
    mask = zoo.load("window_two_sided")
    names = [p.name for p in mask.signature.parameters]
    assert not names
    for n in range(first, first + (100 if GPU else 3)):
        desc = mask.describe(rows=n, device=DEVICE).check()
        check_attention(attend, desc, shown(mask, rows=n), make_tensors(1, (2, 1), n, n, DIM, BF16))
        counts("lengths attended, gradients included", 1)


def test_every_length_against_one_table(attend: Attend) -> None:
    """Documents of one to three tokens: every tile is partial, many rows see one column.

    dq is then a difference of nearly equal numbers, one of which comes from the rounded output: in float16, which
    rounds eight times finer than bfloat16, its error is again far below the tolerance.
    """
    mask, rng = zoo.load("causal_document"), np.random.default_rng(1)
    for n in range(1, 301, 7) if GPU else (1, 30):
        document = torch.as_tensor(np.cumsum(rng.random(n) < 0.6), dtype=torch.int32, device=DEVICE)
        desc = mask.describe(rows=n, document=document).check()
        visible = shown(mask, rows=n, document=document.cpu())
        check_attention(attend, desc, visible, make_tensors(1, (2, 1), n, n, DIM, FP16))


@pytest.mark.parametrize("name", ["causal", "global_window_causal", "block_causal"])
def test_all_partial_is_the_same_bits_as_full_and_partial(attend: Attend, name: str) -> None:
    mask, n = zoo.load(name), 1000 if GPU else 33
    tensors = make_tensors(2, (4, 2), n, n, DIM, BF16)
    check_all_partial(attend, lambda: mask.describe(rows=n, device=DEVICE).check(), tensors)


@pytest.mark.parametrize("n", [256, 300])
def test_the_first_listed_tile_shows_a_row_nothing(attend: Attend, n: int) -> None:
    mask = two_ends()
    desc = mask.describe(rows=n, device=DEVICE).check()
    check_attention(attend, desc, shown(mask, rows=n), make_tensors(2, (4, 2), n, n, DIM, BF16), with_lse=True)


@pytest.mark.parametrize("dtype", [BF16, torch.float32])
def test_scores_below_any_sentinel(attend: Attend, dtype: torch.dtype) -> None:
    """All scores are -2^106 (about -8e31): below -1e30, and exact, so that each row is the mean of what it sees."""
    if dtype == FP16:
        pytest.skip("float16 has no such numbers")
    mask, n, dim = two_ends(), 300 if GPU else 20, 64
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k = (torch.full((1, 2, n, dim), sign * 2.0**50, device=DEVICE, dtype=dtype) for sign in (1, -1))
    v = torch.randn(1, 2, n, dim, device=DEVICE).to(dtype)
    v[:, :, 3:-3] = 1e4  # not visible to any row
    try:
        out, lse = attend(q, k, v, desc, return_lse=True)
    except cmir.CmirError as refused:
        assert "float32" in str(refused)  # a backend may take 16-bit types alone
        return
    want = torch.from_numpy(mask.dense(rows=n)).to(DEVICE).float()
    want = (want / want.sum(1, keepdim=True)) @ v.float()
    assert error(out, want) < 5e-3
    torch.testing.assert_close(lse, torch.full_like(lse, -(2.0**103)), rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["causal", "two_ends"])
@pytest.mark.parametrize("size", [30.0, 300.0])
def test_large_scores(attend: Attend, name: str, size: float) -> None:
    """Scores up to some thousands either way: the softmax is all but one-hot."""
    mask, n = two_ends() if name == "two_ends" else zoo.load(name), 300 if GPU else 20
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k, v, dout, dlse = make_tensors(1, (4, 2), n, n, DIM, BF16)
    tensors = ((q * size).to(BF16), k, v, dout, dlse)
    found = step(attend, desc, tensors)
    assert all(bool(x.isfinite().all()) for x in found)
    exact = [x.detach().double().requires_grad_() for x in tensors[:3]]
    from cmir.runtime.reference import reference_attention

    want, want_lse = reference_attention(exact[0], exact[1], exact[2], torch.from_numpy(mask.dense(rows=n)).to(DEVICE))
    assert error(found[0], want) < 2e-2
    torch.testing.assert_close(found[1].double(), want_lse, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [64, 96, 128, 192, 256])
def test_dtypes_head_dims_and_groups(attend: Attend, dtype: torch.dtype, dim: int) -> None:
    if not GPU and dtype == torch.bfloat16:
        pytest.skip("the interpreter has no bfloat16")
    mask, n = zoo.load("global_window_causal"), 333 if GPU else 20
    desc = mask.describe(rows=n, device=DEVICE).check()
    for heads in ((4, 4), (4, 1), (6, 2)):
        tensors = make_tensors(2, heads, n, n, dim, dtype)
        check_attention(attend, desc, shown(mask, rows=n), tensors, with_lse=heads == (4, 1))


@pytest.mark.parametrize(("dim", "value_dim"), [(64, 128), (128, 64), (192, 128), (96, 256), (64, 32)])
def test_values_of_another_head_dim(attend: Attend, dim: int, value_dim: int) -> None:
    mask, n = zoo.load("causal"), 300 if GPU else 20
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(2, (4, 2), n, n, dim, BF16, value_dim)
    check_attention(attend, desc, shown(mask, rows=n), tensors)


def strided(x: torch.Tensor, how: str) -> torch.Tensor:
    """The same values in memory of another form."""
    batch, heads, length, dim = x.shape
    if how == "heads last":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "padded rows":
        return torch.nn.functional.pad(x, (0, 24), value=math.nan)[..., :dim]
    if how == "within a longer cache":
        return torch.nn.functional.pad(x, (0, 0, 0, 50), value=math.nan)[:, :, :length]
    if how == "fused":
        packed = x.new_full((batch, length, 3, heads, dim), math.nan)
        packed[:, :, 1] = x.transpose(1, 2)
        return packed[:, :, 1].transpose(1, 2)
    if how == "one element off":
        memory = x.new_full((x.numel() + 1,), math.nan)
        return memory[1:].view(x.shape).copy_(x)
    if how == "transposed":
        return x.transpose(2, 3).contiguous().transpose(2, 3)
    if how == "length first":
        return x.permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)
    raise ValueError(how)


FORMS = ("heads last", "padded rows", "within a longer cache", "fused", "one element off", "transposed", "length first")


@pytest.mark.parametrize("how", FORMS)
def test_strides(attend: Attend, how: str) -> None:
    mask, n = zoo.load("causal"), 300 if GPU else 20
    desc = mask.describe(rows=n, device=DEVICE).check()
    *tensors, dlse = make_tensors(2, (4, 2), n, n, DIM, BF16)
    views = tuple(strided(x, how) for x in tensors)
    assert all(torch.equal(a, b) for a, b in zip(views, tensors, strict=True))
    check_attention(attend, desc, shown(mask, rows=n), (*views, dlse))


def test_keys_that_are_expanded_and_gradients_that_are(attend: Attend) -> None:
    mask, n = zoo.load("causal"), 300 if GPU else 20
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k, v, dout, dlse = make_tensors(2, (4, 2), n, n, DIM, BF16)
    k, v = k[:1].expand(2, -1, -1, -1), v[:1, :1].expand(2, 2, -1, -1)
    check_attention(attend, desc, shown(mask, rows=n), (q, k, v, dout, dlse))
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    attend = deterministic(attend)
    got = torch.autograd.grad(attend(*inputs, desc).sum(), inputs)
    want = torch.autograd.grad(attend(*inputs, desc), inputs, torch.ones_like(q))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_nothing_at_all(attend: Attend) -> None:
    desc = zoo.load("causal").describe(rows=0, device=DEVICE).check()
    q = torch.randn(1, 2, 0, DIM, device=DEVICE, dtype=BF16, requires_grad=True)
    out = attend(q, q, q, desc)
    (gradient,) = torch.autograd.grad(out.sum(), q)
    assert out.shape == q.shape and gradient.shape == q.shape
    desc = zoo.load("causal").describe(rows=5, cols=0, device=DEVICE).check()
    q = torch.randn(1, 2, 5, DIM, device=DEVICE, dtype=BF16, requires_grad=True)
    k = q.detach()[:, :, :0]
    out, lse = attend(q, k, k, desc, return_lse=True)
    assert not out.any() and lse.isneginf().all()


def refused(what: str) -> tuple[Callable[[Attend], Any], str]:
    """A call with tensors on devices that do not go together, and what is said of it."""
    mask, n = zoo.load("hstu"), 8
    history, start = torch.tensor([3], dtype=torch.int32), torch.arange(n, dtype=torch.int32)
    q = torch.randn(1, 1, n, DIM, dtype=BF16)
    here: dict[str, Any] = {"history": history.to(DEVICE), "start": start.to(DEVICE)}
    match what:
        case "metadata on two devices":
            call = lambda attend: mask.describe(rows=n, history=history, start=here["start"])  # noqa: E731
            return call, "argument 'start': expected a tensor on cpu, where 'history' is; got .* on cuda"
        case "metadata elsewhere than asked":
            call = lambda attend: mask.describe(rows=n, **here, device="cpu")  # noqa: E731
            return call, "argument 'history': expected a tensor on cpu, where device= is; got .* on cuda"
        case "tensors elsewhere than the descriptor":
            call = lambda attend: attend(q, q, q, mask.describe(rows=n, **here))  # noqa: E731
            return call, "q: expected the descriptor's device, cuda:0, got cpu"
        case _:
            call = lambda attend: attend(q.cuda(), q, q.cuda(), mask.describe(rows=n, **here))  # noqa: E731
            return call, "k: expected the descriptor's device, cuda:0, got cpu"


@only_gpu
@pytest.mark.parametrize(
    "what",
    [
        "metadata on two devices",
        "metadata elsewhere than asked",
        "tensors elsewhere than the descriptor",
        "tensors on two devices",
    ],
)
def test_devices_that_do_not_go_together(attend: Attend, what: str) -> None:
    call, message = refused(what)
    with pytest.raises(cmir.CmirError, match=message):
        call(attend)
