# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
"""Skeleton of the preprocess kernels: metadata in, Execution Descriptor out, without a host synchronisation.

`preprocess` is one launch of one program per row tile and one per column tile, for each mask of the batch. A program
computes the slots of its tile, lists the tiles of the other axis that they touch, and checks its share of the facts.
Where no slots say the mask, the program of a row tile asks the rule itself about every pair in the tiles that its rows
may touch, and packs the answers: bit j % 32 of word (i, j // 32) says whether row i sees column j.
`transpose_schedule` is launched after it only where one axis has no bounded number of slots: it derives that axis's
lists from the other axis's tile states. META stands for the mask's metadata.

The rooms it is built of: `rule` (the mask itself), `tiles` (states and lists of tiles), `order` (tiles by work).
"""

import triton
import triton.language as tl

from cmir.lowering.skeletons.order import arrive_last, order_last, order_tiles
from cmir.lowering.skeletons.rule import (
    NO_BREAK,
    col_facts,
    entry_facts,
    first_break,
    row_facts,
    scalar_facts,
    store_col_slots,
    store_row_slots,
    too_many,
)
from cmir.lowering.skeletons.tiles import BLOCK, append_tiles, list_bits, list_tiles, store_counts


@triton.jit
def padded(size):
    """The int32 that a tensor of `size` takes in the descriptor's memory: at least one, to a multiple of 32."""
    return (tl.maximum(tl.full([], 0, tl.int64) + size, 1) + 31) // 32 * 32


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
    counters,
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

    `memory` is the descriptor, int32, cut as `cmir.runtime.descriptor` cuts it; `row_width` and `col_width` are the
    lengths of tile lists, `entries` that of the longest free table. One pointer for all: a launch costs the host by the
    argument. `counters`, as many as at the head of the memory, are zero, and are left so: the memory's own, or others.
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

    arrived = counters
    row_bins = counters + 4 * masks + mask_number * (col_tiles + 1)
    col_bins = counters + (4 + col_tiles + 1) * masks + mask_number * (row_tiles + 1)

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
