# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportAssignmentType=false
"""Backward attention for Hopper where head dims are large: `backward` of gluon_backward, by other programs.

Accumulators of dk and dv for 64 keys and a head dim of 256 take half the registers of a multiprocessor. So a program
owns 64 keys, half a tile of columns, and its two warpgroups share the work by products rather than by keys. A step, of
64 queries of one head; p and ds are [keys, queries]:

    first                                    second
    p = exp2(scale K Q^T - lse)              dp = V dO^T
    p into shared memory           ------>   ds = p (dp - delta)
    dV += p dO                     <------   ds where p was
    dQ[:, first half] += ds^T K              dK += ds Q
                                             dQ[:, second half] += ds^T K

The first one is a step ahead: its half of dQ is that of the step before, so that neither waits for the other's answer.
"""

from typing import NamedTuple

from cmir.lowering.skeletons.gluon_backward import (
    KEYS,
    OWN,
    QUERIES,
    RING,
    BackwardWork,
    as_fragments,
    backward_place,
    of_columns,
    prepare_backward,
    produce_steps,
    select_backward,
    store_gradient,
    words_backward,
)
from cmir.lowering.skeletons.hopper import (
    add_block,
    advance_stage,
    fence_async_shared,
    gl,
    gluon,
    load_block,
    mbarrier,
    operand_layout,
    score_layout,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


class WideShared(NamedTuple):
    """Shared memory: blocks, and their barriers. `weights` has a step's p, then its ds; `dq` is of the consumers."""

    q: object
    grad: object
    k: object
    v: object
    stats: object
    weights: object
    dq: object
    kv_full: object
    q_full: object
    q_empty: object
    grad_full: object
    grad_empty: object
    p_full: object
    ds_full: object
    ds_empty: object


@gluon.jit
def wide_place(work):
    """What this program owns: (sequence, key/value head, first query head, query heads, mask, column tile, first key).

    In the order of `backward`, the two halves of a tile together."""
    place = backward_place(work, gl.program_id(0) // 2)
    sequence, kv_head, first, members, mask, tile_col = place
    return sequence, kv_head, first, members, mask, tile_col, tile_col * KEYS + gl.program_id(0) % 2 * OWN


@gluon.jit
def wide_produce(q_desc, k_desc, v_desc, grad_desc, stats_desc, work, shared):
    """The producer warp: keys and values once, then queries, statistics and gradients of every step."""
    sequence, kv_head, first, members, mask, tile_col, key = wide_place(work)
    load_block(k_desc, [sequence, kv_head, key, 0], shared.kv_full, shared.k)
    load_block(v_desc, [sequence, kv_head, key, 0], shared.kv_full, shared.v)
    produce_steps(q_desc, grad_desc, stats_desc, work, shared, sequence, first, members, mask, tile_col)


@gluon.jit
def leave(dq_desc, shared, fragments, place, WHO: gl.constexpr, PART: gl.constexpr, BUFFERS: gl.constexpr):
    """Adds fragments to the accumulator of dq from `place` on: part number PART, halved until it fits a buffer."""
    N: gl.constexpr = fragments.shape[0]
    if shared.dq.shape[1] == N:
        buffer = shared.dq.index(WHO * BUFFERS + PART % BUFFERS)
        tma.store_wait(BUFFERS - 1)  # what was in the buffer has left
        buffer.store(fragments)
        fence_async_shared()
        add_block(dq_desc, [place, 0], buffer)
    else:
        upper, lower = fragments.reshape([2, N // 2, 256]).permute((1, 2, 0)).split()
        leave(dq_desc, shared, upper, place, WHO, 2 * PART, BUFFERS)
        leave(dq_desc, shared, lower, place + N // 2, WHO, 2 * PART + 1, BUFFERS)


@gluon.jit
def add_dq(dq_desc, shared, dq, line, WHO: gl.constexpr):
    """Adds a consumer's dq [QUERIES, half of the head dim] of step number `line` to the accumulator."""
    fragments = as_fragments(dq)
    N: gl.constexpr = fragments.shape[0]
    leave(dq_desc, shared, fragments, (2 * line + WHO) * N, WHO, 0, shared.dq.shape[0] // 2)


@gluon.jit
def begin_dq(shared, turn, WHO: gl.constexpr):
    """Begins the consumer's half of a step's dq."""
    PART: gl.constexpr = shared.k.shape[1] // 2
    zero = gl.zeros([QUERIES, PART], gl.float32, score_layout(PART))
    part_of_k = shared.k.slice(WHO * PART, PART, 1)
    return warpgroup_mma(shared.weights.index(turn).permute((1, 0)), part_of_k, zero, use_acc=False, is_async=True)


@gluon.jit
def first_step(dq_desc, shared, words, before, stage, phase, turn, turn_phase, dv, scale, MASKED: gl.constexpr):
    """One step of the first consumer: (stage, phase, turn, turn_phase, dv) after it. `before` is the number of the step
    before. MASKED: the tile is a partial one, with the visible `words`."""
    DV: gl.constexpr = shared.v.shape[1]
    IN_PARTS: gl.constexpr = shared.dq.shape[0] > 2
    query = shared.q.index(stage)
    grad = shared.grad.index(stage)
    zero = gl.zeros([OWN, QUERIES], gl.float32, score_layout(QUERIES))
    mbarrier.wait(shared.q_full.index(stage), phase)
    score = warpgroup_mma(shared.k, query.permute((1, 0)), zero, use_acc=False, is_async=True)
    lse = of_columns(shared.stats.index(stage).slice(0, QUERIES))
    score = warpgroup_mma_wait(0, deps=(score,))
    score = score * scale - lse[None, :]
    if MASKED:
        score = select_backward(score, words, QUERIES)
    p = gl.exp2(score).to(query.dtype)
    mbarrier.wait(shared.ds_empty.index(turn), turn_phase ^ 1)
    shared.weights.index(turn).store(p)
    mbarrier.arrive(shared.p_full.index(turn), count=1)
    p = gl.convert_layout(p, operand_layout(DV))
    mbarrier.wait(shared.grad_full.index(stage), phase)
    if IN_PARTS:  # what takes long goes on beside dv
        mbarrier.wait(shared.ds_full.index(turn ^ 1), turn_phase ^ 1 ^ turn)
        dq = begin_dq(shared, turn ^ 1, 0)
        dv = warpgroup_mma(p, grad, dv, is_async=True)
        dq = warpgroup_mma_wait(1, deps=(dq,))
        add_dq(dq_desc, shared, dq, before, 0)
        dv, p = warpgroup_mma_wait(0, deps=(dv, p))
    else:
        dv = warpgroup_mma(p, grad, dv, is_async=True)
        mbarrier.wait(shared.ds_full.index(turn ^ 1), turn_phase ^ 1 ^ turn)
        dq = begin_dq(shared, turn ^ 1, 0)
        dv, p, dq = warpgroup_mma_wait(0, deps=(dv, p, dq))
    mbarrier.arrive(shared.q_empty.index(stage), count=1)
    mbarrier.arrive(shared.grad_empty.index(stage), count=1)
    if not IN_PARTS:
        add_dq(dq_desc, shared, dq, before, 0)
    turn, turn_phase = advance_stage(turn, turn_phase, 2)
    stage, phase = advance_stage(stage, phase, RING)
    return stage, phase, turn, turn_phase, dv


@gluon.jit
def second_step(dq_desc, shared, line, stage, phase, turn, turn_phase, dk):
    """One step of the second consumer, number `line`: (stage, phase, turn, turn_phase, dk) after it."""
    D: gl.constexpr = shared.k.shape[1]
    IN_PARTS: gl.constexpr = shared.dq.shape[0] > 2
    SCORE: gl.constexpr = score_layout(QUERIES)
    query = shared.q.index(stage)
    grad = shared.grad.index(stage)
    weights = shared.weights.index(turn)
    zero = gl.zeros([OWN, QUERIES], gl.float32, SCORE)
    mbarrier.wait(shared.grad_full.index(stage), phase)
    dp = warpgroup_mma(shared.v, grad.permute((1, 0)), zero, use_acc=False, is_async=True)
    mbarrier.wait(shared.q_full.index(stage), phase)
    delta = of_columns(shared.stats.index(stage).slice(QUERIES, QUERIES))
    mbarrier.wait(shared.p_full.index(turn), turn_phase)
    p = weights.load(SCORE).to(gl.float32)
    dp = warpgroup_mma_wait(0, deps=(dp,))
    mbarrier.arrive(shared.grad_empty.index(stage), count=1)
    ds = (p * (dp - delta[None, :])).to(query.dtype)
    weights.store(ds)
    fence_async_shared()
    mbarrier.arrive(shared.ds_full.index(turn), count=1)
    ds = gl.convert_layout(ds, operand_layout(D))
    if IN_PARTS:  # as in `first_step`
        mbarrier.wait(shared.ds_full.index(turn), turn_phase)  # of all warps
        dq = begin_dq(shared, turn, 1)
        dk = warpgroup_mma(ds, query, dk, is_async=True)
        dq = warpgroup_mma_wait(1, deps=(dq,))
        mbarrier.arrive(shared.ds_empty.index(turn), count=1)
        add_dq(dq_desc, shared, dq, line, 1)
        dk, ds = warpgroup_mma_wait(0, deps=(dk, ds))
        mbarrier.arrive(shared.q_empty.index(stage), count=1)
    else:
        dk = warpgroup_mma(ds, query, dk, is_async=True)
        mbarrier.wait(shared.ds_full.index(turn), turn_phase)
        dq = begin_dq(shared, turn, 1)
        dk, ds, dq = warpgroup_mma_wait(0, deps=(dk, ds, dq))
        mbarrier.arrive(shared.q_empty.index(stage), count=1)
        mbarrier.arrive(shared.ds_empty.index(turn), count=1)
        add_dq(dq_desc, shared, dq, line, 1)
    turn, turn_phase = advance_stage(turn, turn_phase, 2)
    stage, phase = advance_stage(stage, phase, RING)
    return stage, phase, turn, turn_phase, dk


@gluon.jit
def first_consume(dq_desc, dv_desc, work, shared, scale):
    """The first consumer: p, dv, and the first half of dq."""
    DV: gl.constexpr = shared.v.shape[1]
    sequence, kv_head, first, members, mask, tile_col, key = wide_place(work)
    heads = sequence * (work.kv_heads * work.group)  # of the sequences before
    blocks = gl.cdiv(work.rows, KEYS) * (KEYS // QUERIES)
    dv = gl.zeros([OWN, DV], gl.float32, score_layout(DV))
    stage = 0
    phase = 0
    turn = 0
    turn_phase = 0
    before = -1
    mbarrier.wait(shared.kv_full, 0)
    together = gl.where(work.mask_head == 0, members, 1)
    for member in range(0, members, together):
        number = mask + member * work.mask_head
        table = work.table + number * work.table_stride
        slots = prepare_backward(table, key, work.n_table, QUERIES)
        tile_list = number * gl.cdiv(work.cols, KEYS) + tile_col
        partial = gl.load(work.count + 2 * tile_list)
        full = gl.load(work.count + 2 * tile_list + 1)
        low = gl.load(work.hull + 2 * tile_list)
        high = gl.load(work.hull + 2 * tile_list + 1)
        index = work.index + tile_list * work.width
        live = work.live + tile_list * work.width
        begin = first + member
        for entry in range(partial):
            top = gl.load(index + entry) * KEYS
            for row in range(gl.maximum(top, low), gl.minimum(top + KEYS, high), QUERIES):
                words = words_backward(slots, table, key, row, work.n_table, live + entry, QUERIES)
                for head in range(begin, begin + together):
                    line = (heads + head) * blocks + row // QUERIES
                    before = gl.where(before < 0, line, before)  # at first zeros, wherever that is
                    stage, phase, turn, turn_phase, dv = first_step(
                        dq_desc, shared, words, before, stage, phase, turn, turn_phase, dv, scale, True
                    )
                    before = line
        for entry in range(work.width - full, work.width):
            top = gl.load(index + entry) * KEYS
            for row in range(gl.maximum(top, low), gl.minimum(top + KEYS, high), QUERIES):
                for head in range(begin, begin + together):
                    line = (heads + head) * blocks + row // QUERIES
                    before = gl.where(before < 0, line, before)
                    stage, phase, turn, turn_phase, dv = first_step(
                        dq_desc, shared, 0, before, stage, phase, turn, turn_phase, dv, scale, False
                    )
                    before = line
    if before >= 0:
        mbarrier.wait(shared.ds_full.index(turn ^ 1), turn_phase ^ 1 ^ turn)
        dq = begin_dq(shared, turn ^ 1, 0)
        dq = warpgroup_mma_wait(0, deps=(dq,))
        add_dq(dq_desc, shared, dq, before, 0)
    # The second consumer has read all gradients.
    store_gradient(dv_desc, dv, shared.grad.index(0), sequence, kv_head, key)
    tma.store_wait(0)


@gluon.jit
def second_consume(dq_desc, dk_desc, work, shared, factor):
    """The second consumer: ds, dk, and the second half of dq."""
    D: gl.constexpr = shared.k.shape[1]
    sequence, kv_head, first, members, mask, tile_col, key = wide_place(work)
    heads = sequence * (work.kv_heads * work.group)
    blocks = gl.cdiv(work.rows, KEYS) * (KEYS // QUERIES)
    dk = gl.zeros([OWN, D], gl.float32, score_layout(D))
    stage = 0
    phase = 0
    turn = 0
    turn_phase = 0
    mbarrier.wait(shared.kv_full, 0)
    together = gl.where(work.mask_head == 0, members, 1)
    for member in range(0, members, together):
        tile_list = (mask + member * work.mask_head) * gl.cdiv(work.cols, KEYS) + tile_col
        partial = gl.load(work.count + 2 * tile_list)
        full = gl.load(work.count + 2 * tile_list + 1)
        low = gl.load(work.hull + 2 * tile_list)
        high = gl.load(work.hull + 2 * tile_list + 1)
        begin = first + member
        for entry in range(partial + full):
            place = gl.where(entry < partial, entry, work.width - full + entry - partial)
            top = gl.load(work.index + tile_list * work.width + place) * KEYS
            for row in range(gl.maximum(top, low), gl.minimum(top + KEYS, high), QUERIES):
                for head in range(begin, begin + together):
                    line = (heads + head) * blocks + row // QUERIES
                    stage, phase, turn, turn_phase, dk = second_step(
                        dq_desc, shared, line, stage, phase, turn, turn_phase, dk
                    )
    # The first consumer has read all queries.
    store_gradient(dk_desc, dk * factor, shared.q.index(0), sequence, kv_head, key)
    tma.store_wait(0)


@gluon.jit(
    do_not_specialize=[
        "table_stride", "n_table", "width", "rows", "cols", "batch", "kv_heads", "group", "splits", "mask_batch",
        "mask_head", "near",
    ]
)  # fmt: skip
def backward_wide(
    q_desc, k_desc, v_desc, grad_desc, stats_desc, dq_desc, dk_desc, dv_desc,
    table, count, index, live, order, hull, table_stride, n_table, width,
    rows, cols, batch, kv_heads, group, splits, mask_batch, mask_head, near, scale, factor,
    CONSUMER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """What `backward` does, with the same arguments but blocks of OWN columns of k and v.

    Grid: (2 * cdiv(cols, KEYS) * batch * kv_heads * splits,)."""
    D: gl.constexpr = q_desc.block_type.shape[3]
    DV: gl.constexpr = v_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    WIDE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    BARRIER: gl.constexpr = mbarrier.MBarrierLayout()
    # Of a dq that leaves in parts, one is made while another leaves.
    BUFFERS: gl.constexpr = 1 if dq_desc.block_type.shape[0] == D // 8 else 2
    shared = WideShared(
        gl.allocate_shared_memory(dtype, [RING, QUERIES, D], WIDE),
        gl.allocate_shared_memory(dtype, [RING, QUERIES, DV], WIDE),
        # As in `backward`, so that half of the columns is whole swizzle patterns.
        gl.allocate_shared_memory(dtype, [OWN, D], gl.NVMMASharedLayout(min(D, 128), 16, 2)),
        gl.allocate_shared_memory(dtype, [OWN, DV], WIDE),
        gl.allocate_shared_memory(gl.float32, [RING, 2 * QUERIES], stats_desc.layout),
        gl.allocate_shared_memory(dtype, [2, OWN, QUERIES], WIDE),
        gl.allocate_shared_memory(gl.float32, [2 * BUFFERS, dq_desc.block_type.shape[0], 256], dq_desc.layout),
        gl.allocate_shared_memory(gl.int64, [1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
    )
    # What the first consumer takes for the ds of a step before the first one.
    nothing = gl.zeros([OWN, QUERIES], dtype, gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]))
    shared.weights.index(1).store(nothing)
    mbarrier.init(shared.kv_full, count=2)
    for stage in gl.static_range(RING):
        mbarrier.init(shared.q_full.index(stage), count=2)  # queries, statistics
        mbarrier.init(shared.q_empty.index(stage), count=2)
        mbarrier.init(shared.grad_full.index(stage), count=1)
        mbarrier.init(shared.grad_empty.index(stage), count=2)
    for turn in gl.static_range(2):
        mbarrier.init(shared.p_full.index(turn), count=1)
        mbarrier.init(shared.ds_full.index(turn), count=1)
        mbarrier.init(shared.ds_empty.index(turn), count=1)
    fence_async_shared()
    work = BackwardWork(
        table, count, index, live, order, hull, table_stride, n_table, width,
        rows, cols, batch, kv_heads, group, splits, mask_batch, mask_head, near,
    )  # fmt: skip
    gl.warp_specialize(
        [
            (first_consume, (dq_desc, dv_desc, work, shared, scale)),
            (second_consume, (dq_desc, dk_desc, work, shared, factor)),
            (wide_produce, (q_desc, k_desc, v_desc, grad_desc, stats_desc, work, shared)),
        ],
        [4, 1],
        [CONSUMER_REGISTERS, 24],
    )
