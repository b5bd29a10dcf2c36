# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAssignmentType=false
"""Walking a tile list: the part that the forward and the backward attention kernels share.

A kernel visits its listed tiles in steps of one block. Its whole walk is one flat loop, so that the loads of a step
overlap the matrix products of the one before even where a tile ends and the next begins; the tile number is carried
from step to step, one ahead of its use, so that no load waits for the list.

A tile is visited `parts` times: once per block in it (and once per query head of a group). With many slots
(`LIVE_SLOTS` > 0) a visit tests that many of the tile's live slots, and the tile is visited again for further ones: the
slots of a row are disjoint, so each visit sees other pairs and the visits add up.
"""

import triton
import triton.language as tl

KEPT: tl.constexpr = tl.constexpr(3)
"""Intervals that a position keeps of the live slots of a visit."""


@triton.jit
def slots_a_visit(most, LIVE_SLOTS: tl.constexpr):
    """How many live slots one visit may test: a position of the tile meets `most` of them and can keep KEPT."""
    return tl.where(most <= KEPT, LIVE_SLOTS, KEPT)


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
            slots = ((word >> 12) & 0xFFF) - (word & 0xFFF)
            at_once = slots_a_visit(word >> 24, LIVE_SLOTS)
            visits += tl.where(entry < count, tl.maximum((slots + at_once - 1) // at_once, 1), 0)
        return tl.sum(visits) * parts


@triton.jit
def enter(index, live, entry, LIVE_SLOTS: tl.constexpr):
    """The tile at `entry` of the list and its live slots: (tile, begin, end, most)."""
    tile = tl.load(index + entry)
    begin = tl.full([], 0, tl.int32)
    end = tl.full([], 0, tl.int32)
    most = tl.full([], 0, tl.int32)
    if LIVE_SLOTS > 0:
        word = tl.load(live + entry)
        begin = word & 0xFFF
        end = (word >> 12) & 0xFFF
        most = word >> 24
    return tile, begin, end, most


@triton.jit
def advance(index, live, entry, last, part, parts, begin, end, most, LIVE_SLOTS: tl.constexpr):
    """The next step: (entry, part, tile, begin, end, most). Past `last` it stays, so every load is in the list."""
    part += 1
    wrapped = part == parts
    part = tl.where(wrapped, 0, part)
    if LIVE_SLOTS > 0:
        following = begin + slots_a_visit(most, LIVE_SLOTS)
        moved = wrapped & (following >= end)
        entry = tl.minimum(entry + moved.to(tl.int32), last)
        tile, first, end, most = enter(index, live, entry, LIVE_SLOTS)
        begin = tl.where(moved, first, tl.where(wrapped, following, begin))
    else:
        entry = tl.minimum(entry + wrapped.to(tl.int32), last)
        tile = tl.load(index + entry)
    return entry, part, tile, begin, end, most


@triton.jit
def keep_slot(table, index, slot, stop, n_table, low, high, lo0, hi0, lo1, hi1, lo2, hi2):
    """Keeps the interval of a live slot at the positions `index` where it meets [low, high): the last three met."""
    real = index < tl.where(slot < stop, n_table, 0)
    lo = tl.load(table + (2 * slot + 0) * n_table + index, mask=real, other=0)
    hi = tl.load(table + (2 * slot + 1) * n_table + index, mask=real, other=0)
    meets = (lo < hi) & (lo < high) & (low < hi)
    lo2 = tl.where(meets, lo1, lo2)
    hi2 = tl.where(meets, hi1, hi2)
    lo1 = tl.where(meets, lo0, lo1)
    hi1 = tl.where(meets, hi0, hi1)
    return tl.where(meets, lo, lo0), tl.where(meets, hi, hi0), lo1, hi1, lo2, hi2


@triton.jit
def program_place(program, heads):
    """Order of programs: (place in the tile order, head). The heaviest tiles of all heads come first."""
    return program // heads, program % heads


@triton.jit
def head_columns(D: tl.constexpr):
    """The columns of a block of a head of D, which are a power of two: [1, columns]. Those past D are nothing."""
    return tl.arange(0, triton.next_power_of_2(D))[None, :]


@triton.jit
def in_block(position, length, D: tl.constexpr, EVEN: tl.constexpr):
    """Which entries of a block of rows there are: of rows below `length` (EVEN: all) and columns below D."""
    COLUMNS: tl.constexpr = triton.next_power_of_2(D)
    if COLUMNS == D:
        return position[:, None] < length
    elif EVEN:
        return head_columns(D) < D
    else:
        return (position[:, None] < length) & (head_columns(D) < D)


@triton.jit
def load_block(block, offsets, position, length, D: tl.constexpr, EVEN: tl.constexpr):
    """A block of rows of a head of D. Zero: rows at or past `length` (EVEN: there are none), columns past D."""
    COLUMNS: tl.constexpr = triton.next_power_of_2(D)
    if EVEN and COLUMNS == D:
        return tl.load(block + offsets)
    else:
        return tl.load(block + offsets, mask=in_block(position, length, D, EVEN), other=0.0)


@triton.jit
def store_block(block, offsets, value, position, length, D: tl.constexpr, EVEN: tl.constexpr):
    """Stores what `load_block` would load."""
    COLUMNS: tl.constexpr = triton.next_power_of_2(D)
    if EVEN and COLUMNS == D:
        tl.store(block + offsets, value)
    else:
        tl.store(block + offsets, value, mask=in_block(position, length, D, EVEN))
