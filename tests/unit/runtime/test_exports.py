# pyright: basic
"""Masks in the forms of other engines, decoded pair by pair: FlashAttention 4's lists and test, FlashMask's indices."""

import sys
import types
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.runtime.fa4 import BlockLists
from cmir.runtime.flashmask import FlashMask

TILE = 16
MASKS: dict[str, tuple[dict[str, int], tuple[bool, int] | None]] = {
    "causal": ({}, (False, 2)),  # top-left, where FlashMask's causal is bottom-right
    "causal_bottom_right": ({}, (True, 1)),
    "window_flash": ({}, (True, 1)),
    "packed_cross": ({}, (False, 2)),
    "shared_prompt": ({}, (True, 1)),
    "hstu": ({}, (True, 1)),
    "qk_sparse": ({}, (True, 2)),
    "causal_blockwise": ({}, (True, 2)),
    "global_window": ({"tokens": 3, "window": 4}, (False, 4)),
    "block_diffusion": ({}, (False, 4)),
    "flamingo_any_order": ({}, (False, 2)),
    "tree_any_order": ({}, None),
    "strided": ({"stride": 7}, None),
}
"""Statics, and FlashMask's form: causal and numbers; None if it has none."""


def load(name: str) -> cmir.CompiledMask:
    statics = MASKS[name][0]
    known = {p.name for p in zoo.load(name).surface.parameters if p.kind == "static"}
    return zoo.load(name, **{k: v for k, v in statics.items() if k in known})


def metadata(mask: cmir.CompiledMask, rows: int) -> dict[str, Any]:
    env, rng = None, np.random.default_rng(rows)
    while env is None or 0 in (env["rows"], env["cols"]):
        env = draw(mask.facts, rng, rows)
    return {k: torch.tensor(v.values) if isinstance(v, TableValue) else int(v) for k, v in env.items()}


def decoded(flash: FlashMask, rows: int) -> torch.Tensor:
    """What PaddlePaddle says of startend_row_indices, a column at a time: bool [B, H, rows, columns]."""
    indices = flash.startend_row_indices
    batch, heads, cols, numbers = indices.shape
    seen = torch.ones(batch, heads, rows, cols, dtype=torch.bool)
    for b, h, j in np.ndindex(batch, heads, cols):
        r = indices[b, h, j].tolist()
        hidden = seen[b, h, :, j]
        has_end = numbers == (2 if flash.causal else 4)
        hidden[r[0] : r[1] if has_end else rows] = False
        if flash.causal:
            hidden[: max(0, j - (cols - rows))] = False
        elif has_end:
            hidden[r[2] : r[3]] = False
        else:
            hidden[: r[1]] = False
    return seen


def listed(lists: BlockLists, blocks: int) -> torch.Tensor:
    """0 empty, 1 partial, 2 full: [B, H, M, N]. Entries of a list rise."""
    states = torch.zeros((*lists.mask_block_cnt.shape, blocks), dtype=torch.int64)
    sides = (lists.mask_block_cnt, lists.mask_block_idx, 1), (lists.full_block_cnt, lists.full_block_idx, 2)
    for count, index, state in sides:
        assert count.dtype == index.dtype == torch.int32
        for at in np.ndindex(*count.shape):
            entries = index[at][: count[at]].tolist()
            assert entries == sorted(set(entries))
            states[at][entries] = state
    return states


def of_tiles(dense: torch.Tensor) -> torch.Tensor:
    """The same of a dense mask: columns past the edge are hidden, rows past it count for neither."""
    below = torch.nn.functional.pad(dense, (0, -dense.shape[1] % TILE, 0, -dense.shape[0] % TILE))
    above = torch.nn.functional.pad(dense, (0, -dense.shape[1] % TILE))
    above = torch.nn.functional.pad(above, (0, 0, 0, -dense.shape[0] % TILE), value=True)
    some, all_ = (x.unfold(0, TILE, TILE).unfold(1, TILE, TILE).flatten(2) for x in (below, above))
    return torch.where(all_.all(-1), 2, torch.where(some.any(-1), 1, 0))


