"""Training a reward model on shared prompts: a prompt once, and all its answers after it, in one row of tokens.

An answer sees the prompt and itself. The small run first compares one row with a copy of the prompt before every
answer, loss and gradients: they are equal, and the row is shorter. The full run trains beside FlexAttention.

    python examples/train_reward_model.py
    python examples/train_reward_model.py --size full --json reward_model.json
"""

import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

from training.layers import Attend, Stack
from training.race import (
    Task,
    assert_same_gradients,
    assert_same_pairs,
    fill,
    flex_backends,
    options,
    race,
    say,
    shape_of,
    with_cmir,
    with_flex,
)

from cmir import zoo


@dataclass
class Packs:
    """Prompts with their answers. Per token: its word, its position, the first token of its pack, the end of that
    pack's prompt, and the first token of its segment: the prompt, or one answer."""

    words: torch.Tensor
    positions: torch.Tensor
    pack: torch.Tensor
    prompt: torch.Tensor
    segment: torch.Tensor
    better: torch.Tensor
    """The last token of the better answer, for every pair of answers that is compared."""
    worse: torch.Tensor


def packs(number: int, tokens: int, longest: int, vocabulary: int, device: str) -> Packs:
    """Made-up packs until the row is full: 2 to 6 answers, of which the first is the best and says so in its words."""
    generator = torch.Generator().manual_seed(number)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    lengths: list[int] = []  # of segments
    pack_of: list[int] = []  # their packs' first segments
    while (left := tokens - sum(lengths)) > 0:
        segments = [draw(longest // 4, longest), *(draw(longest // 8, longest // 2) for _ in range(draw(2, 6)))]
        pack_of += [len(lengths)] * len(segments)
        lengths += segments
        if sum(segments) > left:  # the last pack is what is left: one prompt
            lengths[len(lengths) - len(segments) :], pack_of[len(pack_of) - len(segments) :] = [left], [pack_of[-1]]
    size, of_pack = torch.tensor(lengths), torch.tensor(pack_of)
    end = size.cumsum(0)
    begin = end - size
    at = torch.repeat_interleave(size)  # the segment of every token
    own = of_pack[at]
    is_prompt = own == at
    prompt = end[own]
    place = torch.arange(tokens)
    words = torch.randint(vocabulary // 2, (tokens,), generator=generator)
    best = (at == own + 1) & (torch.rand(tokens, generator=generator) < 0.5)
    answers = (of_pack != torch.arange(len(size))).nonzero()[:, 0]
    others = answers[answers != of_pack[answers] + 1]
    made = Packs(
        words=words + best * (vocabulary // 2),
        # An answer comes right after the prompt, whichever it is.
        positions=torch.where(is_prompt, place - begin[own], size[own] + place - begin[at]),
        pack=begin[own],
        prompt=prompt,
        segment=begin[at],
        better=end[of_pack[others] + 1] - 1,
        worse=end[others] - 1,
    )
    return Packs(**{name: value.to(device) for name, value in vars(made).items()})


class RewardModel(nn.Module):
    def __init__(self, vocabulary: int, stack: Stack, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.stack = stack
        self.reward = nn.Linear(hidden, 1, bias=False)

    def forward(self, words: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        return self.reward(self.stack(self.words(words)[None], positions, attend))[0, :, 0].float()


def main() -> None:
    chosen = options(__doc__)
    tokens, longest, vocabulary = (32768, 4096, 8192) if chosen.full else (72, 16, 64)
    torch.manual_seed(0)
    shape, mask = shape_of(chosen), zoo.load("shared_prompt")
    with torch.device(chosen.device):
        stack = Stack(shape, chosen.layers, chosen.recompute)
        model = RewardModel(vocabulary, stack, shape.hidden).to(chosen.dtype)

    def describe(batch: Packs):
        return mask.describe(rows=tokens, pack=batch.pack, prompt=batch.prompt, segment=batch.segment)

    def compared(rewards: torch.Tensor, batch: Packs) -> torch.Tensor:
        return -F.logsigmoid(rewards[batch.better] - rewards[batch.worse]).mean()

    def loss(batch: Packs, attend: Attend) -> torch.Tensor:
        return compared(model(batch.words, batch.positions, attend), batch)

    buffers = {n: torch.zeros(tokens, dtype=torch.int32, device=chosen.device) for n in ("pack", "prompt", "segment")}
    pack, prompt, segment = buffers.values()

    def mask_mod(b, h, q, k):
        return (pack[q] <= k) & (k <= q) & ((k < prompt[q]) | (segment[q] <= k))

    if not chosen.full:
        batch = packs(0, tokens, longest, vocabulary, chosen.device)
        fill(buffers, batch)
        assert_same_pairs(mask_mod, describe(batch).check())
        rewards, copied = torch.zeros(tokens, device=chosen.device), 0
        for last in sorted({*batch.better.tolist(), *batch.worse.tolist()}):  # every answer in a row of its own
            first, begin, end = (int(table[last]) for table in (batch.pack, batch.segment, batch.prompt))
            row = torch.cat([torch.arange(first, end), torch.arange(begin, last + 1)]).to(chosen.device)

            def causal(q, k, v):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

            alone = model(batch.words[row], torch.arange(len(row), device=chosen.device), causal)
            rewards = rewards.index_put((torch.tensor(last, device=chosen.device),), alone[-1])
            copied += len(row)
        assert_same_gradients(model, loss(batch, with_cmir(describe)(batch)), compared(rewards, batch))
        print(f"{tokens} tokens in one row are equal to {copied} with a prompt for every answer, gradients too")

    engines = {"cmir": with_cmir(describe)}
    for name, backend in flex_backends().items() if chosen.full else ():
        engines[name] = with_flex(mask_mod, buffers, tokens, chosen.device, backend)
    say(f"{sum(p.numel() for p in model.parameters()):,} weights")

    def batch_of(number: int) -> Packs:
        return packs(number, tokens, longest, vocabulary, chosen.device)

    race(Task("reward_model", tokens, model, batch_of, loss, engines), chosen)


if __name__ == "__main__":
    main()
