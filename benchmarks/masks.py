"""The masks that are measured, at a length: metadata for cmir, a `mask_mod` for FlexAttention, the exact area.

The four headline masks:

- causal.
- hstu: a history of 3/4 of the length, then candidates of 16 tokens.
- shared_prompt: one pack, a prompt of 1/4 of the length and 6 answers.
- clear: 512 text tokens and a nearly square image, circle of radius 16, strict (dy * dy + dx * dx < 16 * 16). The grid
  is the largest nearly square one that fits: tokens are a few fewer than the length asked for, and tiles are ragged.

And packed_hstu: users of log-normal length (`numpy.random.default_rng(0).lognormal(5.6, 0.8)`, at least 8 tokens, the
last one cut) until the row is full. A quarter of a user's tokens, 80 at most, are candidates of 4 tokens each; the rest
is history.

The `mask_mod` is the cheapest way to say the mask that we know: scalars are Python constants, and a table is used only
where a formula will not do. It says the same pairs as the .mlir of the zoo, but shares no code with cmir: it is also
what results are checked against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from cmir import CompiledMask, Descriptor

MaskMod = Callable[[Any, Any, Any, Any], Any]
"""FlexAttention's: (batch, head, row, column), tensors that broadcast, to a bool tensor: visible."""

TEXT, RADIUS, PATCH = 512, 16, (8, 16)
"""CLEAR's text tokens, its radius, and rows and columns of a patch of its image."""

STRIDE = 128
"""Of the Sparse Transformer's mask."""

CANDIDATE, ANSWERS = 16, 6
"""Tokens of an HSTU candidate; answers to a shared prompt."""

USER_CANDIDATE, USER_CANDIDATES = 4, 80
"""Tokens of a candidate of packed users, and most tokens of all candidates of a user."""


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
    order: torch.Tensor | None = None
    """int64 [tokens], where there is a layout: the token, in raster order, that stands at each place."""
    raster: MaskMod | None = None
    """Where there is a layout, the mask_mod of tokens in raster order."""

    @cached_property
    def compiled(self) -> CompiledMask:
        import cmir

        return cmir.compile(cmir.zoo.path(self.zoo or self.name), statics=self.statics, layout=self.layout)

    def describe(self, device: str) -> Descriptor:
        return self.compiled.describe(rows=self.tokens, cols=self.tokens, device=device, **self.metadata)


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


def user_lengths(tokens: int) -> list[int]:
    """Tokens of each user, log-normal, that fill a row; the same for every run."""
    generator = np.random.default_rng(0)
    lengths: list[int] = []
    while (left := tokens - sum(lengths)) > 0:
        lengths.append(min(left, max(8, int(generator.lognormal(5.6, 0.8)))))
    return lengths


