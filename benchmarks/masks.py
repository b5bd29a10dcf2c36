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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from cmir import CompiledMask

MaskMod = Callable[[Any, Any, Any, Any], Any]
"""FlexAttention's: (batch, head, row, column), tensors that broadcast, to a bool tensor: visible."""

TEXT, RADIUS, PATCH = 512, 16, (8, 16)
"""CLEAR's text tokens, its radius, and rows and columns of a patch of its image."""

STRIDE = 128
"""Of the Sparse Transformer's mask."""

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
    zoo: str = ""
    """The mask of the zoo, where it is not the one of that name."""
    layout: Any = None
    """The order of tokens, of `cmir.layouts`."""

    def compile(self) -> CompiledMask:
        import cmir

        return cmir.compile(cmir.zoo.path(self.zoo or self.name), statics=self.statics, layout=self.layout)


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


def clear(length: int, device: str) -> Case:
    text = min(TEXT, length // 2)
    height = math.isqrt(length - text)
    width = height + 1 if height * (height + 1) <= length - text else height
    return _clear("clear", length, text, height, width)


def clear_wide(length: int, device: str) -> Case:
    return _clear("clear_wide", length, TEXT, *_grid(length))


def clear_patches(length: int, device: str) -> Case:
    """The mask of `clear_wide`; tokens of the image stand patch by patch, for cmir and for its peers."""
    import cmir

    height, width = _grid(length)
    raster = _clear("clear_patches", length, TEXT, height, width)
    patch_rows, patch_columns = PATCH
    place = torch.arange(height * width, device=device)
    patch, inside = place // (patch_rows * patch_columns), place % (patch_rows * patch_columns)
    across = width // patch_columns
    y = patch // across * patch_rows + inside // patch_columns
    x = patch % across * patch_columns + inside % patch_columns
    # Coordinates by token; those of text are not asked for.
    y, x = (torch.cat([torch.zeros(TEXT, device=device, dtype=torch.int64), c]).int() for c in (y, x))

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        dy, dx = y[q] - y[k], x[q] - x[k]
        return (q < TEXT) | (k < TEXT) | (dy * dy + dx * dx < RADIUS * RADIUS)

    layout = cmir.layouts.Patch(grid=(height, width), size=PATCH, after=TEXT)
    return replace(raster, mask_mod=mask_mod, layout=layout)


def _grid(pixels: int) -> tuple[int, int]:
    """Height and width of an image of so many pixels, a power of two: 32K are 128 x 256."""
    height = 1 << (pixels.bit_length() - 1) // 2
    return height, pixels // height


def _clear(name: str, length: int, text: int, height: int, width: int) -> Case:
    radius, tokens = RADIUS, text + height * width

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
    return Case(name, length, tokens, area, mask_mod, statics=statics, zoo="clear")


def strided(length: int, device: str) -> Case:
    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((q - k < STRIDE) | ((q - k) % STRIDE == 0))

    area = sum(min(i + 1, STRIDE) + max(0, i // STRIDE) for i in range(length))
    return Case("strided", length, length, area, mask_mod, statics={"stride": STRIDE})


MASKS: dict[str, Callable[[int, str], Case]] = {
    "causal": causal,
    "hstu": hstu,
    "shared_prompt": shared_prompt,
    "clear": clear,
}
"""The four that the README's table is about."""

MORE: dict[str, Callable[[int, str], Case]] = {
    "clear_wide": clear_wide,
    "clear_patches": clear_patches,
    "strided": strided,
}
"""What else: CLEAR on 128 x 256 and the like, in raster order and by patches; a stride, which is tested by bits."""


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
