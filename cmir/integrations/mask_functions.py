# pyright: basic
"""Mask functions of Hugging Face transformers, in the form that says them by intervals.

Its functions read tensors (position ids, ids of packed sequences, of images) at rows and at columns, and nothing in a
function says what its authors know of those tensors. Two are worth knowing, and are looked for in the data:

    packed   doc[q] == doc[k] and f(position[q], position[k])
             position[k] = k + shift[k], and shift is one number per sequence: within one, shift[k] = shift[q]
          -> doc[q] == doc[k] and f(q + shift[q], k + shift[q]),  doc never falls
    blocks   block[q] == block[k] and block[q] >= 0, equal ids side by side
          -> first[q] <= k < end[q],  first[q] <= q <= end[q], both never fall

Where the data are otherwise, the functions stay as they are: the same mask, by packed bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

MaskFunction = Callable[[Any, Any, Any, Any], Any]
Fact = tuple[Literal["nondecreasing", "around", "at least 0"], tuple[torch.Tensor, ...]]
HOME = "transformers.masking_utils"


@dataclass
class Rewritten:
    """A mask function, and what holds for the tensors that it captures."""

    function: MaskFunction
    facts: list[Fact] = field(default_factory=list[Fact])


def rewritten(function: MaskFunction, offsets: tuple[int, int], padding: torch.Tensor | None, device: Any) -> Rewritten:
    """The mask function on rows and columns from 0, with padding: bool [B, columns], False where it hides a column."""
    result = Rewritten(function)
    result.function = _rewrite(function, None, result)
    if any(offsets):
        result.function = _shifted(result, offsets, device)
    if padding is not None:
        result.function = _padded(result.function, padding)
    return result


def _captured(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return (
        dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True)) if cells else {}
    )


def _maker(function: Any) -> str:
    """The function of masking_utils that made this one, or ''."""
    if getattr(function, "__module__", "") != HOME:
        return ""
    return function.__qualname__.partition(".<locals>")[0]


def _rewrite(function: MaskFunction, shift: torch.Tensor | None, result: Rewritten) -> MaskFunction:
    """`shift` [B, rows] takes the place of remapped positions, where ids of packed sequences say that it may."""
    maker, captured = _maker(function), _captured(function)
    if maker in ("and_masks", "or_masks"):
        parts = captured["mask_functions"]
        if maker == "and_masks" and shift is None:
            shift = _shift_of(parts, result)
        return _joined(maker, [_rewrite(part, shift, result) for part in parts])
    if maker == "remap_positions_for_packed_sequence" and shift is not None:
        return _within_a_sequence(captured["mask_function"], shift)
    if maker == "blockwise_overlay":
        return _blocks(function, captured["block_sequence_ids"], result)
    return function


def _joined(maker: str, parts: list[MaskFunction]) -> MaskFunction:
    def all_of(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        seen = parts[0](b, h, q_idx, kv_idx)
        for part in parts[1:]:
            seen = seen & part(b, h, q_idx, kv_idx)
        return seen

    def any_of(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        seen = parts[0](b, h, q_idx, kv_idx)
        for part in parts[1:]:
            seen = seen | part(b, h, q_idx, kv_idx)
        return seen

    return all_of if maker == "and_masks" else any_of


def _shift_of(parts: tuple[MaskFunction, ...], result: Rewritten) -> torch.Tensor | None:
    """Position minus place of every token, if ids of packed sequences in this conjunction say that it is one number per
    sequence, and never fall."""
    of_sequences = [part for part in parts if _maker(part) == "packed_sequence_mask_function"]
    positions = next(map(_positions, parts), None)
    if not of_sequences or positions is None:
        return None
    ids = _captured(of_sequences[0])["packed_sequence_mask"]
    begins = torch.diff(positions, dim=-1) != 1
    if ids.shape != positions.shape or not torch.equal(torch.diff(ids, dim=-1), begins.to(ids.dtype)):
        return None
    result.facts.append(("nondecreasing", (ids,)))
    return (positions - torch.arange(positions.shape[-1], device=positions.device)).to(torch.int32)


def _positions(function: MaskFunction) -> torch.Tensor | None:
    """The position ids that a function remaps, itself or in its parts."""
    maker, captured = _maker(function), _captured(function)
    if maker == "remap_positions_for_packed_sequence":
        return captured["position_ids"]
    if maker in ("and_masks", "or_masks"):
        return next((found for part in captured["mask_functions"] if (found := _positions(part)) is not None), None)
    return None


def _within_a_sequence(function: MaskFunction, shift: torch.Tensor) -> MaskFunction:
    def remapped(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return function(b, h, q_idx + shift[b, q_idx], kv_idx + shift[b, q_idx])

    return remapped


def _blocks(function: MaskFunction, ids: torch.Tensor, result: Rewritten) -> MaskFunction:
    length = ids.shape[-1]
    at = torch.arange(length, device=ids.device).expand_as(ids)
    changes = torch.diff(ids, dim=-1) != 0
    edge = changes.new_ones((*ids.shape[:-1], 1))
    begins, ends = torch.cat([edge, changes], -1), torch.cat([changes, edge], -1)
    ordered = ids.sort(-1).values
    distinct = torch.cat([edge, torch.diff(ordered, dim=-1) != 0], -1) & (ordered >= 0)
    if not torch.equal((begins & (ids >= 0)).sum(-1), distinct.sum(-1)):
        return function
    run_first = torch.where(begins, at, 0).cummax(-1).values
    run_end = torch.where(ends, at + 1, length).flip(-1).cummin(-1).values.flip(-1)
    first = torch.where(ids >= 0, run_first, at).to(torch.int32)
    end = torch.where(ids >= 0, run_end, at).to(torch.int32)
    result.facts.extend([("around", (first, end)), ("nondecreasing", (first,)), ("nondecreasing", (end,))])

    def inside(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (first[b, q_idx] <= kv_idx) & (kv_idx < end[b, q_idx])

    return inside


def _shifted(result: Rewritten, offsets: tuple[int, int], device: Any) -> MaskFunction:
    """Offsets as metadata: they grow with a cache, and the mask must not be compiled anew."""
    function = result.function
    q_offset, kv_offset = (torch.tensor(offset, dtype=torch.int32, device=device) for offset in offsets)
    result.facts.extend([("at least 0", (q_offset,)), ("at least 0", (kv_offset,))])

    def shifted(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        # The bound tells the importer that no table is read from its end; the facts make it go away.
        return function(b, h, q_idx + q_offset.clamp_min(0), kv_idx + kv_offset.clamp_min(0))

    return shifted


def _padded(function: MaskFunction, padding: torch.Tensor) -> MaskFunction:
    """One interval of columns for every sequence, where padding is on its sides only; else a column each."""
    count = padding.sum(-1, dtype=torch.int32)
    first = padding.to(torch.int32).argmax(-1).to(torch.int32)
    end = torch.where(count > 0, padding.shape[-1] - padding.flip(-1).to(torch.int32).argmax(-1), 0).to(torch.int32)
    if torch.equal(torch.where(count > 0, end - first, 0), count):

        def between(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return function(b, h, q_idx, kv_idx) & (first[b] <= kv_idx) & (kv_idx < end[b])

        return between

    def but_holes(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return function(b, h, q_idx, kv_idx) & padding[b, kv_idx]

    return but_holes
