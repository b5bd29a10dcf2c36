# pyright: basic
"""attn_implementation="cmir" on a GPU: logits and gradients of a small Qwen3 in bf16, packed, padded and generating.

CMIR_TEST_GPU=1 python -m pytest tests/gpu/test_gpu_transformers.py -q
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

LENGTH = 500


def model(dtype: torch.dtype) -> Any:
    hf: Any = pytest.importorskip("transformers")
    importlib.import_module("cmir.integrations.transformers").register()
    torch.manual_seed(0)
    config = hf.Qwen3Config(
        vocab_size=256, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=1024, use_sliding_window=True, sliding_window=100,
        layer_types=["full_attention", "sliding_attention"], pad_token_id=0, eos_token_id=1, bos_token_id=2,
    )  # fmt: skip
    return hf.Qwen3ForCausalLM(config).to("cuda", dtype).eval()


def inputs(kind: str) -> dict[str, torch.Tensor]:
    if kind == "packed":
        positions = torch.cat([torch.arange(n) for n in (120, 3, 300, 77)])
        return {"position_ids": positions[None].expand(2, -1).cuda()}
    padding = torch.ones(2, LENGTH, dtype=torch.long)
    padding[0, :130] = 0
    return {"attention_mask": padding.cuda()}


@pytest.mark.parametrize("kind", ["packed", "padded"])
def test_logits_and_gradients_are_those_of_sdpa(kind: str) -> None:
    net = model(torch.bfloat16)
    ids = torch.randint(3, 256, (2, LENGTH), device="cuda")
    given = inputs(kind)
    told = given["attention_mask"].bool() if kind == "padded" else torch.ones_like(ids, dtype=torch.bool)
    seen: dict[str, list[torch.Tensor]] = {}
    for implementation in ("sdpa", "cmir"):
        net.set_attn_implementation(implementation)
        net.zero_grad()
        logits = net(input_ids=ids, use_cache=False, **given).logits[told].float()
        logits.log_softmax(-1)[:, 5].mean().backward()
        seen[implementation] = [logits, *(p.grad.float() for p in net.parameters() if p.grad is not None)]
    for got, want in zip(seen["cmir"], seen["sdpa"], strict=True):
        assert (got - want).norm() <= 3e-2 * want.norm()


def test_generation_gives_the_tokens_of_sdpa() -> None:
    net = model(torch.float32)
    ids = torch.randint(3, 256, (2, 200), device="cuda")
    tokens = []
    for implementation in ("sdpa", "cmir"):
        net.set_attn_implementation(implementation)
        tokens.append(net.generate(ids, max_new_tokens=8, do_sample=False))
    assert torch.equal(*tokens)
