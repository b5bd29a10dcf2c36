# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
"""Backward attention over a descriptor's two schedules.

`backward_delta` prepares what every step needs of a row: delta = rowsum(out * dout) - dlse and the log-sum-exp in
base 2, +inf where a row saw nothing and past the last row, so that its weights come out as zero. In `backward` some
programs then own key/value columns of one head (`backward_dkv`, over the column schedule, the query heads of a group
summed inside) and others own query rows (`backward_dq`, over the row schedule). DKV and DQ say which of the two this
launch holds: one launch with both fills the device better, two launches let each have its own number of warps.
No atomics: the result is deterministic.
"""

import triton
import triton.language as tl

from cmir.lowering.skeletons.steps import (  # hooks use what the skeleton does not
    advance,
    count_steps,
    enter,
    head_columns,
    in_block,
    keep_slot,  # noqa: F401
    load_block,
    program_place,
    slots_a_visit,  # noqa: F401
    store_block,
)


# hook: prepare_dq
@triton.jit
def prepare_dq(table, fixed, n_table):
    """What the test of every block needs of the fixed positions."""
    lo = tl.load(table + fixed, mask=fixed < n_table, other=0)
    hi = tl.load(table + n_table + fixed, mask=fixed < n_table, other=0)
    return lo, (hi - lo).to(tl.uint32, bitcast=True)


# hook: visible_dq
@triton.jit
def visible_dq(slots, table, fixed, moving, start, n_table, begin, end, most):
    """Visibility of the pairs, [FIXED, MOVING]."""
    return (moving[None, :] - slots[0][:, None]).to(tl.uint32, bitcast=True) < slots[1][:, None]


# hook: prepare_dkv
@triton.jit
def prepare_dkv(table, fixed, n_table):
    """What the test of every block needs of the fixed positions."""
    lo = tl.load(table + fixed, mask=fixed < n_table, other=0)
    hi = tl.load(table + n_table + fixed, mask=fixed < n_table, other=0)
    return lo, (hi - lo).to(tl.uint32, bitcast=True)


# hook: visible_dkv
@triton.jit
def visible_dkv(slots, table, fixed, moving, start, n_table, begin, end, most):
    """Visibility of the pairs, [FIXED, MOVING]."""
    return (moving[None, :] - slots[0][:, None]).to(tl.uint32, bitcast=True) < slots[1][:, None]


