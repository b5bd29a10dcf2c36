"""The four headline masks, at a length: metadata for cmir, a `mask_mod` for FlexAttention, the exact area.

- causal.
- hstu: a history of 3/4 of the length, then candidates of 16 tokens.
- shared_prompt: one pack, a prompt of 1/4 of the length and 6 answers.
- clear: 512 text tokens and a nearly square image, circle of radius 16, strict (dy * dy + dx * dx < 16 * 16). The grid
  is the largest nearly square one that fits: tokens are a few fewer than the length asked for, and tiles are ragged.

The `mask_mod` is the cheapest way to say the mask that we know: scalars are Python constants, and a table is used only
where a formula will not do. It says the same pairs as the .mlir of the zoo, but shares no code with cmir: it is also
what results are checked against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from cmir import CompiledMask

MaskMod = Callable[[Any, Any, Any, Any], Any]
"""FlexAttention's: (batch, head, row, column), tensors that broadcast, to a bool tensor: visible."""

TEXT, RADIUS = 512, 16
"""CLEAR's text tokens and its radius."""

CANDIDATE, ANSWERS = 16, 6
"""Tokens of an HSTU candidate; answers to a shared prompt."""


@dataclass(frozen=True)
class Case:
    """One mask at one length."""

    name: str
    length: int
    """The length asked for; `tokens` is what the mask has."""
    tokens: int
    area: int
    """Visible pairs, in closed form."""
    mask_mod: MaskMod
    metadata: Mapping[str, Any] = field(default_factory=dict)
    statics: Mapping[str, int] = field(default_factory=dict)

    def compile(self) -> CompiledMask:
        from cmir import zoo

        return zoo.load(self.name, **self.statics)


def causal(length: int, device: str) -> Case:
    return Case("causal", length, length, _triangle(length), lambda b, h, q, k: k <= q)


def hstu(length: int, device: str) -> Case:
    history = length // 4 * 3
    start, lengths = _segments(length, [history], CANDIDATE, device)
    start[:history] = 0

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((k < history) | (start[q] <= k))

    area = _triangle(history) + sum(history * n + _triangle(n) for n in lengths[1:])
    return Case("hstu", length, length, area, mask_mod, {"history": history, "start": start})


def shared_prompt(length: int, device: str) -> Case:
    prompt = length // 4
    segment, lengths = _segments(length, [prompt], -(-(length - prompt) // ANSWERS), device)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((k < prompt) | (segment[q] <= k))

    area = _triangle(prompt) + sum(prompt * n + _triangle(n) for n in lengths[1:])
    metadata = {"pack": torch.zeros_like(segment), "prompt": torch.full_like(segment, prompt), "segment": segment}
    return Case("shared_prompt", length, length, area, mask_mod, metadata)


def clear(length: int, device: str, radius: int = RADIUS) -> Case:
    text = min(TEXT, length // 2)
    height = math.isqrt(length - text)
    width = height + 1 if height * (height + 1) <= length - text else height
    tokens = text + height * width

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        p, r = q - text, k - text
        dy, dx = p // width - r // width, p % width - r % width
        return (q < text) | (k < text) | (dy * dy + dx * dx < radius * radius)

    near = range(1 - radius, radius)
    circle = sum(
        max(0, height - abs(dy)) * max(0, width - abs(dx))
        for dy in near
        for dx in near
        if dy * dy + dx * dx < radius * radius
    )
    area = text * tokens + (tokens - text) * text + circle
    statics = {"radius": radius, "height": height, "width": width, "text": text}
    return Case("clear", length, tokens, area, mask_mod, statics=statics)


MASKS: dict[str, Callable[[int, str], Case]] = {
    "causal": causal,
    "hstu": hstu,
    "shared_prompt": shared_prompt,
    "clear": clear,
}


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _segments(length: int, first: list[int], size: int, device: str) -> tuple[torch.Tensor, list[int]]:
    """int32 [length], the first token of each token's segment, and the segments' lengths: `first`, then `size` each,
    the last one cut at the end."""
    lengths = list(first)
    while sum(lengths) < length:
        lengths.append(min(size, length - sum(lengths)))
    counts = torch.tensor(lengths)
    starts = counts.cumsum(0) - counts
    return starts.repeat_interleave(counts).to(device, torch.int32), lengths
