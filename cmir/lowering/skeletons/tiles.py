# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
"""The tiles that one row tile (or column tile) touches: their states, and the list of them, by slots or by the rule.

Tiles of the other axis are handled in chunks of STEP, one word of tile states each, and only those near what is visible
are looked at. A list has its partial tiles in front and its full ones at the back.
"""

import triton
import triton.language as tl

from cmir.lowering.skeletons.rule import EIGHTH, byte_visible, pair_rows, row_hull, tile_rows, tiles_visible

STEP: tl.constexpr = tl.constexpr(16)
"""Tiles that a program of `preprocess` handles at once, a *chunk*: a multiple of 16, here one word of tile states."""

BLOCK: tl.constexpr = tl.constexpr(128)
"""Vector length where the vector does not depend on the tile size: a multiple of 16."""

ALL_FULL: tl.constexpr = tl.constexpr(-1431655766)
"""A word of 16 full tiles: 0xAAAAAAAA as int32."""

FEW: tl.constexpr = tl.constexpr(4)
"""Up to so many slots it is cheaper to try each on every tile than to ask first which are near, and cheap to look for a
core of full tiles."""

LOOKED: tl.constexpr = tl.constexpr(8)
"""Slots of which those near a chunk are found at once."""


@triton.jit
def append_tiles(
    state, index, live, base, t, partial, full, n_partial, n_full, tiles, width, live_word, LIVE: tl.constexpr
):  # fmt: skip
    """Stores the states of the tiles t (consecutive from base, a multiple of 16), lists them; the new list lengths.

    Partial tiles grow from the front of the list and so ascend; full tiles grow from its back. What a list of `width`
    cannot hold is left out, but counted: `store_counts` sees it.
    """
    bits = (partial.to(tl.int32) + 2 * full.to(tl.int32)) << (2 * (t % 16))
    words = tl.sum(tl.reshape(bits, [t.shape[0] // 16, 16]), axis=1)
    word = base // 16 + tl.arange(0, t.shape[0] // 16)
    tl.store(state + word, words, mask=word < tl.cdiv(tiles, 16))
    # Both running counts in one scan: partial tiles in the low half, full tiles in the high half.
    pair = partial.to(tl.int32) + (full.to(tl.int32) << 16)
    seen = tl.cumsum(pair, axis=0)
    front = n_partial + (seen & 0xFFFF) - 1
    place = tl.where(partial, front, width - n_full - (seen >> 16))
    tl.store(index + place, t, mask=(partial | full) & (place >= 0) & (place < width))
    if LIVE:
        tl.store(live + front, live_word, mask=partial & (front < width))
    total = tl.sum(pair)
    return n_partial + (total & 0xFFFF), n_full + (total >> 16)


@triton.jit
def store_counts(count, bins, n_partial, n_full, tiles, width):
    """Stores how many tiles are listed and puts their tile into its bin; whether all found their place."""
    fits = n_partial + n_full <= width
    n_partial = tl.minimum(n_partial, width)
    n_full = tl.minimum(n_full, width - n_partial)
    tl.store(count, n_partial)
    tl.store(count + 1, n_full)
    tl.atomic_add(bins + (tiles - n_partial - n_full), 1, sem="relaxed", scope="gpu")
    return fits


@triton.jit
def clear_outside(state, words, first_chunk, end_chunk):
    """Tiles outside the chunks from `first_chunk` up to `end_chunk` are empty."""
    for base in range(0, words, BLOCK):
        word = base + tl.arange(0, BLOCK)
        outside = (word < first_chunk * (STEP // 16)) | (word >= end_chunk * (STEP // 16))
        tl.store(state + word, tl.zeros([BLOCK], tl.int32), mask=(word < words) & outside)


@triton.jit
def near_slots(table, block, entry, mask, length, low_end, high_end, SLOTS: tl.constexpr):
    """The first of the LOOKED slots from `block` on that some line of a tile has in [low_end, high_end), and one past
    the last; an empty range where none has."""
    k = block + tl.arange(0, LOOKED)[:, None]
    there = (k < SLOTS) & mask[None, :]
    lo = tl.load(table + 2 * k * length + entry[None, :], mask=there, other=0)
    hi = tl.load(table + (2 * k + 1) * length + entry[None, :], mask=there, other=0)
    near = (lo < hi) & (lo < high_end) & (hi > low_end)
    first = tl.min(tl.min(tl.where(near, k, SLOTS), axis=0))
    return first, tl.max(tl.max(tl.where(near, k + 1, 0), axis=0))


@triton.jit
def list_tiles(
    table,
    state,
    count,
    bins,
    index,
    live,
    width,
    tile,
    rows,
    cols,
    SLOTS: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    BY_ROWS: tl.constexpr,
    LIVE: tl.constexpr,
):
    """States and lists of the tiles that row tile (or column tile) `tile` touches: its visible pairs, int64, and
    whether its list of `width` holds them all.

    The slots of one row are disjoint, so a tile's visible pairs are the sum of its slots' overlaps, and that number
    alone says whether the tile is empty, partial or full.
    """
    if BY_ROWS:
        TILE: tl.constexpr = TILE_M
        OTHER: tl.constexpr = TILE_N
        length = rows
        tiles = tl.cdiv(cols, TILE_N)
    else:
        TILE: tl.constexpr = TILE_N
        OTHER: tl.constexpr = TILE_M
        length = cols
        tiles = tl.cdiv(rows, TILE_M)
    entry = tile * TILE + tl.arange(0, TILE)
    mask = entry < length

    # The hull of all slots: beyond it every tile is empty, so the cost follows what is visible, not the length. The
    # core: what one slot covers for all lines of this tile. Chunks of tiles in the core are full without a look, but
    # for the tile of ragged columns, of which none is full.
    lowest = tl.full([TILE], 2147483647, tl.int32)
    highest = tl.zeros([TILE], tl.int32)
    core_begin = 0
    core_end = 0
    for k in range(SLOTS):
        lo = tl.load(table + 2 * k * length + entry, mask=mask, other=0)
        hi = tl.load(table + (2 * k + 1) * length + entry, mask=mask, other=0)
        lowest = tl.where(lo < hi, tl.minimum(lowest, lo), lowest)
        highest = tl.where(lo < hi, tl.maximum(highest, hi), highest)
        if SLOTS <= FEW:
            begin = tl.max(lo)
            end = tl.min(tl.where(mask, hi, 2147483647))
            if end - begin > core_end - core_begin:
                core_begin = begin
                core_end = end
    if not BY_ROWS:
        core_end = tl.where((tile + 1) * TILE_N > cols, 0, core_end)
    first_chunk = tl.min(lowest) // (OTHER * STEP)
    end_chunk = tl.cdiv(tl.max(highest), OTHER * STEP)
    clear_outside(state, tl.cdiv(tiles, 16), first_chunk, end_chunk)

    n_partial = 0
    n_full = 0
    pairs = tl.full([], 0, tl.int64)
    for chunk in range(first_chunk, end_chunk):
        t = chunk * STEP + tl.arange(0, STEP)
        if (core_begin <= chunk * STEP * OTHER) & ((chunk + 1) * STEP * OTHER <= core_end):
            place = width - 1 - n_full - tl.arange(0, STEP)
            tl.store(index + place, t, mask=place >= 0)
            word = tl.arange(0, STEP // 16)
            tl.store(state + chunk * (STEP // 16) + word, tl.full([STEP // 16], ALL_FULL, tl.int32))
            n_full += STEP
            pairs += tl.minimum(TILE, length - tile * TILE) * (OTHER * STEP)
        else:
            start = (t * OTHER)[None, :]
            seen = tl.zeros([TILE, STEP], tl.int32)
            first_slot = tl.full([TILE, STEP], SLOTS, tl.int32)
            end_slot = tl.zeros([TILE, STEP], tl.int32)
            met = tl.zeros([TILE, STEP], tl.int32)
            AT_ONCE: tl.constexpr = LOOKED if SLOTS > FEW else SLOTS
            for block in range(0, SLOTS, AT_ONCE):
                first_near = block
                end_near = block + AT_ONCE
                if SLOTS > FEW:
                    low_end, high_end = chunk * STEP * OTHER, (chunk + 1) * STEP * OTHER
                    first_near, end_near = near_slots(table, block, entry, mask, length, low_end, high_end, SLOTS)
                for k in range(first_near, end_near):
                    lo = tl.load(table + 2 * k * length + entry, mask=mask, other=0)
                    hi = tl.load(table + (2 * k + 1) * length + entry, mask=mask, other=0)
                    overlap = tl.minimum(hi[:, None], start + OTHER) - tl.maximum(lo[:, None], start)
                    overlap = tl.maximum(overlap, 0)
                    if LIVE:
                        first_slot = tl.where(overlap > 0, tl.minimum(first_slot, k), first_slot)
                        end_slot = tl.where(overlap > 0, k + 1, end_slot)
                        met += (overlap > 0).to(tl.int32)
                    seen += overlap
            visible = tl.sum(seen, axis=0)
            # Full: every pair of the tile's valid rows and of all TILE_N columns. A ragged last column tile cannot be.
            valid = rows - tile * TILE_M if BY_ROWS else rows - t * TILE_M
            full = (visible > 0) & (visible == tl.minimum(valid, TILE_M) * TILE_N)
            partial = (visible > 0) & (visible < tl.minimum(valid, TILE_M) * TILE_N)
            n_partial, n_full = append_tiles(
                state,
                index,
                live,
                chunk * STEP,
                t,
                partial,
                full,
                n_partial,
                n_full,
                tiles,
                width,
                tl.min(first_slot, axis=0)
                | (tl.max(end_slot, axis=0) << 12)
                | (tl.minimum(tl.max(met, axis=0), 127) << 24),
                LIVE,
            )
            pairs += tl.sum(visible).to(tl.int64)
    return pairs, store_counts(count, bins, n_partial, n_full, tiles, width)


@triton.jit
def popcount(word):
    """The bits that are set in an int32."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    word += word >> 8
    return (word + (word >> 16)) & 63


@triton.jit
def list_bits(
    bits,
    state,
    count,
    bins,
    index,
    width,
    tile,
    z,
    rows,
    cols,
    META,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
):
    """States and list of the tiles that row tile `tile` touches, and the words of them; returns what `list_tiles` does.

    `bits` is the mask's matrix [row tiles * TILE_M, ceil(column tiles * TILE_N / 32)]. Of a partial tile every word is
    stored, zero past the last row and column; those of other tiles may stay undefined. Pairs are asked one by one only
    in tiles of which the ranges of their rows and columns do not say that they are empty or full.

    A thread asks about a few rows of the tile, always the same, and about eight columns of each at once: what a rule
    computes of the row is computed once a program, of the column once for those rows, and a byte of bits is made
    without another thread.
    """
    tiles = tl.cdiv(cols, TILE_N)
    words = tl.cdiv(tiles * TILE_N, 32)
    own = tile * TILE_M + tl.arange(0, TILE_M)
    i = tl.minimum(own, rows - 1)
    lo, hi = row_hull(
        i,
        z,
        rows,
        cols,
        META,
    )
    some = (own < rows) & (lo < hi)
    lowest = tl.min(tl.where(some, tl.minimum(tl.maximum(lo, 0), cols), cols)).to(tl.int32)
    highest = tl.max(tl.where(some, tl.maximum(tl.minimum(hi, cols), 0), 0)).to(tl.int32)
    first_tile = lowest // TILE_N
    end_tile = tl.cdiv(highest, TILE_N)
    first_chunk = first_tile // STEP
    end_chunk = tl.cdiv(end_tile, STEP)
    clear_outside(state, tl.cdiv(tiles, 16), first_chunk, end_chunk)
    ranges = tile_rows(
        i,
        z,
        rows,
        cols,
        META,
    )

    # [1, parts, lanes], beside the EIGHTH of a byte: a thread has all of these, so that nothing leaves it before a tile
    # is done.
    ROWS: tl.constexpr = 32 if TILE_M > 32 else TILE_M
    AT_ONCE: tl.constexpr = 32 // TILE_N if TILE_N < 32 else 1  # tiles of one word
    WORDS: tl.constexpr = TILE_N * AT_ONCE // 32
    lane = tl.arange(0, 4 * ROWS)[None, None, :]
    line = tile * TILE_M + tl.arange(0, TILE_M // ROWS)[None, :, None] * ROWS + lane // 4
    fourth = lane % 4  # of the 32 columns of a word
    byte = bits.to(tl.pointer_type(tl.int8)) + line.to(tl.int64) * words * 4 + fourth
    row = tl.minimum(line, rows - 1)
    of_rows = pair_rows(
        row,
        z,
        rows,
        cols,
        META,
    )
    valid = tl.minimum(rows - tile * TILE_M, TILE_M) * TILE_N
    n_partial = 0
    n_full = 0
    pairs = tl.full([], 0, tl.int64)
    for chunk in range(first_chunk, end_chunk):
        t = chunk * STEP + tl.arange(0, STEP)
        position = tl.minimum(t[None, :] * TILE_N + tl.arange(0, TILE_N)[:, None], cols - 1)
        may, may_not = tiles_visible(
            ranges,
            position,
            z,
            rows,
            cols,
            META,
        )
        may = may & (t >= first_tile) & (t < end_tile)
        sure = may & (may_not == 0) & ((t + 1) * TILE_N <= cols)
        visible = tl.where(sure, valid, 0)
        ask = tl.sum((may & (sure == 0)).to(tl.int32) << tl.arange(0, STEP))
        for place in range(0, STEP, AT_ONCE):
            if (ask >> place) & ((1 << AT_ONCE) - 1) != 0:
                first_word = (chunk * STEP + place) * TILE_N // 32
                seen = tl.zeros_like(line)  # a byte for each word
                for word in range(WORDS):
                    column = (first_word + word) * 32 + fourth * EIGHTH
                    see = byte_visible(
                        of_rows,
                        row,
                        tl.minimum(column, (cols - 1) // EIGHTH * EIGHTH),
                        z,
                        rows,
                        cols,
                        META,
                    )
                    exist = (1 << tl.maximum(tl.minimum(cols - column, EIGHTH), 0)) - 1
                    seen |= tl.where(line < rows, see & exist, 0) << (8 * word)
                each = tl.arange(0, WORDS)[:, None, None]
                tl.store(byte + (first_word + each) * 4, (seen >> (8 * each)).to(tl.int8))
                number = popcount(seen)
                for k in tl.static_range(AT_ONCE):
                    here = number if AT_ONCE == 1 else tl.where(fourth * EIGHTH // TILE_N == k, number, 0)
                    asked = (t == chunk * STEP + place + k) & ((ask >> (place + k)) & 1 != 0)
                    visible = tl.where(asked, tl.sum(here), visible)
        n_partial, n_full = append_tiles(
            state,
            index,
            index,
            chunk * STEP,
            t,
            (visible > 0) & (visible < valid),
            visible == valid,
            n_partial,
            n_full,
            tiles,
            width,
            visible,
            False,
        )
        pairs += tl.sum(visible).to(tl.int64)
    return pairs, store_counts(count, bins, n_partial, n_full, tiles, width)