@triton.jit(do_not_specialize=["rows", "heads"])
def backward_delta(
    out, dout, lse, dlse, stats,
    stride_ob, stride_oh, stride_om, stride_gb, stride_gh, stride_gm, rows, heads,
    DV: tl.constexpr, TILE_M: tl.constexpr, BLOCK: tl.constexpr, HAS_DLSE: tl.constexpr,
):  # fmt: skip
    """stats [batch * heads, rows rounded up to TILE_M, 2]: (log-sum-exp in base 2, delta) of every row, side by side so
    that one load brings both. Grid: (rounded rows / BLOCK, batch * heads)."""
    line = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1).to(tl.int64)
    inside = line < rows
    row = line.to(tl.int64)[:, None]
    column = head_columns(DV)
    out += (head // heads) * stride_ob + (head % heads) * stride_oh
    dout += (head // heads) * stride_gb + (head % heads) * stride_gh
    entries = in_block(line, rows, DV, False)
    o = tl.load(out + row * stride_om + column, mask=entries, other=0.0).to(tl.float32)
    g = tl.load(dout + row * stride_gm + column, mask=entries, other=0.0).to(tl.float32)
    sums = tl.sum(o * g, 1)
    log_sum = tl.load(lse + head * rows + line, mask=inside, other=float("-inf"))
    empty = log_sum == float("-inf")
    if HAS_DLSE:
        sums -= tl.load(dlse + head * rows + line, mask=inside, other=0.0)
    stats += 2 * (head * (tl.cdiv(rows, TILE_M) * TILE_M) + line)
    tl.store(stats, tl.where(empty, float("inf"), log_sum * 1.4426950408889634))
    tl.store(stats + 1, tl.where(empty, 0.0, sums))


@triton.jit
def dq_walk(
    dq, q, dout, lse, delta, k, v, stride_kn, stride_vn,
    index, live, first, count, slots, table, n_table, fixed, cols, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_N: tl.constexpr, BLOCK_N: tl.constexpr,
    EVEN: tl.constexpr, MASKED: tl.constexpr, LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """Visits `count` listed key tiles from `first`: dq without its factor of the scale."""
    PARTS: tl.constexpr = TILE_N // BLOCK_N
    lane = tl.arange(0, BLOCK_N)
    k_offsets = lane[:, None] * stride_kn + head_columns(D)
    v_offsets = lane[:, None] * stride_vn + head_columns(DV)
    entry = first
    part = tl.full([], 0, tl.int32)
    tile, begin, end, most = enter(index, live, entry, LIVE_SLOTS)
    for _ in range(count_steps(live + first, count, PARTS, LIVE_SLOTS)):
        start = tile * TILE_N + part * BLOCK_N
        moving = start + lane
        key = load_block(k + start.to(tl.int64) * stride_kn, k_offsets, moving, cols, D, EVEN)
        value = load_block(v + start.to(tl.int64) * stride_vn, v_offsets, moving, cols, DV, EVEN)
        score = tl.dot(q, key.T, input_precision="ieee")
        weight = tl.exp2(score * scale - lse[:, None])
        if MASKED:
            seen = visible_dq(slots, table, fixed, moving, start, n_table, begin, end, most)
            weight = tl.where(seen, weight, 0.0)
        dweight = tl.dot(dout, value.T, input_precision="ieee")
        dscore = weight * (dweight - delta[:, None])
        dq = tl.dot(dscore.to(key.dtype), key, dq, input_precision="ieee")
        entry, part, tile, begin, end, most = advance(
            index, live, entry, first + count - 1, part, PARTS, begin, end, most, LIVE_SLOTS
        )
    return dq


@triton.jit
def backward_dq(
    program, q, k, v, dout, stats, dq,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    stride_gb, stride_gh, stride_gm, stride_dqb, stride_dqh, stride_dqm,
    table, count, index, live, order, table_stride, n_table, width,
    rows, cols, batch_heads, heads, group, mask_batch, mask_head, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EVEN_M: tl.constexpr, EVEN_N: tl.constexpr,
    LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """dq of BLOCK_M rows of one query head."""
    BLOCKS: tl.constexpr = TILE_M // BLOCK_M
    tile_rows = tl.cdiv(rows, TILE_M)
    place, head = program_place(program, batch_heads)
    batch = (head // heads).to(tl.int64)
    head = (head % heads).to(tl.int64)
    mask = batch * mask_batch + head * mask_head
    tile_row = tl.load(order + mask * tile_rows + place // BLOCKS)
    start = tile_row * TILE_M + (place % BLOCKS) * BLOCK_M
    if start < rows:
        line = tl.arange(0, BLOCK_M)
        fixed = start + line
        padded = (batch * heads + head) * (tile_rows * TILE_M) + start
        above = start.to(tl.int64)
        q_offsets = line[:, None] * stride_qm + head_columns(D)
        g_offsets = line[:, None] * stride_gm + head_columns(DV)
        q += batch * stride_qb + head * stride_qh + above * stride_qm
        dout += batch * stride_gb + head * stride_gh + above * stride_gm
        query = load_block(q, q_offsets, fixed, rows, D, EVEN_M)
        gradient = load_block(dout, g_offsets, fixed, rows, DV, EVEN_M)
        row_lse = tl.load(stats + 2 * padded + 2 * line)
        row_delta = tl.load(stats + 2 * padded + 2 * line + 1)
        k += batch * stride_kb + (head // group) * stride_kh
        v += batch * stride_vb + (head // group) * stride_vh

        table += mask * table_stride
        slots = prepare_dq(table, fixed, n_table)
        tile_list = mask * tile_rows + tile_row
        partial = tl.load(count + 2 * tile_list)
        full = tl.load(count + 2 * tile_list + 1)
        index += tile_list * width
        live += tile_list * (width if LIVE_SLOTS > 0 else 0)

        acc = tl.zeros([BLOCK_M, triton.next_power_of_2(D)], tl.float32)
        acc = dq_walk(
            acc, query, gradient, row_lse, row_delta, k, v, stride_kn, stride_vn,
            index, live, tl.full([], 0, tl.int32), partial, slots, table, n_table, fixed, cols, scale,
            D, DV, TILE_N, BLOCK_N, EVEN_N, True, LIVE_SLOTS,
        )  # fmt: skip
        acc = dq_walk(
            acc, query, gradient, row_lse, row_delta, k, v, stride_kn, stride_vn,
            index, live, tl.minimum(width - full, width - 1), full, slots, table, n_table, fixed, cols, scale,
            D, DV, TILE_N, BLOCK_N, True, False, 0,
        )  # fmt: skip

        acc = (acc * (scale * 0.6931471805599453)).to(dq.dtype.element_ty)
        dq += batch * stride_dqb + head * stride_dqh + above * stride_dqm
        offsets = line[:, None] * stride_dqm + head_columns(D)
        store_block(dq, offsets, acc, fixed, rows, D, EVEN_M)


@triton.jit
def dkv_walk(
    dk, dv, k, v, q, dout, stats, stride_qh, stride_qm, stride_gh, stride_gm, stride_lh,
    index, live, first, count, together, slots, table, n_table, fixed, rows, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_M: tl.constexpr, BLOCK_M: tl.constexpr,
    EVEN: tl.constexpr, MASKED: tl.constexpr, LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """Visits `count` listed query tiles from `first`, each for `together` query heads: dk (unscaled) and dv."""
    PARTS: tl.constexpr = TILE_M // BLOCK_M
    lane = tl.arange(0, BLOCK_M)
    q_offsets = lane[:, None] * stride_qm + head_columns(D)
    g_offsets = lane[:, None] * stride_gm + head_columns(DV)
    s_offsets = tl.arange(0, 2 * BLOCK_M)
    parts = together * PARTS
    entry = first
    part = tl.full([], 0, tl.int32)
    tile, begin, end, most = enter(index, live, entry, LIVE_SLOTS)
    for _ in range(count_steps(live + first, count, parts, LIVE_SLOTS)):
        head = (part // PARTS).to(tl.int64)
        start = tile * TILE_M + (part % PARTS) * BLOCK_M
        moving = start + lane
        above = start.to(tl.int64)
        query = load_block(q + head * stride_qh + above * stride_qm, q_offsets, moving, rows, D, EVEN)
        # Loaded as one vector: in the layout that the products ask for, that is a quarter of the loads of two.
        row_stats = tl.load(stats + 2 * (head * stride_lh + above) + s_offsets)
        row_lse, row_delta = tl.split(tl.reshape(row_stats, [BLOCK_M, 2]))
        score = tl.dot(k, query.T, input_precision="ieee")
        weight = tl.exp2(score * scale - row_lse[None, :])
        if MASKED:
            seen = visible_dkv(slots, table, fixed, moving, start, n_table, begin, end, most)
            weight = tl.where(seen, weight, 0.0)
        gradient = load_block(dout + head * stride_gh + above * stride_gm, g_offsets, moving, rows, DV, EVEN)
        dv = tl.dot(weight.to(gradient.dtype), gradient, dv, input_precision="ieee")
        dweight = tl.dot(v, gradient.T, input_precision="ieee")
        dscore = weight * (dweight - row_delta[None, :])
        dk = tl.dot(dscore.to(query.dtype), query, dk, input_precision="ieee")
        entry, part, tile, begin, end, most = advance(
            index, live, entry, first + count - 1, part, parts, begin, end, most, LIVE_SLOTS
        )
    return dk, dv


@triton.jit
def backward_dkv(
    program, q, k, v, dout, stats, dk, dv,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    stride_gb, stride_gh, stride_gm, stride_dkb, stride_dkh, stride_dkn, stride_dvb, stride_dvh, stride_dvn,
    table, count, index, live, order, table_stride, n_table, width,
    rows, cols, batch_heads, heads, group, mask_batch, mask_head, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EVEN_M: tl.constexpr, EVEN_N: tl.constexpr,
    LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """dk and dv of BLOCK_N columns of one key/value head; `heads` and `batch_heads` count key/value heads."""
    BLOCKS: tl.constexpr = TILE_N // BLOCK_N
    tile_rows = tl.cdiv(rows, TILE_M)
    tile_cols = tl.cdiv(cols, TILE_N)
    place, head = program_place(program, batch_heads)
    batch = (head // heads).to(tl.int64)
    head = (head % heads).to(tl.int64)
    first_mask = batch * mask_batch + head * group * mask_head
    tile_col = tl.load(order + first_mask * tile_cols + place // BLOCKS)
    start = tile_col * TILE_N + (place % BLOCKS) * BLOCK_N
    if start < cols:
        line = tl.arange(0, BLOCK_N)
        fixed = start + line
        stride_lh = tile_rows * TILE_M
        padded = (batch * heads + head) * group * stride_lh
        left = start.to(tl.int64)
        k += batch * stride_kb + head * stride_kh + left * stride_kn
        v += batch * stride_vb + head * stride_vh + left * stride_vn
        key = load_block(k, line[:, None] * stride_kn + head_columns(D), fixed, cols, D, EVEN_N)
        value = load_block(v, line[:, None] * stride_vn + head_columns(DV), fixed, cols, DV, EVEN_N)
        q += batch * stride_qb + head * group * stride_qh
        dout += batch * stride_gb + head * group * stride_gh

        dkey = tl.zeros([BLOCK_N, triton.next_power_of_2(D)], tl.float32)
        dvalue = tl.zeros([BLOCK_N, triton.next_power_of_2(DV)], tl.float32)
        # The query heads of the group share each visit of a tile, unless every head has a mask of its own.
        together = tl.where(mask_head == 0, group, 1)
        for member in range(0, group, together):
            mask = first_mask + member * mask_head
            member_table = table + mask * table_stride
            slots = prepare_dkv(member_table, fixed, n_table)
            tile_list = mask * tile_cols + tile_col
            partial = tl.load(count + 2 * tile_list)
            full = tl.load(count + 2 * tile_list + 1)
            member_index = index + tile_list * width
            member_live = live + tile_list * (width if LIVE_SLOTS > 0 else 0)
            member_q = q + member * stride_qh
            member_g = dout + member * stride_gh
            member_stats = stats + 2 * (padded + member * stride_lh)
            dkey, dvalue = dkv_walk(
                dkey, dvalue, key, value, member_q, member_g, member_stats,
                stride_qh, stride_qm, stride_gh, stride_gm, stride_lh, member_index, member_live,
                tl.full([], 0, tl.int32), partial, together, slots, member_table, n_table, fixed, rows, scale,
                D, DV, TILE_M, BLOCK_M, EVEN_M, True, LIVE_SLOTS,
            )  # fmt: skip
            dkey, dvalue = dkv_walk(
                dkey, dvalue, key, value, member_q, member_g, member_stats,
                stride_qh, stride_qm, stride_gh, stride_gm, stride_lh, member_index, member_live,
                tl.minimum(width - full, width - 1), full, together,
                slots, member_table, n_table, fixed, rows, scale,
                D, DV, TILE_M, BLOCK_M, EVEN_M, False, 0,
            )  # fmt: skip

        dkey = (dkey * (scale * 0.6931471805599453)).to(dk.dtype.element_ty)
        dvalue = dvalue.to(dv.dtype.element_ty)
        dk += batch * stride_dkb + head * stride_dkh + left * stride_dkn
        dv += batch * stride_dvb + head * stride_dvh + left * stride_dvn
        dk_offsets = line[:, None] * stride_dkn + head_columns(D)
        dv_offsets = line[:, None] * stride_dvn + head_columns(DV)
        store_block(dk, dk_offsets, dkey, fixed, cols, D, EVEN_N)
        store_block(dv, dv_offsets, dvalue, fixed, cols, DV, EVEN_N)


@triton.jit(
    do_not_specialize=[
        "row_table_stride", "row_n_table", "row_width", "col_table_stride", "col_n_table", "col_width", "rows", "cols",
        "batch", "heads", "group", "mask_batch", "mask_head",
    ]
)  # fmt: skip
def backward(
    q, k, v, dout, stats, dq, dk, dv,
    stride_qb, stride_qh, stride_qm: tl.constexpr, stride_kb, stride_kh, stride_kn: tl.constexpr,
    stride_vb, stride_vh, stride_vn: tl.constexpr, stride_gb, stride_gh, stride_gm: tl.constexpr,
    stride_dqb, stride_dqh, stride_dqm,
    stride_dkb, stride_dkh, stride_dkn, stride_dvb, stride_dvh, stride_dvn,
    row_table, row_count, row_index, row_live, row_order, row_table_stride, row_n_table, row_width,
    col_table, col_count, col_index, col_live, col_order, col_table_stride, col_n_table, col_width,
    rows, cols, batch, heads, group, mask_batch, mask_head, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
    DKV: tl.constexpr, DKV_BLOCK_M: tl.constexpr, DKV_BLOCK_N: tl.constexpr,
    DQ: tl.constexpr, DQ_BLOCK_M: tl.constexpr, DQ_BLOCK_N: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_N: tl.constexpr, ROW_LIVE_SLOTS: tl.constexpr, COL_LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """Gradients of attention; `scale` includes log2(e). `row_*` is what the row schedule's kernels read, `col_*` the
    column schedule's. Grid: the dkv programs, cdiv(cols, TILE_N) * TILE_N / DKV_BLOCK_N * batch * key heads (heavier,
    so they go first), then the dq programs, cdiv(rows, TILE_M) * TILE_M / DQ_BLOCK_M * batch * heads."""
    program = tl.program_id(0)
    kv_heads = heads // group
    dkv_programs = 0
    if DKV:
        dkv_programs = tl.cdiv(cols, TILE_N) * (TILE_N // DKV_BLOCK_N) * batch * kv_heads
    owns_columns = DKV
    if DKV and DQ:
        owns_columns = program < dkv_programs
    if owns_columns:
        backward_dkv(
            program, q, k, v, dout, stats, dk, dv,
            stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
            stride_gb, stride_gh, stride_gm, stride_dkb, stride_dkh, stride_dkn, stride_dvb, stride_dvh, stride_dvn,
            col_table, col_count, col_index, col_live, col_order, col_table_stride, col_n_table, col_width,
            rows, cols, batch * kv_heads, kv_heads, group, mask_batch, mask_head, scale,
            D, DV, TILE_M, TILE_N, DKV_BLOCK_M, DKV_BLOCK_N, EVEN_M, EVEN_N, COL_LIVE_SLOTS,
        )  # fmt: skip
    else:
        backward_dq(
            program - dkv_programs, q, k, v, dout, stats, dq,
            stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
            stride_gb, stride_gh, stride_gm, stride_dqb, stride_dqh, stride_dqm,
            row_table, row_count, row_index, row_live, row_order, row_table_stride, row_n_table, row_width,
            rows, cols, batch * heads, heads, group, mask_batch, mask_head, scale,
            D, DV, TILE_M, TILE_N, DQ_BLOCK_M, DQ_BLOCK_N, EVEN_M, EVEN_N, ROW_LIVE_SLOTS,
        )  # fmt: skip