@pytest.fixture
def cute(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of CuTe as a mask_mod meets, on tensors: what it says can be run, how it is compiled cannot."""
    modules = {name: types.ModuleType(name) for name in ("cutlass", "cutlass.cute", "flash_attn.cute.utils")}
    cutlass: Any = modules["cutlass"]
    cutlass.Int32, cutlass.const_expr, cutlass.range_constexpr = torch.int32, bool, range
    vars(modules["cutlass.cute"])["jit"] = lambda function: function
    vars(modules["flash_attn.cute.utils"])["scalar_to_ssa"] = lambda value, dtype: torch.as_tensor(value).to(dtype)
    for name, module in {**modules, "flash_attn": types.ModuleType("flash_attn")}.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize("name", MASKS)
def test_the_forms_of_other_engines_say_the_mask(name: str, cute: None) -> None:
    mask, form = load(name), MASKS[name][1]
    for rows in (33, 47):
        given = metadata(mask, rows)
        desc = mask.describe(**given, tile=(TILE, TILE)).check()
        dense = torch.from_numpy(mask.dense(**given))
        assert torch.equal(desc.to_sdpa()[0, 0], dense)

        fa4 = desc.to_fa4()
        states = of_tiles(dense)
        assert torch.equal(listed(fa4.forward, states.shape[1])[0, 0], states)
        assert torch.equal(listed(fa4.backward, states.shape[0])[0, 0], states.T)
        mask_mod, zero = fa4.mask_mod(), torch.zeros(1, dtype=torch.int32)
        places = (states == 1).repeat_interleave(TILE, 0).repeat_interleave(TILE, 1)[: desc.rows, : desc.cols]
        for i, j in places.nonzero()[:: 5 if places.sum() > 200 else 1]:
            seen = mask_mod(zero, zero, i[None], j[None], None, list(fa4.aux_tensors))
            assert bool(seen) == bool(dense[i, j]), (i, j)

        if form is None:
            with pytest.raises(cmir.CmirError, match="no number of them says this mask by columns"):
                mask.to_flashmask(**given)
        else:
            flash = mask.to_flashmask(**given, tile=(TILE, TILE))
            assert (flash.causal, flash.startend_row_indices.shape[-1]) == form
            assert flash.startend_row_indices.dtype == torch.int32
            assert torch.equal(decoded(flash, desc.rows)[0, 0], dense)


def test_what_flashmask_cannot_say_is_refused_with_the_region_that_needs_more() -> None:
    mask = zoo.load("clear", radius=3, height=6, width=7, text=3)
    with pytest.raises(
        cmir.CmirError, match=r"at most two hidden intervals .* columns of Region @\w+ see \[.*are hidden"
    ):
        mask.to_flashmask(rows=45)


def test_batches_heads_and_packs() -> None:
    spec = cmir.MaskSpec("windows")
    w = spec.scalar("w")
    spec.assume(spec.rows == spec.cols, w >= 1)
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i - spec.j < w))
    mask = cmir.compile(spec)
    w = torch.tensor([[1, 5, 9], [2, 30, 50]])
    flash = mask.to_flashmask(rows=20, w=w)
    assert (flash.causal, tuple(flash.startend_row_indices.shape)) == (True, (2, 3, 20, 1))
    assert torch.equal(decoded(flash, 20), mask.to_sdpa(rows=20, w=w))
    fa4 = mask.describe(rows=20, w=w, tile=(16, 16)).to_fa4()
    assert fa4.mask_strides == (3, 1)
    assert fa4.forward.mask_block_cnt.shape == (2, 3, 2)
    # Of a pack the diagonal is that of the pack, since every sequence has as many rows as columns.
    cu = torch.tensor([0, 7, 7, 20])
    pack = mask.to_flashmask(rows=24, cu_seqlens=cu, w=4)
    assert (pack.causal, pack.startend_row_indices.shape[-1]) == (True, 1)
    assert np.array_equal(decoded(pack, 24)[0, 0].numpy(), mask.dense(rows=24, cu_seqlens=cu, w=4))
    other = mask.to_flashmask(rows=24, cols=24, cu_seqlens=cu, cu_seqlens_k=cu, w=4)
    assert (other.causal, other.startend_row_indices.shape[-1]) == (False, 2)
    assert torch.equal(decoded(other, 24), decoded(pack, 24))


def test_a_proof_rests_on_facts_that_are_checked() -> None:
    mask = zoo.load("shared_prompt")
    tables = {"pack": [0] * 8, "prompt": [3] * 8, "segment": [0, 0, 0, 3, 3, 5, 4, 6]}
    with pytest.raises(cmir.MetadataError, match="segment"):
        mask.to_flashmask(rows=8, **{name: torch.tensor(table) for name, table in tables.items()})


def test_fa4_is_named_where_it_is_not_installed() -> None:
    fa4 = zoo.load("causal").describe(rows=20, device="cpu").to_fa4()
    with pytest.raises(cmir.CmirError, match="needs flash-attn-4"):
        fa4.arguments()
