# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
"""Forward attention over a descriptor's row schedule.

One program owns BLOCK_M query rows of one head. It walks the partial tiles of its tile row with the visibility test,
then the full ones without, and keeps an online softmax in base 2. Where nothing has been seen yet the row's maximum is
-inf; such a row uses 0 instead, so that no -inf - -inf is ever formed.
"""

import triton
import triton.language as tl

from cmir.lowering.skeletons.steps import (  # hooks use what the skeleton does not
    advance,
    count_steps,
    enter,
    head_columns,
    keep_slot,  # noqa: F401
    load_block,
    program_place,
    slots_a_visit,  # noqa: F401
    store_block,
)


# hook: prepare_forward
@triton.jit
def prepare_forward(table, fixed, n_table):
    """What the test of every block needs of the fixed positions."""
    lo = tl.load(table + fixed, mask=fixed < n_table, other=0)
    hi = tl.load(table + n_table + fixed, mask=fixed < n_table, other=0)
    return lo, (hi - lo).to(tl.uint32, bitcast=True)


# hook: visible_forward
@triton.jit
def visible_forward(slots, table, fixed, moving, start, n_table, begin, end, most):
    """Visibility of the pairs, [FIXED, MOVING]."""
    return (moving[None, :] - slots[0][:, None]).to(tl.uint32, bitcast=True) < slots[1][:, None]


@triton.jit
def forward_walk(
    acc, total, peak, q, k, v, stride_kn, stride_vn,
    index, live, first, count, slots, table, n_table, fixed, cols, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_N: tl.constexpr, BLOCK_N: tl.constexpr,
    EVEN: tl.constexpr, MASKED: tl.constexpr, LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """Visits `count` listed tiles from `first`: (acc, total, peak), the raw output, softmax sum and maximum."""
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
        score = tl.dot(q, key.T, input_precision="ieee")
        if MASKED:
            seen = visible_forward(slots, table, fixed, moving, start, n_table, begin, end, most)
            score = tl.where(seen, score, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(score, 1) * scale)
        safe = tl.where(new_peak == float("-inf"), 0.0, new_peak) if MASKED else new_peak
        weight = tl.exp2(score * scale - safe[:, None])
        shrink = tl.exp2(peak - safe)
        total = total * shrink + tl.sum(weight, 1)
        acc = acc * shrink[:, None]
        value = load_block(v + start.to(tl.int64) * stride_vn, v_offsets, moving, cols, DV, EVEN)
        acc = tl.dot(weight.to(value.dtype), value, acc, input_precision="ieee")
        peak = new_peak
        entry, part, tile, begin, end, most = advance(
            index, live, entry, first + count - 1, part, PARTS, begin, end, most, LIVE_SLOTS
        )
    return acc, total, peak


@triton.jit(
    do_not_specialize=[
        "table_stride", "n_table", "width", "rows", "cols",
        "batch_heads", "heads", "group", "mask_batch", "mask_head",
    ]
)  # fmt: skip
def forward(
    q, k, v, out, lse,
    stride_qb, stride_qh, stride_qm: tl.constexpr, stride_kb, stride_kh, stride_kn: tl.constexpr,
    stride_vb, stride_vh, stride_vn: tl.constexpr, stride_ob, stride_oh, stride_om,
    table, count, index, live, order, table_stride, n_table, width,
    rows, cols, batch_heads, heads, group, mask_batch, mask_head, scale,
    D: tl.constexpr, DV: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EVEN_M: tl.constexpr, EVEN_N: tl.constexpr,
    LIVE_SLOTS: tl.constexpr,
):  # fmt: skip
    """out = softmax(q k^T) v over the visible pairs and lse, its natural log-sum-exp; `scale` includes log2(e).

    Grid: (tile rows * TILE_M / BLOCK_M * batch * heads,)."""
    BLOCKS: tl.constexpr = TILE_M // BLOCK_M
    tile_rows = tl.cdiv(rows, TILE_M)
    place, head = program_place(tl.program_id(0), batch_heads)
    batch = (head // heads).to(tl.int64)
    head = (head % heads).to(tl.int64)
    mask = batch * mask_batch + head * mask_head
    tile_row = tl.load(order + mask * tile_rows + place // BLOCKS)
    start = tile_row * TILE_M + (place % BLOCKS) * BLOCK_M
    if start >= rows:
        return

    line = tl.arange(0, BLOCK_M)
    fixed = start + line
    q_block = q + batch * stride_qb + head * stride_qh + start.to(tl.int64) * stride_qm
    k_head = k + batch * stride_kb + (head // group) * stride_kh
    v_head = v + batch * stride_vb + (head // group) * stride_vh
    query = load_block(q_block, line[:, None] * stride_qm + head_columns(D), fixed, rows, D, EVEN_M)

    table += mask * table_stride
    slots = prepare_forward(table, fixed, n_table)
    tile_list = mask * tile_rows + tile_row
    partial = tl.load(count + 2 * tile_list)
    full = tl.load(count + 2 * tile_list + 1)
    index += tile_list * width
    live += tile_list * (width if LIVE_SLOTS > 0 else 0)

    acc = tl.zeros([BLOCK_M, triton.next_power_of_2(DV)], tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    acc, total, peak = forward_walk(
        acc, total, peak, query, k_head, v_head, stride_kn, stride_vn,
        index, live, tl.full([], 0, tl.int32), partial, slots, table, n_table, fixed, cols, scale,
        D, DV, TILE_N, BLOCK_N, EVEN_N, True, LIVE_SLOTS,
    )  # fmt: skip
    acc, total, peak = forward_walk(
        acc, total, peak, query, k_head, v_head, stride_kn, stride_vn,
        index, live, tl.minimum(width - full, width - 1), full, slots, table, n_table, fixed, cols, scale,
        D, DV, TILE_N, BLOCK_N, True, False, 0,
    )  # fmt: skip

    some = total > 0.0
    acc = acc / tl.where(some, total, 1.0)[:, None]
    log_sum = tl.where(some, (peak + tl.log2(tl.where(some, total, 1.0))) * 0.6931471805599453, float("-inf"))
    out += batch * stride_ob + head * stride_oh + start.to(tl.int64) * stride_om
    lse += (batch * heads + head) * rows + start
    offsets = line[:, None] * stride_om + head_columns(DV)
    store_block(out, offsets, acc.to(out.dtype.element_ty), fixed, rows, DV, EVEN_M)
    if EVEN_M:
        tl.store(lse + line, log_sum)
    else:
        tl.store(lse + line, log_sum, mask=fixed < rows)