def packed_hstu(length: int, device: str) -> Case:
    lengths = user_lengths(length)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    candidates = [min(n // 4 // USER_CANDIDATE * USER_CANDIDATE, USER_CANDIDATES) for n in lengths]
    history = [n - c for n, c in zip(lengths, candidates, strict=True)]
    # In a user's own sequence, of every row: the first of its candidate; 0 in the history.
    start = np.concatenate(
        [
            np.where(own < h, 0, h + (own - h) // USER_CANDIDATE * USER_CANDIDATE)
            for own, h in zip(map(np.arange, lengths), history, strict=True)
        ]
    )

    def table(values: Any) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(values, dtype=np.int32), device=device)

    # In the row of tokens: where a row's user begins, where the user's history ends, where the row's candidate begins.
    offsets = np.repeat(ends[:-1], lengths)
    first, past, own = table(offsets), table(offsets + np.repeat(history, lengths)), table(offsets + start)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & (first[q] <= k) & ((k < past[q]) | (own[q] <= k))

    area = sum(
        _triangle(h) + c * h + c // USER_CANDIDATE * _triangle(USER_CANDIDATE)
        for h, c in zip(history, candidates, strict=True)
    )
    metadata = {
        "cu_seqlens": table(ends), "max_seqlen": max(lengths), "history": table(history), "start": table(start)
    }  # fmt: skip
    return Case("packed_hstu", length, length, area, mask_mod, metadata, zoo="hstu")


def clear(length: int, device: str) -> Case:
    text = min(TEXT, length // 2)
    height = math.isqrt(length - text)
    width = height + 1 if height * (height + 1) <= length - text else height
    return _clear("clear", length, text, height, width)


def clear_wide(length: int, device: str) -> Case:
    return _clear("clear_wide", length, TEXT, *_grid(length))


def clear_patches(length: int, device: str) -> Case:
    """The mask of `clear_wide`; tokens of the image stand patch by patch, for cmir and for its peers."""
    return _patched("clear_patches", length, *_grid(length), device)


def clear_square(length: int, device: str) -> Case:
    """CLEAR on a nearly square image of whole patches, text included in the length; likewise patch by patch."""
    return _patched("clear_square", length, *_square(length - TEXT), device)


def _patched(name: str, length: int, height: int, width: int, device: str) -> Case:
    import cmir

    raster = _clear(name, length, TEXT, height, width)
    patch_rows, patch_columns = PATCH
    place = torch.arange(height * width, device=device)
    patch, inside = place // (patch_rows * patch_columns), place % (patch_rows * patch_columns)
    across = width // patch_columns
    y = patch // across * patch_rows + inside // patch_columns
    x = patch % across * patch_columns + inside % patch_columns
    order = torch.cat([torch.arange(TEXT, device=device), TEXT + y * width + x])
    # Coordinates by token; those of text are not asked for.
    y, x = (torch.cat([torch.zeros(TEXT, device=device, dtype=torch.int64), c]).int() for c in (y, x))

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        dy, dx = y[q] - y[k], x[q] - x[k]
        return (q < TEXT) | (k < TEXT) | (dy * dy + dx * dx < RADIUS * RADIUS)

    layout = cmir.layouts.Patch(grid=(height, width), size=PATCH, after=TEXT)
    return replace(raster, mask_mod=mask_mod, layout=layout, order=order, raster=raster.mask_mod)


def _grid(pixels: int) -> tuple[int, int]:
    """Height and width of an image of so many pixels, a power of two: 32K are 128 x 256."""
    height = 1 << (pixels.bit_length() - 1) // 2
    return height, pixels // height


def _square(pixels: int) -> tuple[int, int]:
    """Height and width of the largest image of whole patches that has at most so many pixels, the squarest of those:
    of 32K tokens, 512 of them text, 168 x 192."""
    rows, columns = PATCH
    patches = pixels // (rows * columns)
    sizes = [(rows * high, columns * (patches // high)) for high in range(patches, 0, -1)]
    return max(sizes, key=lambda size: (size[0] * size[1], -abs(size[0] - size[1])))


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


def causal_document(length: int, device: str) -> Case:
    document, first, _, lengths = _documents(length, device)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & (first[q] <= k)

    area = sum(map(_triangle, lengths))
    return Case("causal_document", length, length, area, mask_mod, {"document": document})


def document(length: int, device: str) -> Case:
    document, first, end, lengths = _documents(length, device)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (first[q] <= k) & (k < end[q])

    return Case("document", length, length, sum(n * n for n in lengths), mask_mod, {"document": document})


def full(length: int, device: str) -> Case:
    return Case("full", length, length, length * length, lambda b, h, q, k: k >= 0)


def window(length: int, device: str) -> Case:
    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & (q - k <= WINDOW)

    area = sum(min(i, WINDOW) + 1 for i in range(length))
    return Case("window", length, length, area, mask_mod, statics={"window": WINDOW}, zoo="window_attention_gym")


def global_window(length: int, device: str) -> Case:
    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((q - k <= WINDOW) | (k < GLOBALS))

    area = sum(min(i, WINDOW) + 1 + min(GLOBALS, max(0, i - WINDOW)) for i in range(length))
    statics = {"left": WINDOW, "globals": GLOBALS}
    return Case("global_window", length, length, area, mask_mod, statics=statics, zoo="global_window_causal")


def causal_blockwise(length: int, device: str) -> Case:
    """The last document sees all of them."""
    _, first, _, lengths = _documents(length, device)
    last = length - lengths[-1]

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((first[q] <= k) | (q >= last))

    area = sum(map(_triangle, lengths[:-1])) + _triangle(length) - _triangle(last)
    return Case("causal_blockwise", length, length, area, mask_mod, {"last": last, "start": first})


def prefix_lm(length: int, device: str) -> Case:
    prefix = length // 4

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) | (k < prefix)

    area = _triangle(length) + _triangle(prefix - 1)
    return Case("prefix_lm", length, length, area, mask_mod, {"prefix": prefix})


def prefix_document(length: int, device: str) -> Case:
    """Documents in one row; a quarter of each is its prefix."""
    _, first, _, lengths = _documents(length, device)
    prefix = [n // 4 for n in lengths]
    counts = torch.tensor(lengths)
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    past = (ends[:-1] + torch.tensor(prefix)).repeat_interleave(counts).to(device, torch.int32)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (first[q] <= k) & ((k <= q) | (k < past[q]))

    area = sum(_triangle(n) + _triangle(p - 1) for n, p in zip(lengths, prefix, strict=True))
    metadata = {
        "cu_seqlens": ends.to(device, torch.int32), "max_seqlen": max(lengths),
        "prefix": torch.tensor(prefix, dtype=torch.int32, device=device),
    }  # fmt: skip
    return Case("prefix_document", length, length, area, mask_mod, metadata, zoo="prefix_lm")


def qk_sparse(length: int, device: str) -> Case:
    """Every fourth span of 256 tokens is hidden until it ends."""
    place = torch.arange(length, device=device)
    span = place // SPAN
    from_row = torch.where(span % 4 == 1, torch.clamp((span + 1) * SPAN, max=length), place).to(torch.int32)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return from_row[k] <= q

    area = int((length - from_row).sum())
    return Case("qk_sparse", length, length, area, mask_mod, {"from_row": from_row})


def random_eviction(length: int, device: str) -> Case:
    place = torch.arange(length)
    kept = torch.randint(1, length, (length,), generator=torch.Generator().manual_seed(length))
    evict = torch.minimum(place + kept, torch.tensor(length)).to(device, torch.int32)

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & (q < evict[k])

    area = int((evict.cpu() - place).sum())
    return Case("random_eviction", length, length, area, mask_mod, {"evict": evict})


WINDOW, GLOBALS, SPAN = 1024, 64, 256
"""Of the windows of FlashMask's suite; tokens of a span of qk_sparse."""

SUITES: dict[str, dict[str, Callable[[int, str], Case]]] = {
    "headline": {"causal": causal, "hstu": hstu, "shared_prompt": shared_prompt, "clear": clear},
    "more": {
        "packed_hstu": packed_hstu,
        "clear_wide": clear_wide,
        "clear_patches": clear_patches,
        "clear_square": clear_square,
        "strided": strided,
    },
    "flashmask": {
        "full": full,
        "causal": causal,
        "window": window,
        "causal_document": causal_document,
        "document": document,
        "shared_prompt": shared_prompt,
        "global_window": global_window,
        "causal_blockwise": causal_blockwise,
        "prefix_document": prefix_document,
        "prefix_lm": prefix_lm,
        "qk_sparse": qk_sparse,
        "random_eviction": random_eviction,
    },
}
"""headline: the four that the README's table is about. more: packed users; CLEAR on 128 x 256 and the like, in raster
order and by patches, and by patches on a square; a stride, which is tested by bits. flashmask: the twelve kinds of mask
that FlashMask measures."""

MASKS = SUITES["headline"]


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


def _documents(length: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int]]:
    """int32 [length] each: the number of every token's document, its first token, its end; and the lengths: random, a
    quarter of the row at most, the same for every run."""
    generator = torch.Generator().manual_seed(length)
    lengths: list[int] = []
    while (left := length - sum(lengths)) > 0:
        lengths.append(min(left, int(torch.randint(length // 32, length // 4, (), generator=generator))))
    counts = torch.tensor(lengths)
    ends = counts.cumsum(0)
    tables = [torch.arange(len(lengths)), ends - counts, ends]
    number, first, end = (t.repeat_interleave(counts).to(device, torch.int32) for t in tables)
    return number, first, end, lengths
