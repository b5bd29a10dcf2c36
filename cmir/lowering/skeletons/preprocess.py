# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
"""Skeleton of the preprocess kernels: metadata in, Execution Descriptor out, without a host synchronisation.

`preprocess` is one launch of one program per row tile and one per column tile, for each mask of the batch. A program
computes the slots of its tile, lists the tiles of the other axis that they touch, and checks its share of the facts.
Where no slots say the mask, the program of a row tile asks the rule itself about every pair in the tiles that its rows
may touch, and packs the answers: bit j % 32 of word (i, j // 32) says whether row i sees column j.
`transpose_schedule` is launched after it only where one axis has no bounded number of slots: it derives that axis's
lists from the other axis's tile states.

The functions below a `# hook:` line are the mask; the ones here are the causal mask, without facts. META stands for
the mask's metadata.
"""

import triton
import triton.language as tl

NO_BREAK: tl.constexpr = tl.constexpr(0x7FFFFFFFFFFFFFFF)
"""Status of a program that found no broken fact: larger than any status word."""

OVERFLOW: tl.constexpr = tl.constexpr(0x7FFFFFFE)
"""In place of a fact's number in a status word: a list of tiles was too short."""

STEP: tl.constexpr = tl.constexpr(16)
"""Tiles that a program of `preprocess` handles at once, a *chunk*: a multiple of 16, here one word of tile states."""

BLOCK: tl.constexpr = tl.constexpr(128)
"""Vector length where the vector does not depend on the tile size: a multiple of 16."""

SORTED: tl.constexpr = tl.constexpr(32)
"""Tiles ordered at once, each compared with each: what keeps the comparison in registers."""

ALL_FULL: tl.constexpr = tl.constexpr(-1431655766)
"""A word of 16 full tiles: 0xAAAAAAAA as int32."""

FEW: tl.constexpr = tl.constexpr(4)
"""Up to so many slots it is cheaper to try each on every tile than to ask first whether it is near, and cheap to
look for a core of full tiles."""


@triton.jit
def wide(value):
    """As int64, in which rules are computed: with int32 metadata and constants nothing wraps."""
    return tl.full([], 0, tl.int64) + value


@triton.jit
def scalar_value(value, stride, POINTER: tl.constexpr, z):
    """The scalar metadatum of mask z as int64; one beyond 2^40 either way saturates, so that sums do not wrap."""
    if POINTER:
        value = tl.load(value + z.to(tl.int64) * stride)
    return saturate(value)


@triton.jit
def table_value(table, stride, index, z):
    """The entries `index` of mask z's table as int64, saturated likewise."""
    return saturate(tl.load(table + z.to(tl.int64) * stride + index))


@triton.jit
def saturate(value):
    if value.dtype == tl.int64:
        value = tl.minimum(tl.maximum(value, -1099511627776), 1099511627776)
    return wide(value)


@triton.jit
def nearest_value(table, stride, index, length, z):
    """The same for an index that may lie outside [0, length): the nearest entry; 0 where there is none."""
    inside = tl.maximum(tl.minimum(index, length - 1), 0)
    return saturate(tl.load(table + z.to(tl.int64) * stride + inside, mask=inside < length, other=0))


