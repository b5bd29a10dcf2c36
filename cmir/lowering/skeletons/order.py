# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
"""The tiles of an axis by work, most first: done by the last program that has listed one, so in the same launch."""

import triton
import triton.language as tl

from cmir.lowering.skeletons.tiles import BLOCK

SORTED: tl.constexpr = tl.constexpr(32)
"""Tiles ordered at once, each compared with each: what keeps the comparison in registers."""


@triton.jit
def order_tiles(count, bins, order, tiles, others):
    """Stores the tiles of one axis by listed tiles, most first, ties by index: a stable counting sort.

    bins[b], for b in [0, others], holds the number of tiles that list others - b tiles; it becomes the place of the
    next such tile, and in the end zero.
    """
    before = 0
    for base in range(0, others + 1, BLOCK):
        b = base + tl.arange(0, BLOCK)
        size = tl.load(bins + b, mask=b <= others, other=0, cache_modifier=".cg")
        tl.store(bins + b, before + tl.cumsum(size, axis=0) - size, mask=b <= others)
        before += tl.sum(size)
    tl.debug_barrier()
    for base in range(0, tiles, SORTED):
        tile = base + tl.arange(0, SORTED)
        mask = tile < tiles
        n_partial = tl.load(count + 2 * tile, mask=mask, other=0, cache_modifier=".cg")
        n_full = tl.load(count + 2 * tile + 1, mask=mask, other=0, cache_modifier=".cg")
        b = tl.where(mask, others - n_partial - n_full, -1)
        same = b[:, None] == b[None, :]
        rank = tl.sum((same & (tile[None, :] < tile[:, None])).to(tl.int32), axis=1)
        size = tl.sum(same.to(tl.int32), axis=1)
        place = tl.load(bins + b, mask=mask, other=0)
        tl.store(order + place + rank, tile, mask=mask)
        tl.debug_barrier()  # every place is read before one is moved, and moved before it is read again
        tl.store(bins + b, place + size, mask=mask)  # tiles of one bin store the same
        tl.debug_barrier()
    for base in range(0, others + 1, BLOCK):  # for the next launch
        b = base + tl.arange(0, BLOCK)
        tl.store(bins + b, tl.zeros([BLOCK], tl.int32), mask=b <= others)


@triton.jit
def arrive_last(arrived, programs):
    """True in the last of `programs` programs that get here, which may then read what the others stored. `arrived` is
    then zero again.

    Why that is right, in PTX's memory model: the barrier orders the stores of all threads of this program before the
    atomic of its one issuing thread; the atomic's release, at GPU scope, is cumulative, so it publishes them all;
    atomics on one counter form one release sequence, so the last program's acquire sees every earlier program's
    stores; and the barrier after it carries that on to all its threads. An acquire drops stale lines of the L1 cache;
    readers ask for `.cg` (L2, which is shared) all the same.
    """
    tl.debug_barrier()
    ticket = tl.atomic_add(arrived, 1, sem="acq_rel", scope="gpu")
    tl.debug_barrier()
    last = ticket == programs - 1
    tl.store(arrived, 0, mask=last)
    return last


@triton.jit
def order_last(tile, tiles, arrived, count, bins, order, mask_number, others):
    """Orders an axis in the last of its programs: `tile` is this program's tile, if it lies in [0, tiles)."""
    if (tile >= 0) & (tile < tiles):
        last = arrive_last(arrived, tiles)
        if last:
            order_tiles(count, bins, order + mask_number * tiles, tiles, others)
