"""Masks in closed form and their descriptors, made with torch alone: no compiler, no preprocess kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from cmir.signature import Signature

TILE = 128


@dataclass(frozen=True)
class Mask:
    """Interval tables [K, 2, N] of the rows and of the columns, and the same mask as a predicate for FlexAttention."""

    name: str
    length: int
    rows: torch.Tensor
    cols: torch.Tensor
    predicate: Callable[..., Any]

    @property
    def area(self) -> int:
        return int((self.rows[:, 1] - self.rows[:, 0]).long().sum())

    def dense(self) -> torch.Tensor:
        j = torch.arange(self.length, device=self.rows.device)
        lo, hi = self.rows[:, 0, :, None], self.rows[:, 1, :, None]
        return ((j >= lo) & (j < hi)).any(0)


def causal(length: int, device: str) -> Mask:
    i = torch.arange(length, dtype=torch.int32, device=device)
    zero, end = torch.zeros_like(i), torch.full_like(i, length)
    return Mask("causal", length, slots_of([(zero, i + 1)]), slots_of([(i, end)]), lambda b, h, q, k: k <= q)


def candidates(name: str, length: int, history: int, item: int, device: str) -> Mask:
    """Causal history; then items of `item` tokens, each causal in itself and seeing the history."""
    i = torch.arange(length, dtype=torch.int32, device=device)
    zero, old = torch.zeros_like(i), i < history
    start = torch.where(old, 0, history + (i - history) // item * item).int()
    end = torch.where(old, length, (start + item).clamp(max=length)).int()
    rows = [
        (zero, torch.where(old, i + 1, history).int()),
        (torch.where(old, 0, start).int(), torch.where(old, 0, i + 1).int()),
    ]

    def predicate(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (k <= q) & ((k < history) | (start[q] <= k))

    return Mask(name, length, slots_of(rows), slots_of([(i, end)]), predicate)


def clear(height: int, width: int, text: int, device: str, radius: int = 16) -> Mask:
    """Image tokens see a disc around them and the text; text tokens, at the end, see everything."""
    pixels = height * width
    length = pixels + text
    i = torch.arange(length, dtype=torch.int32, device=device)
    y, x, image = i // width, i % width, i < pixels
    slots: list[tuple[torch.Tensor, torch.Tensor]] = []
    for dy in range(-radius, radius + 1):
        reach = math.isqrt(radius * radius - dy * dy)
        real = image & (y + dy >= 0) & (y + dy < height)
        lo = (y + dy) * width + (x - reach).clamp(min=0)
        hi = (y + dy) * width + (x + reach).clamp(max=width - 1) + 1
        slots.append((torch.where(real, lo, 0).int(), torch.where(real, hi, 0).int()))
    slots.append((torch.where(image, pixels, 0).int(), torch.full_like(i, length)))
    table = slots_of(slots)

    def predicate(b: Any, h: Any, q: Any, k: Any) -> Any:
        dy, dx = q // width - k // width, q % width - k % width
        return (q >= pixels) | (k >= pixels) | (dy * dy + dx * dx <= radius * radius)

    return Mask("clear", length, table, table, predicate)


def slots_of(slots: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    return torch.stack([torch.stack([lo, hi]) for lo, hi in slots]).contiguous()


def make_mask(name: str, length: int, device: str) -> Mask:
    if name == "causal":
        return causal(length, device)
    if name == "hstu":
        return candidates("hstu", length, length // 4 * 3, 16, device)
    if name == "shared prompt":
        return candidates("shared prompt", length, length // 4, (length - length // 4 + 5) // 6, device)
    height, width = {1024: (32, 31), 4096: (64, 64), 8192: (90, 91), 32768: (181, 181)}[length]
    return clear(height, width, 512 if length > 1024 else 77, device)


def schedule(table: torch.Tensor, length: int, by_col: bool) -> list[torch.Tensor]:
    """(count, index, live, order), each with one mask in front, of square masks of `length`."""
    tiles, device = -(-length // TILE), table.device
    starts = torch.arange(tiles, device=device, dtype=torch.int32) * TILE
    slots = table.shape[0]
    area = torch.zeros(tiles, tiles, dtype=torch.int32, device=device)
    begin = torch.full_like(area, slots)
    end, most = torch.zeros_like(area), torch.zeros(tiles, TILE, tiles, dtype=torch.int32, device=device)
    for slot in range(slots):
        lo, hi = (torch.nn.functional.pad(x, (0, tiles * TILE - length)) for x in table[slot])
        seen = (torch.minimum(hi[:, None], starts + TILE) - torch.maximum(lo[:, None], starts)).clamp(min=0)
        seen = seen.view(tiles, TILE, tiles)
        most += seen > 0
        seen = seen.sum(1).int()
        area += seen
        begin = torch.where(seen > 0, begin.clamp(max=slot), begin)
        end = torch.where(seen > 0, slot + 1, end)
    valid = (length - starts).clamp(max=TILE)
    rows, cols = (valid[None, :], valid[:, None]) if by_col else (valid[:, None], valid[None, :])
    full = (area == rows * TILE) & (cols == TILE)
    partial = (area > 0) & ~full
    count = torch.stack([partial.sum(1), full.sum(1)], 1).int()
    ids = torch.arange(tiles, device=device, dtype=torch.int32).expand(tiles, tiles)
    order = torch.argsort(torch.where(partial, 0, torch.where(full, 2, 1)), dim=1, stable=True)
    index = torch.gather(ids, 1, order)
    live = torch.gather(begin | (end << 12) | (most.amax(1) << 24), 1, order)
    return [
        x[None].contiguous() for x in (count, index, live, count.sum(1).argsort(descending=True, stable=True).int())
    ]


def describe(mask: Mask, module: Any) -> Any:
    length = mask.length
    none = torch.zeros(1, dtype=torch.int64, device=mask.rows.device)
    count, index, live, order = schedule(mask.rows, length, False)
    col_count, col_index, col_live, col_order = schedule(mask.cols, length, True)
    return SimpleNamespace(
        row_table=mask.rows[None], row_state=none, row_count=count, row_index=index, row_live=live, row_order=order,
        col_table=mask.cols[None], col_state=none, col_count=col_count, col_index=col_index, col_live=col_live,
        col_order=col_order, area=none, status=none, rows=length, cols=length, tile=(TILE, TILE), batch=(),
        mask_strides=(0, 0), device=mask.rows.device, widths=(index.shape[-1], col_index.shape[-1]),
        signature=Signature(mask.name, (), mask.rows.shape[0], mask.cols.shape[0]), module=module,
    )  # fmt: skip
