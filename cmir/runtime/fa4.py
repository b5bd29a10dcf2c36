# pyright: basic
"""A descriptor for FlashAttention 4's own interface: lists of blocks, forward and transposed, and a mask_mod in CuTe.

    fa4 = desc.to_fa4()
    out, lse = flash_attn.cute.flash_attn_func(q, k, v, **fa4.arguments())     # [B, L, H, D]

Its kernels visit, for every block of rows, the blocks of columns that a list names: those to be masked by a count and
indices, those that are full by another; the backward pass takes the transposed lists. Of a list they check only the
last entry against the length, so entries rise. The mask_mod reads the descriptor's interval table, or its packed bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import torch

from cmir.errors import CmirError

if TYPE_CHECKING:
    from cmir.runtime.descriptor import Descriptor


@dataclass(frozen=True)
class BlockLists:
    """BlockSparseTensorsTorch of flash_attn.cute: int32 counts [B or 1, H or 1, M] and indices [.., M, W]."""

    mask_block_cnt: torch.Tensor
    mask_block_idx: torch.Tensor
    full_block_cnt: torch.Tensor
    full_block_idx: torch.Tensor
    block_size: tuple[int, int]


@dataclass(frozen=True)
class Fa4Mask:
    """What flash_attn.cute.flash_attn_func takes of a mask."""

    forward: BlockLists
    """Per block of rows: blocks of columns."""
    backward: BlockLists
    """Per block of columns: blocks of rows."""
    aux_tensors: tuple[torch.Tensor]
    """The table [Z, K, 2, rows or columns] or the bits [Z, rows, words], int32."""
    read: Literal["rows", "cols", "bits"]
    """What the tensor is: intervals of every row, of every column, or bits."""
    mask_strides: tuple[int, int]
    """Sequence b and head h read mask b * first + h * second."""

    def mask_mod(self) -> Any:
        """The test of one pair as a function of CuTe. Imports cutlass and flash_attn.cute.

        Raises:
            CmirError: flash_attn.cute is not installed.
        """
        try:
            cutlass, cute, utils = map(import_module, ("cutlass", "cutlass.cute", "flash_attn.cute.utils"))
        except ImportError as error:
            raise CmirError(f"to_fa4: its mask_mod needs flash-attn-4 (flash_attn.cute): {error}") from None
        by_sequence, by_head = self.mask_strides
        slots = self.aux_tensors[0].shape[1]
        by_rows = self.read == "rows"

        @cute.jit
        def inside(batch, head, m_idx, n_idx, seqlen_info, aux_tensors):
            table = aux_tensors[0]
            mask = batch[0] * by_sequence + head[0] * by_head
            entry = m_idx[0] if cutlass.const_expr(by_rows) else n_idx[0]
            position = n_idx if cutlass.const_expr(by_rows) else m_idx
            seen = position < utils.scalar_to_ssa(0, cutlass.Int32)
            for slot in cutlass.range_constexpr(slots):
                lo = utils.scalar_to_ssa(table[mask, slot, 0, entry], cutlass.Int32)
                hi = utils.scalar_to_ssa(table[mask, slot, 1, entry], cutlass.Int32)
                seen = seen | ((position >= lo) & (position < hi))
            return seen

        @cute.jit
        def bit(batch, head, m_idx, n_idx, seqlen_info, aux_tensors):
            words = aux_tensors[0]
            mask = batch[0] * by_sequence + head[0] * by_head
            # Shifted as a scalar: CuTe has no shift of a vector by a vector.
            seen = (words[mask, m_idx[0], n_idx[0] // 32] >> (n_idx[0] % 32)) & 1
            return utils.scalar_to_ssa(seen, cutlass.Int32) == utils.scalar_to_ssa(1, cutlass.Int32)

        return bit if self.read == "bits" else inside

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of flash_attn_func: mask_mod, aux_tensors, and the lists of both passes."""
        mask_mod = self.mask_mod()
        sparsity = import_module("flash_attn.cute.block_sparsity")
        lists = (sparsity.BlockSparseTensorsTorch(**vars(side)) for side in (self.forward, self.backward))
        return {
            "mask_mod": mask_mod,
            "aux_tensors": list(self.aux_tensors),
            **dict(zip(("block_sparse_tensors", "block_sparse_tensors_bwd"), lists, strict=True)),
        }


def to_fa4(desc: Descriptor) -> Fa4Mask:
    """The mask as FlashAttention 4 takes it; see `Descriptor.to_fa4`."""
    read: Literal["rows", "cols", "bits"] = "rows"
    table = desc.row_table
    if table is None and (table := desc.col_table) is not None:
        read = "cols"
    elif table is None and (table := desc.bits) is not None:
        read = "bits"
    if table is None:  # nothing is visible
        table = torch.zeros((desc.masks, 0, 2, desc.rows), dtype=torch.int32, device=desc.device)
    forward, backward = (_lists(desc, axis) for axis in ("row", "col"))
    return Fa4Mask(forward, backward, (table,), read, desc.mask_strides)


def _lists(desc: Descriptor, axis: str) -> BlockLists:
    count, index = desc.view(f"{axis}_count"), desc.view(f"{axis}_index")
    lead = (*desc.batch, 1, 1)[:2]
    sides = []
    for kind, listed in enumerate((index, index.flip(-1))):  # partial from the front, full from the back
        counts = count[..., kind]
        absent = torch.arange(listed.shape[-1], device=desc.device) >= counts[..., None]
        rising = listed.masked_fill(absent, torch.iinfo(torch.int32).max).sort(-1).values.masked_fill(absent, 0)
        sides += [counts.reshape(*lead, -1).contiguous(), rising.reshape(*lead, *rising.shape[1:])]
    return BlockLists(*sides, block_size=desc.tile)
