"""Masks with a layout at run time: permutations, attention that applies them, errors."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import cmir
from cmir.errors import CmirError, MetadataError, ShapeError, SpecError
from cmir.layouts import Layout, Patch, Residue, Striped, Table, ZigZag
from cmir.runtime.reference import reference_attention

CAUSAL = Path(cmir.__file__).parent / "zoo" / "causal.mlir"
HSTU = Path(cmir.__file__).parent / "zoo" / "hstu.mlir"


def dilated() -> cmir.MaskSpec:
    """Dilated: bounded in both directions by residue only."""
    spec = cmir.MaskSpec("dilated")
    i, j = spec.i, spec.j
    spec.assume(spec.rows == spec.cols)
    spec.region("all", 0, spec.rows, visible=(j <= i) & (i - j <= 12) & ((i - j) % 3 == 0))
    return spec


def qkv(rows: int, cols: int, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(2, 2, n, 16, dtype=torch.float32, requires_grad=True) for n in (rows, cols, cols)]


def gradients(tensors: list[torch.Tensor], out: torch.Tensor, lse: torch.Tensor) -> list[torch.Tensor]:
    weight = torch.linspace(-1, 1, out.numel()).reshape(out.shape)
    finite = lse.isfinite()
    total = (out * weight).sum() + lse.masked_fill(~finite, 0.0).sin().sum()
    return list(torch.autograd.grad(total, tensors))


def check_against_raster(mask: cmir.CompiledMask, plain: np.ndarray, rows: int) -> None:
    """Attention with permute=True is plain attention in the order of the tokens, gradients and lse included."""
    desc = mask.describe(rows=rows).check()
    q, k, v = tensors = qkv(rows, rows)
    out, lse = cmir.attention(q, k, v, desc, permute=True, return_lse=True)
    want, want_lse = reference_attention(q, k, v, torch.from_numpy(plain))
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(lse, want_lse, rtol=1e-4, atol=1e-4)
    assert torch.equal(cmir.attention(q, k, v, desc, permute=True), out)
    for got, expected in zip(gradients(tensors, out, lse), gradients(tensors, want, want_lse), strict=True):
        torch.testing.assert_close(got, expected, rtol=2e-4, atol=2e-4)


def test_attention_moves_to_the_layout_and_back():
    i, j = np.ogrid[:40, :40]
    plain = (j <= i) & (i - j <= 12) & ((i - j) % 3 == 0)
    check_against_raster(cmir.compile(dilated(), layout=Residue(of=3)), plain, 40)


def test_patches_of_clear_with_ragged_edges():
    statics = {"radius": 3, "height": 5, "width": 7, "text": 3}
    plain = cmir.compile(cmir.zoo.path("clear"), statics=statics).dense(rows=38)
    layout = Patch(("height", "width"), (2, 3), after="text")
    mask = cmir.compile(cmir.zoo.path("clear"), statics=statics, layout=layout)
    assert mask.slots == {"rows": None, "cols": None}
    check_against_raster(mask, plain, 38)


def test_an_order_of_a_batch_of_one_serves_any_batch():
    spec = cmir.MaskSpec("causal")
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.i)
    mask = cmir.compile(spec, layout=cmir.layouts.Table("order"))
    order = torch.randperm(20)
    q = torch.randn(2, 2, 20, 16)
    outs = [
        cmir.attention(q, q, q, mask.describe(rows=20, order=o, tile=(16, 16)).check(), permute=True)
        for o in (order, order[None], torch.stack([order, order]))
    ]
    assert torch.equal(outs[0], outs[1]) and torch.equal(outs[0], outs[2])


def test_one_order_of_both_axes_is_of_one_length():
    spec = cmir.MaskSpec("causal")
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.i)
    mask = cmir.compile(spec, layout=Table("place"))
    message = (
        "mask 'causal', cols: expected as many as rows, 4, since 'place' orders both; got 6; give rows and cols a "
        "layout each, with a table of its own"
    )
    for order in (torch.arange(4), torch.arange(6)):
        for call in (mask.describe, mask.dense):
            with pytest.raises(MetadataError) as wrong:
                call(rows=4, cols=6, place=order)
            assert str(wrong.value) == message
    mask = cmir.compile(spec, layout={"rows": Table("order"), "cols": Table("order_k")})
    desc = mask.describe(rows=4, cols=6, order=torch.tensor([3, 1, 0, 2]), order_k=torch.arange(5, -1, -1)).check()
    assert desc.area.tolist() == [4 + 3 + 2 + 1]


def test_an_order_for_each_sequence():
    torch.manual_seed(0)
    mask = cmir.compile(HSTU, layout=Table("order"))
    rows, history = 34, torch.tensor([11, 20])
    start = torch.stack([torch.arange(rows) // 3 * 3, torch.arange(rows) // 5 * 5])
    start = torch.where(torch.arange(rows) < history[:, None], 0, torch.maximum(start, history[:, None]))
    order = torch.stack([torch.randperm(rows) for _ in range(2)])
    desc = mask.describe(rows=rows, history=history, start=start, order=order).check()
    plain = cmir.compile(HSTU)
    dense = [plain.dense(rows=rows, history=int(h), start=s) for h, s in zip(history, start, strict=True)]
    for b in range(2):
        got = mask.dense(rows=rows, history=int(history[b]), start=start[b], order=order[b])
        assert np.array_equal(got, dense[b][order[b].numpy()][:, order[b].numpy()])
    q, k, v = tensors = qkv(rows, rows)
    out, lse = cmir.attention(q, k, v, desc, permute=True, return_lse=True)
    want, want_lse = reference_attention(q, k, v, torch.from_numpy(np.stack(dense))[:, None])
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    for got, expected in zip(gradients(tensors, out, lse), gradients(tensors, want, want_lse), strict=True):
        torch.testing.assert_close(got, expected, rtol=2e-4, atol=2e-4)

    order[1, 3] = order[1, 4]
    desc = mask.describe(rows=rows, history=history, start=start, order=order)
    with pytest.raises(MetadataError, match="'order' is no permutation: as the order of the rows it names every token"):
        desc.check()


@pytest.mark.parametrize("layout", [Striped(of=2), ZigZag(of=2), Residue(of=3)], ids=str)
def test_attention_of_columns_in_another_order(layout: Layout):
    mask = cmir.compile(CAUSAL, layout={"cols": layout})
    check_against_raster(mask, cmir.compile(CAUSAL).dense(rows=36), 36)


@pytest.mark.parametrize("layout", [ZigZag(of=3, rank=1), Striped(of=3, rank=2)], ids=str)
def test_the_shards_of_a_rank_against_all_columns(layout: Layout):
    mask = cmir.compile(HSTU, layout={"rows": layout})
    assert mask.slots["rows"] == 2
    start = torch.tensor([0] * 21 + [21 + k // 4 * 4 for k in range(39)], dtype=torch.int32)
    plain = torch.from_numpy(cmir.compile(HSTU).dense(rows=60, history=21, start=start))
    desc = mask.describe(rows=20, cols=60, history=21, start=start).check()
    rows, cols = desc.permutation
    assert cols is None and rows is not None and rows.dtype == torch.int32
    assert torch.equal(torch.from_numpy(mask.dense(rows=20, cols=60, history=21, start=start)), plain[rows.long()])

    q, k, v = tensors = qkv(60, 60)
    shard = desc.permute(q)
    assert torch.equal(shard, q[:, :, rows.long()])
    out, lse = cmir.attention(shard, k, v, desc, return_lse=True)
    want, want_lse = (t[:, :, rows.long()] for t in reference_attention(q, k, v, plain))
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    for got, expected in zip(gradients(tensors, out, lse), gradients(tensors, want, want_lse), strict=True):
        torch.testing.assert_close(got, expected, rtol=2e-4, atol=2e-4)
    with pytest.raises(CmirError, match="the rows are a shard of the tokens: the others are needed"):
        desc.unpermute(out)
    with pytest.raises(CmirError, match="the rows of this mask are a shard of the tokens; give the shard itself"):
        cmir.attention(shard, k, v, desc, permute=True)


@pytest.mark.parametrize("batched", [False, True])
def test_permute_and_unpermute_are_inverse_and_have_gradients(batched: bool):
    from cmir.runtime.layout import Tokens

    torch.manual_seed(0)
    order = torch.stack([torch.randperm(7) for _ in range(2)]).to(torch.int32) if batched else torch.randperm(7).int()
    tokens = Tokens(order, None)
    x = torch.randn(2, 3, 7, 4, dtype=torch.float64, requires_grad=True)
    moved = tokens.permute(x, "rows", -2)
    each = order if batched else order.expand(2, 7)
    assert torch.equal(moved, torch.stack([x[b][:, each[b].long()] for b in range(2)]))
    assert torch.equal(tokens.unpermute(moved, "rows", 2), x)
    assert tokens.permute(x, "cols", -2) is x
    # Every derivative of one head and channel; of them all, which take minutes, along random directions and exactly.
    few = x[:, :1, :, :1].detach().clone().requires_grad_()
    for move in (lambda x: tokens.permute(x, "rows", 2), lambda x: tokens.unpermute(x, "rows", -2)):
        assert torch.autograd.gradcheck(move, (few,))
        assert torch.autograd.gradcheck(move, (x,), fast_mode=True)
        weights = torch.randn_like(x)
        (gradient,) = torch.autograd.grad(move(x), x, weights)
        assert torch.equal(move(gradient), weights)
    with pytest.raises(CmirError, match="axis: expected 'rows' or 'cols', got 'row'"):
        tokens.permute(x, "row", -2)
    with pytest.raises(ShapeError, match="expected 7 places along dim 1, got 3"):
        tokens.unpermute(x, "rows", 1)


def test_permutations_are_those_of_the_oracle():
    for layout in (Patch((5, 7), (2, 3), after=3), Striped(4), Residue(5), ZigZag(5)):
        mask = cmir.compile(CAUSAL, layout={"rows": layout})
        rows = 40 if not isinstance(layout, Patch) else 3 + 35
        from cmir.runtime.layout import tokens_of

        orders = mask._checks.orders  # pyright: ignore[reportPrivateUsage]
        got = tokens_of("m", orders, rows, rows, {}, torch.device("cpu")).rows
        assert got is not None and np.array_equal(got.numpy(), orders["rows"].tokens(rows))
        assert sorted(got.tolist()) == list(range(rows))


def test_lengths_that_do_not_fit():
    mask = cmir.compile(CAUSAL, layout={"rows": ZigZag(of=4, rank=1)})
    with pytest.raises(MetadataError, match="rows: expected a length that is a multiple of 2, for the layout zigzag"):
        mask.describe(rows=7, cols=28)
    with pytest.raises(MetadataError, match="rows: expected a length that is a multiple of 2"):
        mask.dense(rows=7, cols=28)
    mask = cmir.compile(CAUSAL, layout={"rows": Patch((4, 4), (2, 2), after=3)})
    with pytest.raises(MetadataError, match="rows: expected at least 19 tokens, for the layout patch"):
        mask.dense(rows=18, cols=28)
    mask = cmir.compile(HSTU, layout={"rows": Striped(of=2, rank=0)})
    with pytest.raises(
        MetadataError, match="argument 'start': expected 12 entries, one for each token, for the layout striped"
    ):
        mask.describe(rows=6, cols=12, history=3, start=torch.zeros(6, dtype=torch.int32))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (ZigZag(of=4, rank=1), "a shard is of one axis: write layout="),
        ({"row": Striped(2)}, "layout= of an axis is given by 'rows' or 'cols'; got 'row'"),
        ("patch", "layout= takes one of cmir.layouts"),
        (Patch((4, 4), (2, 2), after=1.5), "a number of a layout is an int or the name of a static; got 1.5"),  # type: ignore
        (Patch((4, 4), (2,)), "one size for each dimension of the grid: 2 and 1 given"),
        (Patch((4, 4), (2, 5)), "at most the grid in every dimension"),
        (Patch(("height", 4), (2, 2)), "a layout is known at compile time: 'height' is not static"),
        (Striped(of=0), "'of' is from 1 to 64"),
        ({"rows": Striped(of=2, rank=2)}, "'rank' is from 0 to of - 1"),
        (Table("rows"), "'name' is the name of the table"),
    ],
)
def test_layouts_that_make_no_sense(layout: object, message: str):
    with pytest.raises(SpecError, match=message):
        cmir.compile(CAUSAL, layout=layout)  # type: ignore


def test_layouts_and_statics_are_of_one_compile():
    layout = Patch(("height", "width"), (2, 2), after="text")
    masks = [
        cmir.compile(cmir.zoo.path("hstu_meta"), statics={"window": w}, layout={"rows": Striped(2)}) for w in (3, 3, 5)
    ]
    assert masks[0] is masks[1] is not masks[2]
    assert layout == Patch(("height", "width"), (2, 2), after="text")


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("scatter", [False, True])
def test_one_launch_moves_three_tensors_as_indexing_does(scatter: bool, each: bool):
    from cmir.runtime.moving import moved

    torch.manual_seed(0)
    # Heads, lengths and head dimensions of their own, one of them a transposed view.
    q, k = torch.randn(2, 3, 45, 20), torch.randn(2, 37, 2, 16).transpose(1, 2)
    tensors = [x.requires_grad_() for x in (q, k, torch.randn(2, 2, 37, 130))]
    orders = [
        (torch.stack([torch.randperm(n) for _ in range(2)]) if each else torch.randperm(n)).int() for n in (45, 37, 37)
    ]
    found = moved(tensors, orders, scatter)
    for x, order, y in zip(tensors, orders, found, strict=True):
        inverse = order.argsort(-1) if scatter else order
        want = torch.stack([x[b][:, inverse[b] if each else inverse] for b in range(2)])
        assert torch.equal(y, want)
        weight = torch.randn_like(y)
        (got,) = torch.autograd.grad((y * weight).sum(), x, retain_graph=True)
        (expected,) = torch.autograd.grad((want * weight).sum(), x)
        assert torch.equal(got, expected)


@pytest.mark.parametrize("axis", ["rows", "cols"])
def test_lists_of_a_shard_have_an_entry_for_every_token(axis: Literal["rows", "cols"]) -> None:
    """Two numbers a token: tokens are the dimension before them."""
    spec = cmir.MaskSpec("two")
    table = spec.table("t", per="row" if axis == "rows" else "col", entries=2)
    own, other = (spec.i, spec.j) if axis == "rows" else (spec.j, spec.i)
    spec.region("all", 0, spec.rows, visible=(table[own, 0] <= other) & (other < table[own, 1]))
    mask = cmir.compile(spec, layout={axis: ZigZag(of=2, rank=1)})
    ends = np.sort(np.random.default_rng(0).integers(0, 9, (8, 2)), axis=1)
    lengths: dict[str, Any] = {"rows": 8, "cols": 8, axis: 4}
    seen = mask.dense(**lengths, t=ends)
    desc = mask.describe(**lengths, t=torch.tensor(ends, dtype=torch.int32), tile=(16, 16)).check()
    assert np.array_equal(desc.to_dense()[0, 0].numpy(), seen)
    whole = (ends[:, :1] <= np.arange(8)) & (np.arange(8) < ends[:, 1:])
    own_tokens = whole[[2, 3, 4, 5]]  # the second and third of four chunks
    assert np.array_equal(seen, own_tokens if axis == "rows" else own_tokens.T)
