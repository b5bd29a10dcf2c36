# pyright: basic, reportGeneralTypeIssues=false
"""Walking a tile list: the part that the forward and the backward attention kernels share.

A kernel visits its listed tiles in steps of one block. Its whole walk is one flat loop, so that the loads of a step
overlap the matrix products of the one before even where a tile ends and the next begins; the tile number is carried
from step to step, one ahead of its use, so that no load waits for the list.

A tile is visited `parts` times: once per block in it (and once per query head of a group). With many slots
(`LIVE_SLOTS` > 0) it is visited again for every further `LIVE_SLOTS` of its live slots: the slots of a row are
disjoint, so each visit sees other pairs and the visits add up.
"""

import triton
import triton.language as tl


@triton.jit
def count_steps(live, count, parts, LIVE_SLOTS: tl.constexpr):
    """Steps that `count` listed tiles take."""
    if LIVE_SLOTS == 0:
        return count * parts
    else:
        visits = tl.zeros([128], tl.int32)
        for first in range(0, count, 128):
            entry = first + tl.arange(0, 128)
            word = tl.load(live + entry, mask=entry < count, other=0)
            slots = ((word >> 16) & 0xFFFF) - (word & 0xFFFF)
            visits += tl.where(entry < count, tl.maximum((slots + LIVE_SLOTS - 1) // LIVE_SLOTS, 1), 0)
        return tl.sum(visits) * parts


@triton.jit
def enter(index, live, entry, LIVE_SLOTS: tl.constexpr):
    """The tile at `entry` of the list and its live slots: (tile, begin, end)."""
    tile = tl.load(index + entry)
    begin = tl.full([], 0, tl.int32)
    end = tl.full([], 0, tl.int32)
    if LIVE_SLOTS > 0:
        word = tl.load(live + entry)
        begin = word & 0xFFFF
        end = (word >> 16) & 0xFFFF
    return tile, begin, end


@triton.jit
def advance(index, live, entry, last, part, parts, begin, end, LIVE_SLOTS: tl.constexpr):
    """The next step: (entry, part, tile, begin, end). Past `last` it stays on `last`, so every load is in the list."""
    part += 1
    wrapped = part == parts
    part = tl.where(wrapped, 0, part)
    if LIVE_SLOTS > 0:
        again = wrapped & (begin + LIVE_SLOTS < end)
        moved = wrapped & (begin + LIVE_SLOTS >= end)
        entry = tl.minimum(entry + moved.to(tl.int32), last)
        tile, first, end = enter(index, live, entry, LIVE_SLOTS)
        begin = tl.where(moved, first, tl.where(again, begin + LIVE_SLOTS, begin))
    else:
        entry = tl.minimum(entry + wrapped.to(tl.int32), last)
        tile = tl.load(index + entry)
    return entry, part, tile, begin, end


@triton.jit
def program_place(program, heads):
    """Order of programs: (place in the tile order, head). The heaviest tiles of all heads come first."""
    return program // heads, program % heads


@triton.jit
def load_block(block, offsets, position, length, EVEN: tl.constexpr):
    """A block of rows; rows at or past `length` are zero. EVEN: there are none."""
    if EVEN:
        return tl.load(block + offsets)
    else:
        return tl.load(block + offsets, mask=position[:, None] < length, other=0.0)
