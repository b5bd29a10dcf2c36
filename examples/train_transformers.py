"""Fine-tuning a Hugging Face model on packed sequences with attn_implementation="cmir".

Sequences of different lengths stand one after another in one row, without padding; position ids that restart tell the
model where. The row is first compared with its sequences one at a time, loss and gradients, by the model's own sdpa.
Without --model a small random Qwen3 is used, on a GPU or a CPU.

    pip install 'cmir[torch,transformers]'
    python examples/train_transformers.py
    python examples/train_transformers.py --model Qwen/Qwen3-0.6B --tokens 8192 --steps 20
"""

import argparse
import os
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

try:
    from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install 'cmir[torch,transformers]'") from None

from cmir.integrations import transformers as integration


def small() -> Any:
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, max_position_embeddings=128,
        )
    )  # fmt: skip


def packs(tokens: int, vocabulary: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A row of made-up sequences that count upwards: ids [1, tokens] and positions [1, tokens]."""
    lengths = []
    while (left := tokens - sum(lengths)) > 0:
        lengths.append(min(left, int(torch.randint(tokens // 8, tokens // 2, (), generator=generator))))
    positions = torch.cat([torch.arange(n) for n in lengths])
    first = torch.randint(vocabulary, (len(lengths),), generator=generator).repeat_interleave(torch.tensor(lengths))
    return (first + positions)[None] % vocabulary, positions[None]


def loss(model: Any, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Of the next token, where it is of the same sequence: summed."""
    logits = model(input_ids=ids, position_ids=positions, use_cache=False).logits[0, :-1].float()
    return F.cross_entropy(logits, torch.where(positions[0, 1:] > 0, ids[0, 1:], -100), reduction="sum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a name on the hub or a folder; by default a small random one")
    parser.add_argument("--tokens", type=int, default=48, help="of a row")
    parser.add_argument("--steps", type=int, default=2)
    chosen = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(chosen.model, dtype=torch.bfloat16) if chosen.model else small()
    model.to(device)
    vocabulary, generator = min(64, model.config.vocab_size), torch.Generator().manual_seed(0)
    integration.register()

    if not chosen.model:
        ids, positions = (x.to(device) for x in packs(chosen.tokens, vocabulary, generator))
        cuts = [*(positions[0] == 0).nonzero()[:, 0].tolist(), chosen.tokens]
        model.set_attn_implementation("sdpa")
        alone = sum(loss(model, ids[:, a:b], positions[:, a:b]) for a, b in pairwise(cuts))
        model.set_attn_implementation("cmir")
        weights = list(model.parameters())
        for packed, one in zip(
            torch.autograd.grad(loss(model, ids, positions), weights), torch.autograd.grad(alone, weights), strict=True
        ):
            torch.testing.assert_close(packed, one, rtol=1e-3, atol=1e-4)
        print(f"a row of {len(cuts) - 1} sequences is equal to its sequences, gradients too")

    model.set_attn_implementation("cmir")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5 if chosen.model else 3e-3)
    for step in range(chosen.steps):
        ids, positions = (x.to(device) for x in packs(chosen.tokens, vocabulary, generator))
        optimizer.zero_grad()
        mean = loss(model, ids, positions) / chosen.tokens
        mean.backward()
        optimizer.step()
        print(f"step {step}: loss {mean.item():.4f}")


if __name__ == "__main__":
    main()
