"""Training a recommendation model on packed users: histories of KuaiRand's lengths, each followed by candidates.

A user's history is causal; a candidate sees the history and itself, and no other candidate. Users stand one after
another in one row of tokens, cut by cu_seqlens. The small run first compares the pack with its users one at a time,
loss and gradients; the full one trains beside FlexAttention.

    python examples/train_hstu.py
    python examples/train_hstu.py --size full --json hstu.json
"""

import os
from dataclasses import dataclass
from itertools import pairwise

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

ITEM, TOPICS, LONGEST = 4, 8, 4096
"""Tokens of a candidate; topics of items; most tokens of a user."""


@dataclass
class Users:
    """A pack. Per token: its item, its position, the first token of its user, the end of that user's history, and the
    first token of its candidate (the first of the user, in the history), all counted from the start of the row."""

    items: torch.Tensor
    positions: torch.Tensor
    first: torch.Tensor
    history_end: torch.Tensor
    start: torch.Tensor
    cu_seqlens: torch.Tensor
    history: torch.Tensor
    scored: torch.Tensor
    """The last token of every candidate."""
    liked: torch.Tensor
    """Of every candidate, 0 or 1."""


def lengths_of(generator: torch.Generator, tokens: int, mean: float) -> list[int]:
    """Log-normal, as days of KuaiRand's users are, until the row is full."""
    lengths: list[int] = []
    while (left := tokens - sum(lengths)) > 0:
        drawn = int(torch.empty(()).log_normal_(mean, 0.8, generator=generator))
        lengths.append(min(max(8, drawn), LONGEST, left))
    return lengths


def users(number: int, tokens: int, mean: float, vocabulary: int, device: str) -> Users:
    """A pack of made-up users: each likes one topic, has mostly seen it, and likes candidates of it."""
    generator = torch.Generator().manual_seed(number)
    lengths = torch.tensor(lengths_of(generator, tokens, mean))
    candidates = (lengths // 4 // ITEM * ITEM).clamp(max=80)
    ends = lengths.cumsum(0)
    user = torch.repeat_interleave(lengths)
    first = (ends - lengths)[user]
    at = torch.arange(tokens) - first
    history = lengths - candidates
    candidate = (at - history[user]).div(ITEM, rounding_mode="floor")
    in_history = candidate < 0
    start = torch.where(in_history, 0, history[user] + candidate * ITEM)
    topic = torch.randint(TOPICS, lengths.shape, generator=generator)[user]
    other = torch.randint(TOPICS, (tokens,), generator=generator)
    by_candidate = other[first + start]  # all tokens of a candidate have one topic
    seen = torch.where(torch.rand(tokens, generator=generator) < 0.8, topic, other)
    of_item = torch.where(in_history, seen, by_candidate)
    items = torch.randint(vocabulary // TOPICS, (tokens,), generator=generator) * TOPICS + of_item
    scored = (~in_history & (at == start + ITEM - 1)).nonzero()[:, 0]
    # As many sequences in every pack, the last of them empty: shapes do not depend on the data.
    most = max(8, tokens // 64)
    assert len(ends) <= most
    cu_seqlens = F.pad(ends, (1, most - len(ends)), value=tokens)
    cu_seqlens[0] = 0
    made = Users(
        items=items,
        # A candidate comes right after the history, whichever it is.
        positions=torch.where(in_history, at, history[user] + at - start),
        first=first,
        history_end=first + history[user],
        start=first + start,
        cu_seqlens=cu_seqlens,
        history=F.pad(history, (0, len(cu_seqlens) - 1 - len(history))),
        scored=scored,
        liked=(of_item == topic)[scored].float(),
    )
    return Users(**{name: value.to(device) for name, value in vars(made).items()})


class Ranker(nn.Module):
    def __init__(self, vocabulary: int, stack: Stack, hidden: int) -> None:
        super().__init__()
        self.items = nn.Embedding(vocabulary, hidden)
        self.stack = stack
        self.score = nn.Linear(hidden, 1)

    def forward(self, items: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        return self.score(self.stack(self.items(items)[None], positions, attend))[0, :, 0].float()


def main() -> None:
    chosen = options(__doc__)
    tokens, mean, vocabulary = (32768, 5.6, 8192) if chosen.full else (64, 2.9, 64)
    torch.manual_seed(0)
    shape, mask = shape_of(chosen), zoo.load("hstu")
    with torch.device(chosen.device):
        model = Ranker(vocabulary, Stack(shape, chosen.layers, chosen.recompute), shape.hidden).to(chosen.dtype)

    def describe(batch: Users):
        return mask.describe(
            rows=tokens, cu_seqlens=batch.cu_seqlens, max_seqlen=min(LONGEST, tokens),
            history=batch.history, start=batch.start - batch.first,
        )  # fmt: skip

    def loss(batch: Users, attend: Attend) -> torch.Tensor:
        scores = model(batch.items, batch.positions, attend)
        return F.binary_cross_entropy_with_logits(scores[batch.scored], batch.liked)

    names = ("first", "history_end", "start")
    buffers = {name: torch.zeros(tokens, dtype=torch.int32, device=chosen.device) for name in names}
    first, history_end, start = buffers.values()

    def mask_mod(b, h, q, k):
        return (first[q] <= k) & (k <= q) & ((k < history_end[q]) | (start[q] <= k))

    if not chosen.full:
        batch = users(0, tokens, mean, vocabulary, chosen.device)
        fill(buffers, batch)
        assert_same_pairs(mask_mod, describe(batch).check())
        cuts = batch.cu_seqlens.unique().tolist()
        scores = []
        for begin, end in pairwise(cuts):  # one user at a time
            own = slice(begin, end)
            history = int(batch.history_end[begin]) - begin
            dense = mask.dense(rows=end - begin, history=history, start=(batch.start - batch.first)[own].tolist())
            visible = torch.from_numpy(dense).to(chosen.device)

            def alone(q, k, v, visible=visible):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)

            scores.append(model(batch.items[own], batch.positions[own], alone))
        separate = F.binary_cross_entropy_with_logits(torch.cat(scores)[batch.scored], batch.liked)
        assert_same_gradients(model, loss(batch, with_cmir(describe)(batch)), separate)
        print(f"{len(cuts) - 1} users in one row are equal to {len(cuts) - 1} users one at a time, gradients too")

    engines = {"cmir": with_cmir(describe)}
    for name, backend in flex_backends().items() if chosen.full else ():
        engines[name] = with_flex(mask_mod, buffers, tokens, chosen.device, backend)
    say(f"{sum(p.numel() for p in model.parameters()):,} weights")

    def batch_of(number: int) -> Users:
        return users(number, tokens, mean, vocabulary, chosen.device)

    race(Task("hstu", tokens, model, batch_of, loss, engines), chosen)


if __name__ == "__main__":
    main()
