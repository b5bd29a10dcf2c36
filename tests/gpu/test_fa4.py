# pyright: basic
"""FlashAttention 4's own interface on the forms of `desc.to_fa4()`, beside cmir's kernels; skipped where it is missing.

CMIR_TEST_GPU=1 python -m pytest tests/gpu/test_fa4.py -q
"""

from __future__ import annotations

import pytest
import torch

import cmir
from cmir import zoo

LENGTH = 1000


def masks() -> dict[str, tuple[cmir.CompiledMask, dict]]:
    segment = torch.tensor([0] * 300 + [300] * 400 + [700] * 300, dtype=torch.int32)
    prompt = torch.full((LENGTH,), 300, dtype=torch.int32)
    return {
        "causal": (zoo.load("causal"), {}),
        "shared_prompt": (
            zoo.load("shared_prompt"),
            {"pack": torch.zeros_like(segment), "prompt": prompt, "segment": segment},
        ),
        "strided": (zoo.load("strided"), {}),
    }


@pytest.mark.parametrize("name", ["causal", "shared_prompt", "strided"])
def test_flash_attention_4_gives_the_attention_of_cmir(name: str) -> None:
    flash = pytest.importorskip("flash_attn.cute")
    mask, metadata = masks()[name]
    metadata = {key: value.cuda() for key, value in metadata.items()}
    desc = mask.describe(rows=LENGTH, device="cuda", tile=(128, 128), **metadata).check()
    torch.manual_seed(0)
    q, k, v, dout = (
        torch.randn(2, heads, LENGTH, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for heads in (8, 2, 2, 8)
    )
    want = cmir.attention(q, k, v, desc)
    expected = (want, *torch.autograd.grad(want, (q, k, v), dout))
    by_rows = [x.detach().transpose(1, 2).contiguous().requires_grad_() for x in (q, k, v)]
    out = flash.flash_attn_func(*by_rows, **desc.to_fa4().arguments())
    out = out[0] if isinstance(out, tuple) else out
    found = (out, *torch.autograd.grad(out, by_rows, dout.detach().transpose(1, 2).contiguous()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.transpose(1, 2), b, rtol=3e-2, atol=3e-2)
