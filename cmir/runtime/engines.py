"""A descriptor for other engines: dense for scaled_dot_product_attention, a BlockMask for FlexAttention.

Nothing here evaluates the rule again: the pairs come from the descriptor's interval table (or its packed bits), the
blocks from its tile lists. So these are also a second opinion on what a descriptor says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from cmir.runtime.descriptor import Descriptor


def visible(desc: Descriptor, mask: Any, row: Any, column: Any) -> Any:
    """Whether mask number `mask` shows the pairs (row, column): integer tensors that broadcast, to a bool tensor."""
    if (table := desc.row_table) is not None:
        return _inside(table, mask, row, column)
    if (table := desc.col_table) is not None:
        return _inside(table, mask, column, row)
    bits = desc.bits
    assert bits is not None, "a descriptor has a table or bits"
    seen = ((bits[mask, row, column // 32] >> (column % 32)) & 1) == 1
    # Words of empty and of full tiles are not defined: their state says it all.
    tile_row, tile_column = row // desc.tile[0], column // desc.tile[1]
    state = (desc.row_state[mask, tile_row, tile_column // 16] >> (2 * (tile_column % 16))) & 3
    return torch.where(state == 1, seen, state == 2)


def _inside(table: torch.Tensor, mask: Any, entry: Any, position: Any) -> Any:
    seen: Any = (position < 0) & (entry < 0)
    for slot in range(table.shape[1]):
        lo, hi = (table[mask, slot, end, entry] for end in (0, 1))
        seen = seen | ((lo <= position) & (position < hi))
    return seen


def to_dense(desc: Descriptor) -> torch.Tensor:
    """The mask as scaled_dot_product_attention takes it; see `Descriptor.to_dense`."""
    device = desc.device
    mask = torch.arange(desc.masks, device=device)[:, None, None]
    row = torch.arange(desc.rows, device=device)[None, :, None]
    column = torch.arange(desc.cols, device=device)[None, None, :]
    dense = torch.empty((desc.masks, desc.rows, desc.cols), dtype=torch.bool, device=device)
    dense[:] = visible(desc, mask, row, column)
    sequences, heads = (*desc.batch, 1, 1)[:2]
    return dense.reshape(sequences, heads, desc.rows, desc.cols)


def to_block_mask(desc: Descriptor) -> BlockMask:
    """The mask as FlexAttention takes it; see `Descriptor.to_block_mask`."""
    from torch.nn.attention.flex_attention import BlockMask

    sequences, heads = (*desc.batch, 1, 1)[:2]
    lead = (sequences, heads)
    by_sequence, by_head = desc.mask_strides
    partial, full = desc.row_count.unbind(-1)
    index = desc.row_index

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return visible(desc, b * by_sequence + h * by_head, q_idx, kv_idx)

    return BlockMask.from_kv_blocks(
        partial.reshape(*lead, -1).contiguous(),
        index.reshape(*lead, *index.shape[1:]),
        full.reshape(*lead, -1).contiguous(),
        index.flip(-1).reshape(*lead, *index.shape[1:]),
        BLOCK_SIZE=desc.tile,
        mask_mod=mask_mod,
        seq_lengths=(desc.rows, desc.cols),
    )
