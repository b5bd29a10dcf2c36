# pyright: basic
"""A descriptor for other engines: the same pairs, and the same attention from PyTorch's own."""

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, create_mask, flex_attention

import cmir
from cmir import zoo
from cmir.analysis.sampling import draw
from cmir.frontend.mask_mod import MaskModSpec
from cmir.interp.domain import TableValue


def evict() -> cmir.CompiledMask:
    """Unbounded by row: tested from the column table."""
    spec = cmir.MaskSpec("evict")
    until = spec.table("until", per="col")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i < until[spec.j]))
    return cmir.compile(spec)


def strided() -> cmir.CompiledMask:
    """Unbounded both ways: tested by bits."""
    spec = cmir.MaskSpec("strided")
    d = spec.i - spec.j
    spec.region("all", 0, spec.rows, visible=(d >= 0) & ((d < 40) | (d % 7 == 0)))
    return cmir.compile(spec)


MASKS = {
    "causal": lambda: zoo.load("causal"),
    "shared_prompt": lambda: zoo.load("shared_prompt"),
    "clear": lambda: zoo.load("clear", radius=3, height=6, width=7, text=3),
    "evict": evict,
    "strided": strided,
}


def metadata(mask: cmir.CompiledMask, rows: int) -> dict:
    env = None
    rng = np.random.default_rng(rows)
    while env is None:
        env = draw(mask.facts, rng, rows)
    return {k: torch.tensor(v.values) if isinstance(v, TableValue) else int(v) for k, v in env.items()}


@pytest.mark.parametrize("name", MASKS)
def test_the_same_pairs_and_the_same_attention(name: str) -> None:
    mask = MASKS[name]()
    given = metadata(mask, 100)
    desc = mask.describe(**given, tile=(16, 16)).check()
    want = torch.from_numpy(mask.dense(**given))
    assert torch.equal(desc.to_dense(), want[None, None])
    blocks = desc.to_block_mask()
    rows, cols = desc.rows, desc.cols
    at = torch.zeros((), dtype=torch.int64)
    q, k, v = (torch.randn(1, 2, length, 16) for length in (rows, cols, cols))
    out = cmir.attention(q, k, v, desc)
    seen = want.any(1)
    flex = flex_attention(q, k, v, block_mask=blocks)
    torch.testing.assert_close(flex[:, :, seen], out[:, :, seen], atol=2e-5, rtol=2e-5)
    sdpa = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=desc.to_dense())
    torch.testing.assert_close(sdpa[:, :, seen], out[:, :, seen], atol=2e-5, rtol=2e-5)
    # The blocks say which tiles are empty and full by themselves.
    tiles = blocks.to_dense()[0, 0].bool()
    padded = torch.nn.functional.pad(want, (0, -cols % 16, 0, -rows % 16))
    assert torch.equal(tiles, padded.unfold(0, 16, 16).unfold(1, 16, 16).any(-1).any(-1))
    assert blocks.mask_mod is not None
    assert not blocks.mask_mod(at, at, torch.tensor(0), torch.tensor(cols - 1)) or bool(want[0, cols - 1])


def test_a_batch_of_masks_with_heads() -> None:
    spec = cmir.MaskSpec("windows")
    w = spec.scalar("w")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i - spec.j < w))
    mask = cmir.compile(spec)
    w = torch.tensor([[1, 5, 9], [2, 30, 50]])
    desc = mask.describe(rows=50, w=w, tile=(16, 16))
    dense = desc.to_dense()
    assert dense.shape == (2, 3, 50, 50)
    for b, h in np.ndindex(2, 3):
        assert np.array_equal(dense[b, h].numpy(), mask.dense(rows=50, w=int(w[b, h])))
    q, k, v = (torch.randn(2, 3, 50, 16) for _ in range(3))
    flex = flex_attention(q, k, v, block_mask=desc.to_block_mask())
    torch.testing.assert_close(flex, cmir.attention(q, k, v, desc), atol=2e-5, rtol=2e-5)


def scattered() -> MaskModSpec:
    """By bits, with full, partial and empty tiles."""
    doc = torch.arange(200) // 20

    def rule(b, h, q, k):
        return (doc[q - 40] == doc[k - k - 1]) | (doc[k - 20] == 2)

    return cmir.from_mask_mod(rule)


def test_a_mask_by_bits_is_the_same_function_in_every_tile() -> None:
    spec = scattered()
    desc = cmir.compile(spec, test="bits").describe(rows=40, cols=90, tile=(16, 16), **spec.captured)
    assert desc.bits is not None
    dense = desc.to_dense()
    blocks = desc.to_block_mask()
    assert torch.equal(create_mask(blocks.mask_mod, 1, 1, 40, 90, device="cpu"), dense)
    # Blocks of other sizes may be made from it.
    again = create_block_mask(blocks.mask_mod, 1, 1, 40, 90, device="cpu", BLOCK_SIZE=8)
    assert torch.equal(again.to_dense()[..., :5, :11].bool(), dense_blocks(dense, 8)[..., :5, :11])


def dense_blocks(dense: torch.Tensor, size: int) -> torch.Tensor:
    rows, cols = dense.shape[-2:]
    padded = torch.nn.functional.pad(dense, (0, -cols % size, 0, -rows % size))
    return padded.unfold(2, size, size).unfold(3, size, size).any(-1).any(-1)
