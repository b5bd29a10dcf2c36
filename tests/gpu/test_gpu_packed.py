# pyright: basic
"""Packed sequences on a GPU: lists cut to the longest sequence, a million tokens, attention within sequences alone."""

from __future__ import annotations

import os

import pytest
import torch

import cmir
from cmir import zoo
from cmir.runtime.reference import reference_attention

GPU = os.environ.get("CMIR_TEST_GPU") == "1"
DEVICE = "cuda" if GPU else "cpu"
DTYPE, DIM = (torch.bfloat16, 64) if GPU else (torch.float16, 16)

only_gpu = pytest.mark.skipif(not GPU, reason="needs a GPU, not an interpreter")


def pack(lengths: list[int], padding: int) -> dict:
    cu = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32, device=DEVICE)
    return {"cu_seqlens": cu, "rows": int(cu[-1]) + padding}


def lengths_of(tokens: int, longest: int) -> list[int]:
    generator = torch.Generator().manual_seed(tokens)
    lengths: list[int] = []
    while sum(lengths) < tokens:
        lengths.append(min(int(torch.randint(0, longest + 1, (), generator=generator)), tokens - sum(lengths)))
    return lengths


@pytest.mark.parametrize("tile", [(16, 64), (128, 128)])
def test_short_lists_say_the_same_as_long_ones(tile: tuple[int, int]) -> None:
    mask = zoo.load("causal")
    lengths = lengths_of(1500 if GPU else 200, 150 if GPU else 30)
    arguments = pack(lengths, 5)
    wide = mask.describe(**arguments, tile=tile).check()
    tight = mask.describe(**arguments, tile=tile, max_seqlen=max(lengths)).check()
    assert tight.area.tolist() == wide.area.tolist() == [sum(n * (n + 1) // 2 for n in lengths)]
    assert tight.widths <= wide.widths
    for field in ("row_state", "row_count", "row_order", "col_state", "col_count", "col_order"):
        assert torch.equal(getattr(tight, field), getattr(wide, field)), field
    q, k, v, dout = (torch.randn(1, 2, arguments["rows"], DIM, device=DEVICE, dtype=DTYPE) for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    found = [cmir.attention(q, k, v, desc) for desc in (tight, wide)]
    assert torch.equal(*found)
    gradients = [torch.autograd.grad(out, leaves, dout) for out in found]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    out, _ = reference_attention(q, k, v, tight.to_dense())
    assert (found[0] - out).float().norm() < 5e-3 * out.float().norm()


def test_a_sequence_longer_than_promised_is_named() -> None:
    mask = zoo.load("causal")
    desc = mask.describe(**pack([40, 90, 20], 0), tile=(16, 16), max_seqlen=60)
    with pytest.raises(cmir.MetadataError, match="max_seqlen` at entry 1"):
        desc.check()
    q = torch.randn(1, 1, desc.rows, DIM, device=DEVICE, dtype=DTYPE)
    assert torch.isfinite(cmir.attention(q, q, q, desc)).all()  # wrong, as it was told, but within its memory


@only_gpu
def test_a_million_tokens() -> None:
    mask = zoo.load("causal")
    lengths = lengths_of(2**20 - 77, 16384)
    arguments = pack(lengths, 77)
    desc = mask.describe(**arguments, max_seqlen=16384).check()
    assert desc.area.tolist() == [sum(n * (n + 1) // 2 for n in lengths)]
    assert desc.nbytes < 256 * 2**20
    assert desc.row_count.sum(1).tolist() == desc.col_count.sum(1).tolist()
    q = torch.randn(1, 1, desc.rows, DIM, device=DEVICE, dtype=DTYPE)
    out = cmir.attention(q, q, q, desc)
    begin = 0
    for n in lengths[:20]:
        one = q[:, :, begin : begin + n].float()
        want = torch.nn.functional.scaled_dot_product_attention(one, one, one, is_causal=True)
        assert n == 0 or (out[:, :, begin : begin + n] - want).norm() < 5e-3 * want.norm()
        begin += n
    assert not out[:, :, -77:].any()