@triton.jit
def floor_div(a, k):
    """a // k rounded down, for k > 0: the language's division, which on a GPU rounds toward zero."""
    return tl.where(a >= 0, a // k, -((k - 1 - a) // k))


@triton.jit
def floor_mod(a, k):
    """The remainder of `floor_div`: from 0 to k - 1."""
    return a - floor_div(a, k) * k


@triton.jit
def padded(size):
    """The int32 that a tensor of `size` takes in the descriptor's memory: at least one, to a multiple of 32."""
    return (tl.maximum(tl.full([], 0, tl.int64) + size, 1) + 31) // 32 * 32


# hook: store_row_slots
@triton.jit
def store_row_slots(table, i, mask, z, rows, cols, META):
    tl.store(table + i, 0, mask=mask)
    tl.store(table + rows + i, tl.minimum(i + 1, cols), mask=mask)


# hook: store_col_slots
@triton.jit
def store_col_slots(table, j, mask, z, rows, cols, META):
    tl.store(table + j, tl.minimum(j, rows), mask=mask)
    tl.store(table + cols + j, rows, mask=mask)


# hook: row_hull
@triton.jit
def row_hull(i, z, rows, cols, META):
    """Columns [lo, hi) beyond which row i sees nothing; lo >= hi: it sees nothing at all."""
    return tl.zeros_like(i), tl.minimum(i + 1, cols)


# hook: pair_visible
@triton.jit
def pair_visible(i, j, z, rows, cols, META):
    """Whether rows i, [M, 1], see columns j, [1, N]: broadcastable to [M, N]."""
    return j <= i


# hook: tiles_visible
@triton.jit
def tiles_visible(i, j, z, rows, cols, META):
    """Whether some row of i, [M], may see some column of a tile, and whether some may not see some: a line of j a tile.

    Both may be true where they need not be; a row of a tile is false only where it is so of all its pairs.
    """
    return tl.min(j, axis=1) <= tl.max(i), tl.max(j, axis=1) > tl.min(i)


# hook: scalar_facts
@triton.jit
def scalar_facts(z, rows, cols, META):
    return 0


# hook: row_facts
@triton.jit
def row_facts(i, z, rows, cols, META):
    return tl.zeros_like(i)


# hook: col_facts
@triton.jit
def col_facts(j, z, rows, cols, META):
    return tl.zeros_like(j)


# hook: entry_facts
@triton.jit
def entry_facts(e, z, rows, cols, META):
    return tl.zeros_like(e)


@triton.jit
def first_break(fact, index, mask):
    """The smallest status word of a vector: (number of the broken fact) << 32 | index."""
    word = (fact.to(tl.int64) << 32) | index.to(tl.int64)
    return tl.min(tl.where(mask & (fact > 0), word, NO_BREAK))


@triton.jit
def too_many(tile):
    """The status word of a tile row (or column) that touches more tiles than its list holds."""
    return (tl.full([], OVERFLOW, tl.int64) << 32) | tile.to(tl.int64)


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
            for k in range(SLOTS):
                lo = tl.load(table + 2 * k * length + entry, mask=mask, other=0)
                hi = tl.load(table + (2 * k + 1) * length + entry, mask=mask, other=0)
                near = True
                if SLOTS > FEW:
                    low_end, high_end = chunk * STEP * OTHER, (chunk + 1) * STEP * OTHER
                    near = tl.max(((lo < hi) & (lo < high_end) & (hi > low_end)).to(tl.int32)) > 0
                if near:
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

    PART: tl.constexpr = 32 if TILE_M > 32 else TILE_M
    lane = tl.arange(0, 32)
    valid = tl.minimum(rows - tile * TILE_M, TILE_M) * TILE_N
    n_partial = 0
    n_full = 0
    pairs = tl.full([], 0, tl.int64)
    for chunk in range(first_chunk, end_chunk):
        t = chunk * STEP + tl.arange(0, STEP)
        visible = tl.zeros([STEP], tl.int32)
        position = tl.minimum(t[:, None] * TILE_N + tl.arange(0, TILE_N)[None, :], cols - 1)
        may, may_not = tiles_visible(
            i,
            position,
            z,
            rows,
            cols,
            META,
        )
        may = may & (t >= first_tile) & (t < end_tile)
        sure = may & (may_not == 0) & ((t + 1) * TILE_N <= cols)
        visible = tl.where(sure, valid, visible)
        ask = may & (sure == 0)
        first_word = tl.maximum(chunk * STEP, first_tile) * TILE_N // 32
        end_word = tl.cdiv(tl.minimum((chunk + 1) * STEP, end_tile) * TILE_N, 32)
        for word in range(first_word, end_word):
            meets = (t * TILE_N < word * 32 + 32) & ((t + 1) * TILE_N > word * 32)
            if tl.max((ask & meets).to(tl.int32)) > 0:
                column = word * 32 + lane
                j = tl.minimum(column, cols - 1)
                seen_rows = tl.zeros([32], tl.int32)
                for part in range(0, TILE_M, PART):  # piece by piece: the rule takes registers for every pair in one
                    line = tile * TILE_M + part + tl.arange(0, PART)
                    seen = pair_visible(
                        tl.minimum(line, rows - 1)[:, None],
                        j[None, :],
                        z,
                        rows,
                        cols,
                        META,
                    )
                    seen = ((line < rows)[:, None] & (column < cols)[None, :] & seen).to(tl.int32)
                    tl.store(bits + line * words + word, tl.sum(seen << lane[None, :], axis=1))
                    seen_rows += tl.sum(seen, axis=0)
                of_tile = ((column // TILE_N)[:, None] == t[None, :]) & ask[None, :]
                visible += tl.sum(tl.where(of_tile, seen_rows[:, None], 0), axis=0)
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


@triton.jit
def order_tiles(count, bins, order, tiles, others):
    """Stores the tiles of one axis by listed tiles, most first, ties by index: a stable counting sort.

    bins[b], for b in [0, others], holds the number of tiles that list others - b tiles; it becomes the place of the
    next such tile.
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


@triton.jit
def arrive_last(arrived, programs):
    """True in the last of `programs` programs that get here, which may then read what the others stored.

    Why that is right, in PTX's memory model: the barrier orders the stores of all threads of this program before the
    atomic of its one issuing thread; the atomic's release, at GPU scope, is cumulative, so it publishes them all;
    atomics on one counter form one release sequence, so the last program's acquire sees every earlier program's
    stores; and the barrier after it carries that on to all its threads. An acquire drops stale lines of the L1 cache;
    readers ask for `.cg` (L2, which is shared) all the same.
    """
    tl.debug_barrier()
    ticket = tl.atomic_add(arrived, 1, sem="acq_rel", scope="gpu")
    tl.debug_barrier()
    return ticket == programs - 1


@triton.jit
def order_last(tile, tiles, arrived, count, bins, order, mask_number, others):
    """Orders an axis in the last of its programs: `tile` is this program's tile, if it lies in [0, tiles)."""
    if (tile >= 0) & (tile < tiles):
        last = arrive_last(arrived, tiles)
        if last:
            order_tiles(count, bins, order + mask_number * tiles, tiles, others)


@triton.jit(
    do_not_specialize=[
        "rows",
        "cols",
        "row_width",
        "col_width",
        "entries",
        "META",
    ]
)
def preprocess(
    memory,
    rows,
    cols,
    row_width,
    col_width,
    entries,
    META,
    ROW_SLOTS: tl.constexpr,
    COL_SLOTS: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    ROW_LIVE: tl.constexpr,
    COL_LIVE: tl.constexpr,
    BITS: tl.constexpr = False,
    SHARED: tl.constexpr = False,
):
    """Grid (max(1, row tiles + column tiles), masks). BITS: there are no slots, and rows are listed by the rule.
    SHARED: the table of rows is that of columns too.

    `memory` is the descriptor, int32, cut as `cmir.runtime.descriptor` cuts it, with zeroed counters at its head;
    `row_width` and `col_width` are the lengths of tile lists, `entries` that of the longest free table. One pointer for
    all: a launch costs the host by the argument.
    """
    p = tl.program_id(0)
    z = tl.program_id(1)
    mask_number = z.to(tl.int64)
    masks = tl.num_programs(1).to(tl.int64)
    programs = tl.num_programs(0)
    row_tiles = tl.cdiv(rows, TILE_M)
    col_tiles = tl.cdiv(cols, TILE_N)
    row_words = tl.cdiv(col_tiles, 16)
    col_words = tl.cdiv(row_tiles, 16)

    arrived = memory
    row_bins = memory + 4 * masks + mask_number * (col_tiles + 1)
    col_bins = memory + (4 + col_tiles + 1) * masks + mask_number * (row_tiles + 1)

    area_at = padded(masks * (4 + col_tiles + 1 + row_tiles + 1))
    status_at = area_at + padded(2 * masks)
    parts_at = status_at + padded(2 * masks)
    row_table_at = parts_at + padded(4 * masks * programs)
    col_table_at = row_table_at + padded(masks * (2 * ROW_SLOTS) * rows)
    bits_at = col_table_at + padded(0 if SHARED else masks * (2 * COL_SLOTS) * cols)
    line_words = tl.cdiv(col_tiles * TILE_N, 32)
    row_state_at = bits_at + padded(masks * (row_tiles * TILE_M) * line_words if BITS else 1)
    row_count_at = row_state_at + padded(masks * row_tiles * row_words)
    row_index_at = row_count_at + padded(masks * row_tiles * 2)
    row_live_at = row_index_at + padded(masks * row_tiles * row_width)
    row_order_at = row_live_at + padded(masks * row_tiles * row_width if ROW_LIVE else 1)
    col_state_at = row_order_at + padded(masks * row_tiles)
    col_count_at = col_state_at + padded(masks * col_tiles * col_words)
    col_index_at = col_count_at + padded(masks * col_tiles * 2)
    col_live_at = col_index_at + padded(masks * col_tiles * col_width)
    col_order_at = col_live_at + padded(masks * col_tiles * col_width if COL_LIVE else 1)

    area = (memory + area_at).to(tl.pointer_type(tl.int64))
    status = (memory + status_at).to(tl.pointer_type(tl.int64))
    part_area = (memory + parts_at).to(tl.pointer_type(tl.int64)) + mask_number * 2 * programs
    part_status = part_area + programs
    row_table = memory + row_table_at
    row_state = memory + row_state_at + mask_number * row_tiles * row_words
    row_count = memory + row_count_at + mask_number * row_tiles * 2
    row_index = memory + row_index_at
    row_live = memory + row_live_at
    row_order = memory + row_order_at
    col_table = memory + (row_table_at if SHARED else col_table_at)
    col_state = memory + col_state_at + mask_number * col_tiles * col_words
    col_count = memory + col_count_at + mask_number * col_tiles * 2
    col_index = memory + col_index_at
    col_live = memory + col_live_at
    col_order = memory + col_order_at

    pairs = tl.full([], 0, tl.int64)
    broken = tl.full([], NO_BREAK, tl.int64)
    if p < row_tiles:
        i = p * TILE_M + tl.arange(0, TILE_M)
        row_mask = i < rows
        i = tl.minimum(i, rows - 1)
        fact = tl.zeros_like(i) + row_facts(
            i,
            z,
            rows,
            cols,
            META,
        )
        broken = tl.minimum(broken, first_break(fact, i, row_mask))
        if ROW_SLOTS > 0:
            row_table += mask_number * (2 * ROW_SLOTS) * rows
            store_row_slots(
                row_table,
                i,
                row_mask,
                z,
                rows,
                cols,
                META,
            )
            tl.debug_barrier()  # the threads that read the slots back are not those that stored them
            row_line = mask_number * row_tiles + p
            row_pairs, fits = list_tiles(
                row_table,
                row_state + p.to(tl.int64) * tl.cdiv(col_tiles, 16),
                row_count + 2 * p,
                row_bins,
                row_index + row_line * row_width,
                row_live + row_line * row_width,
                row_width,
                p,
                rows,
                cols,
                ROW_SLOTS,
                TILE_M,
                TILE_N,
                True,
                ROW_LIVE,
            )
            pairs += row_pairs
            broken = tl.minimum(broken, tl.where(fits, NO_BREAK, too_many(p)))
        if BITS:
            row_line = mask_number * row_tiles + p
            row_pairs, fits = list_bits(
                memory + bits_at + mask_number * (row_tiles * TILE_M) * line_words,
                row_state + p.to(tl.int64) * tl.cdiv(col_tiles, 16),
                row_count + 2 * p,
                row_bins,
                row_index + row_line * row_width,
                row_width,
                p,
                z,
                rows,
                cols,
                META,
                TILE_M,
                TILE_N,
            )
            pairs += row_pairs
            broken = tl.minimum(broken, tl.where(fits, NO_BREAK, too_many(p)))
    elif p < row_tiles + col_tiles:
        tile = p - row_tiles
        j = tile * TILE_N + tl.arange(0, TILE_N)
        col_mask = j < cols
        j = tl.minimum(j, cols - 1)
        fact = tl.zeros_like(j) + col_facts(
            j,
            z,
            rows,
            cols,
            META,
        )
        broken = tl.minimum(broken, first_break(fact, j, col_mask))
        if COL_SLOTS > 0:
            col_table += mask_number * (2 * COL_SLOTS) * cols
            if SHARED:  # the program of row tile `tile` stores the very same
                store_row_slots(
                    col_table,
                    j,
                    col_mask,
                    z,
                    rows,
                    cols,
                    META,
                )
            else:
                store_col_slots(
                    col_table,
                    j,
                    col_mask,
                    z,
                    rows,
                    cols,
                    META,
                )
            tl.debug_barrier()
            col_line = mask_number * col_tiles + tile
            col_pairs, fits = list_tiles(
                col_table,
                col_state + tile.to(tl.int64) * tl.cdiv(row_tiles, 16),
                col_count + 2 * tile,
                col_bins,
                col_index + col_line * col_width,
                col_live + col_line * col_width,
                col_width,
                tile,
                rows,
                cols,
                COL_SLOTS,
                TILE_M,
                TILE_N,
                False,
                COL_LIVE,
            )
            broken = tl.minimum(broken, tl.where(fits, NO_BREAK, too_many(tile)))
            if ROW_SLOTS == 0:  # else the row programs count the same pairs
                pairs += col_pairs

    for base in range(p * BLOCK, entries, programs * BLOCK):
        e = base + tl.arange(0, BLOCK)
        entry_mask = e < entries
        e = tl.minimum(e, entries - 1)
        fact = tl.zeros_like(e) + entry_facts(
            e,
            z,
            rows,
            cols,
            META,
        )
        broken = tl.minimum(broken, first_break(fact, e, entry_mask))
    if p == 0:
        number = tl.full([], 0, tl.int64) + scalar_facts(
            z,
            rows,
            cols,
            META,
        )
        broken = tl.minimum(broken, tl.where(number > 0, (number << 32) | 0xFFFFFFFF, NO_BREAK))
    tl.store(part_area + p, pairs)
    tl.store(part_status + p, broken)

    if arrive_last(arrived + 3 * z, programs):
        all_pairs = tl.zeros([BLOCK], tl.int64)
        all_broken = tl.full([BLOCK], NO_BREAK, tl.int64)
        for base in range(0, programs, BLOCK):
            part = base + tl.arange(0, BLOCK)
            mask = part < programs
            all_pairs += tl.load(part_area + part, mask=mask, other=0, cache_modifier=".cg")
            found = tl.load(part_status + part, mask=mask, other=NO_BREAK, cache_modifier=".cg")
            all_broken = tl.minimum(all_broken, found)
        tl.store(area + z, tl.sum(all_pairs))
        word = tl.min(all_broken)
        tl.store(status + z, tl.where(word == NO_BREAK, 0, word))
    # Each axis has its own last program, so that the two are ordered at the same time.
    if ROW_SLOTS > 0 or BITS:
        order_last(p, row_tiles, arrived + 3 * z + 1, row_count, row_bins, row_order, mask_number, col_tiles)
    if COL_SLOTS > 0:
        order_last(
            p - row_tiles, col_tiles, arrived + 3 * z + 2, col_count, col_bins, col_order, mask_number, row_tiles
        )


@triton.jit(do_not_specialize=["tiles", "from_tiles", "from_width"])
def transpose_schedule(
    from_state,
    from_count,
    from_index,
    from_live,
    state,
    count,
    index,
    live,
    order,
    bins,
    arrived,
    tiles,
    from_tiles,
    from_width,
    LIVE: tl.constexpr,
):
    """The schedule of the axis with `tiles` tiles from that of the axis with `from_tiles`, whose lists are `from_width`
    long; its own lists hold all. Grid (tiles, masks)."""
    tile = tl.program_id(0)
    z = tl.program_id(1).to(tl.int64)
    line = z * tiles + tile
    state += line * tl.cdiv(from_tiles, 16)
    index += line * from_tiles
    live += line * from_tiles
    bins += z * (from_tiles + 1)
    n_partial = 0
    n_full = 0
    for base in range(0, from_tiles, BLOCK):
        s = base + tl.arange(0, BLOCK)
        mask = s < from_tiles
        from_line = z * from_tiles + s
        word = tl.load(from_state + from_line * tl.cdiv(tiles, 16) + tile // 16, mask=mask, other=0)
        tile_state = (word >> (2 * (tile % 16))) & 3
        partial = tile_state == 1
        full = tile_state == 2
        live_word = tl.zeros([BLOCK], tl.int32)
        if LIVE:
            # This tile's place among the partial tiles of s, which ascend, by binary search.
            low = tl.zeros([BLOCK], tl.int32)
            high = tl.load(from_count + 2 * from_line, mask=mask, other=0)
            width = tiles
            while width > 0:
                middle = (low + high) // 2
                open_ = partial & (low < high)
                smaller = tl.load(from_index + from_line * from_width + middle, mask=open_, other=0) < tile
                low = tl.where(open_ & smaller, middle + 1, low)
                high = tl.where(open_ & (smaller == 0), middle, high)
                width = width // 2
            live_word = tl.load(from_live + from_line * from_width + low, mask=partial, other=0)
        n_partial, n_full = append_tiles(
            state, index, live, base, s, partial, full, n_partial, n_full, from_tiles, from_tiles, live_word, LIVE
        )
    store_counts(count + 2 * line, bins, n_partial, n_full, from_tiles, from_tiles)
    if arrive_last(arrived + z, tiles):
        order_tiles(count + 2 * z * tiles, bins, order + z * tiles, tiles, from_tiles)
