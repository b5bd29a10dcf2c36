# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportAssignmentType=false
"""Backward attention for Hopper over a descriptor's column schedule, in Gluon. Three launches.

`backward_begin` prepares what every step needs of a row (delta = rowsum(out * dout) - dlse, and the log-sum-exp
in base 2: +inf where a row saw nothing and past the last row, so that its weights come out as zero) and clears the
accumulators. In `backward` one program owns 128 keys of one key/value head: a warp loads queries and gradients by
TMA, two warpgroups of 64 keys each multiply. dk and dv stay in registers over all query rows and all query heads of the
group; each step's dq leaves by TMA, which adds it to an fp32 accumulator in global memory, in no fixed order.
`backward_end` scales and rounds what was accumulated.

A step, of 64 queries of one head; p and ds are [keys, queries], W the keys that a warpgroup owns:

    p  = exp2(scale K[W] Q^T - lse)          dV[W] += p dO
    ds = p (V[W] dO^T - delta)               dK[W] += ds Q
    dQ[:, half W of the head dim] += ds^T K[:, half W]    of both warpgroups' ds, which they swap in shared memory

The head dims D of q and k, and DV of v, are rounded up to the widths of blocks in shared memory, powers of two: columns
past them are read as zeros, are zeros in the accumulators, and are not stored.

Where there are too few programs, `splits` of them share a group's heads, and dk and dv are accumulated like dq.
"""

from typing import NamedTuple

from cmir.lowering.skeletons.hopper import (  # hooks use what the skeleton does not
    across_layout,  # noqa: F401
    across_word,  # noqa: F401
    add_block,
    advance_stage,
    columns,  # noqa: F401
    fence_async_shared,
    gl,
    gluon,
    line_word,
    lines,
    load_block,
    mbarrier,
    no_across_word,  # noqa: F401
    no_line_word,  # noqa: F401
    operand_layout,
    reinterpreted,
    score_layout,
    select_across,  # noqa: F401
    select_lines,
    store_block,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

KEYS = gl.constexpr(128)
"""Keys of a program: a tile of columns."""

OWN = gl.constexpr(64)
"""Keys of a warpgroup."""

QUERIES = gl.constexpr(64)
"""Query rows of a step: half a tile of rows."""

RING = gl.constexpr(2)
"""Steps whose queries and gradients are in shared memory, and steps whose ds is."""


class BackwardShared(NamedTuple):
    """Shared memory: blocks, and their barriers; `ds` and `dq` are of the two consumers."""

    q: object
    grad: object
    k: object
    v: object
    stats: object
    ds: object
    dq: object
    kv_full: object
    q_full: object
    q_empty: object
    grad_full: object
    grad_empty: object
    ds_full: object


class BackwardWork(NamedTuple):
    """What is visited and tested: see the parameters of `backward`."""

    table: object
    count: object
    index: object
    live: object
    order: object
    hull: object
    table_stride: object
    n_table: object
    width: object
    rows: object
    cols: object
    batch: object
    kv_heads: object
    group: object
    splits: object
    mask_batch: object
    mask_head: object
    near: object


# hook: hull_backward
@gluon.jit
def hull_backward(table, first, n_table, rows):
    """Rows outside of which the KEYS keys from `first` see nothing."""
    return 0, rows


# hook: prepare_backward
@gluon.jit
def prepare_backward(table, first, n_table, N: gl.constexpr):
    """What the words of every tile need of the 64 keys from `first`."""
    position = lines(first, N)
    inside = position < n_table
    lo = gl.load(table + position, mask=inside, other=0)
    hi = gl.load(table + n_table + position, mask=inside, other=0)
    return lo, hi


# hook: words_backward
@gluon.jit
def words_backward(slots, table, first, start, n_table, live, N: gl.constexpr):
    """Which of the N queries from `start` see the keys, as words."""
    return line_word(slots[0], slots[1], start, N)


# hook: select_backward
@gluon.jit
def select_backward(score, words, N: gl.constexpr):
    """The score [keys, queries] where the pair is visible, else -inf."""
    return select_lines(score, words, N)


LINE = gl.constexpr(64)
"""fp32 that are cleared side by side: a divisor of every accumulator's number."""


@gluon.constexpr_function
def power_of_two(D):
    """The least one that is not below D."""
    return 1 << (D - 1).bit_length()


@gluon.constexpr_function
def block_layout(D):
    """Of a [rows, D] block as it is read and written: 8 elements a thread side by side."""
    return gl.BlockedLayout([1, 8], [256 // D, D // 8], [4, 1], [1, 0])


@gluon.constexpr_function
def columns_layout():
    """Of what a step's QUERIES columns have: each thread that of its own columns, by fours."""
    return gl.DistributedLinearLayout([[1], [2], [16], [32]], [[4], [8], [0], [0], [0]], [[0], [0]], [], [64])


@gluon.jit
def by_thread(column):
    """Where a thread's own columns are by fours, side by side, those of four threads without a gap: the place of column
    16 j + 8 i + 2 c + e is 16 j + 4 c + 2 i + e."""
    return column // 16 * 16 + column // 2 % 4 * 4 + column // 8 % 2 * 2 + column % 2


@gluon.jit
def of_columns(buffer):
    """What is in `buffer` for each column, by thread, as a vector over the columns of scores."""
    found = buffer.load(columns_layout()).reshape([4, 4, 2, 2]).permute((0, 2, 1, 3)).reshape([64])
    return gl.convert_layout(found, gl.SliceLayout(0, score_layout(QUERIES)), assert_trivial=True)


@gluon.jit
def as_fragments(x):
    """An accumulator [64, N] as [N / 4, 256], each thread's registers by fours, side by side: shared memory takes them
    without conflicts. Row 16 w + 8 h + r, column 8 i + 2 c + e has the place (i, w, r, c, h, e)."""
    N: gl.constexpr = x.shape[1]
    return x.reshape([4, 2, 8, N // 8, 4, 2]).permute((3, 0, 2, 4, 1, 5)).reshape([N // 4, 256])


@gluon.jit
def from_fragments(x):
    """What the fragments of two consumers, [D / 4, 256], are of: [64, D], half of the columns of each."""
    D: gl.constexpr = x.shape[0] * 4
    return x.reshape([2, D // 16, 4, 8, 4, 2, 2]).permute((2, 5, 3, 0, 1, 4, 6)).reshape([64, D])


@gluon.jit(do_not_specialize=["rows", "heads", "cleared", "table_stride", "n_table", "column_tiles", "masks"])
def backward_begin(
    out, dout, lse, dlse, stats, accumulators, table, hull,
    stride_ob, stride_oh, stride_om, stride_gb, stride_gh, stride_gm, rows, heads, cleared,
    table_stride, n_table, column_tiles, masks,
    DV: gl.constexpr, HAS_DLSE: gl.constexpr,
):  # fmt: skip
    """stats [batch * heads, rows rounded up to KEYS / QUERIES, 2, QUERIES]: the log-sum-exps of a step's rows, then
    their deltas, both `by_thread`. `cleared` lines of LINE fp32 accumulators become zero.
    hull [masks, column_tiles, 2]: the rows, from a whole step on, outside of which the keys of a tile see nothing.

    Grid: (rows rounded up / QUERIES * batch * heads,)."""
    WIDTH: gl.constexpr = power_of_two(DV)
    L: gl.constexpr = block_layout(WIDTH)
    CLEAR: gl.constexpr = gl.BlockedLayout([1, 4], [128 // LINE, LINE // 4], [4, 1], [1, 0])
    blocks = gl.cdiv(rows, KEYS) * (KEYS // QUERIES)
    block = gl.program_id(0) % blocks
    head = (gl.program_id(0) // blocks).to(gl.int64)
    line = block * QUERIES + gl.arange(0, QUERIES, gl.SliceLayout(1, L))
    column = gl.arange(0, WIDTH, gl.SliceLayout(0, L))
    inside = line < rows
    entries = inside[:, None] & (column < DV)[None, :]
    row = line.to(gl.int64)[:, None]
    out += (head // heads) * stride_ob + (head % heads) * stride_oh
    dout += (head // heads) * stride_gb + (head % heads) * stride_gh
    o = gl.load(out + row * stride_om + column[None, :], mask=entries, other=0.0).to(gl.float32)
    g = gl.load(dout + row * stride_gm + column[None, :], mask=entries, other=0.0).to(gl.float32)
    delta = gl.sum(o * g, 1)
    log_sum = gl.load(lse + head * rows + line, mask=inside, other=float("-inf"))
    empty = log_sum == float("-inf")
    if HAS_DLSE:
        delta -= gl.load(dlse + head * rows + line, mask=inside, other=0.0)
    stats += (head * blocks + block) * (2 * QUERIES) + by_thread(line % QUERIES)
    gl.store(stats, gl.where(empty, float("inf"), log_sum * 1.4426950408889634))
    gl.store(stats + QUERIES, gl.where(empty, 0.0, delta))

    # Whole lines at a time, so that their mask does not break up the stores.
    LINES: gl.constexpr = 8192 // LINE
    step = gl.num_programs(0) * LINES
    zero = gl.zeros([LINES, LINE], gl.float32, CLEAR)
    for first in range(gl.program_id(0) * LINES, cleared, step):
        cleared_line = first + gl.arange(0, LINES, gl.SliceLayout(1, CLEAR))
        offsets = cleared_line.to(gl.int64)[:, None] * LINE + gl.arange(0, LINE, gl.SliceLayout(0, CLEAR))[None, :]
        gl.store(accumulators + offsets, zero, mask=(cleared_line < cleared)[:, None])

    for tile in range(gl.program_id(0), masks * column_tiles, gl.num_programs(0)):
        own_table = table + (tile // column_tiles).to(gl.int64) * table_stride
        low, high = hull_backward(own_table, tile % column_tiles * KEYS, n_table, rows)
        gl.store(hull + 2 * tile, low // QUERIES * QUERIES)
        gl.store(hull + 2 * tile + 1, gl.minimum(high, rows))


@gluon.jit
def rounded(source, target, head, heads, block, length, stride_b, stride_h, stride_m, D: gl.constexpr):
    """QUERIES rows of the accumulator `source` [batch * heads, length, WIDTH] into `target`."""
    WIDTH: gl.constexpr = power_of_two(D)
    L: gl.constexpr = block_layout(WIDTH)
    line = block * QUERIES + gl.arange(0, QUERIES, gl.SliceLayout(1, L))
    column = gl.arange(0, WIDTH, gl.SliceLayout(0, L))[None, :]
    inside = (line < length)[:, None] & (column < D)
    row = line.to(gl.int64)[:, None]
    head = head.to(gl.int64)
    x = gl.load(source + (head * length + row) * WIDTH + column, mask=inside, other=0.0)
    target += (head // heads) * stride_b + (head % heads) * stride_h
    gl.store(target + row * stride_m + column, x.to(target.dtype.element_ty), mask=inside)


@gluon.jit
def rounded_fragments(
    source, target, head, heads, block, length, stride_b, stride_h, stride_m, factor, D: gl.constexpr
):
    """The same for dq, whose accumulator is [batch * heads, blocks, 2, WIDTH / 2 as fragments, 256]: of each step the
    two consumers' columns."""
    WIDTH: gl.constexpr = power_of_two(D)
    L: gl.constexpr = block_layout(WIDTH)
    FRAGMENTS: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [2, 2], [1, 0])
    blocks = gl.cdiv(length, KEYS) * (KEYS // QUERIES)
    head = head.to(gl.int64)
    first = (head * blocks + block) * (QUERIES * WIDTH)
    place = gl.arange(0, WIDTH // 4, gl.SliceLayout(1, FRAGMENTS))[:, None] * 256
    x = gl.load(source + first + place + gl.arange(0, 256, gl.SliceLayout(0, FRAGMENTS))[None, :])
    x = gl.convert_layout(from_fragments(x), L) * factor
    line = block * QUERIES + gl.arange(0, QUERIES, gl.SliceLayout(1, L))
    column = gl.arange(0, WIDTH, gl.SliceLayout(0, L))[None, :]
    target += (head // heads) * stride_b + (head % heads) * stride_h
    where = target + line.to(gl.int64)[:, None] * stride_m + column
    gl.store(where, x.to(target.dtype.element_ty), mask=(line < length)[:, None] & (column < D))


@gluon.jit(do_not_specialize=["rows", "cols", "batch", "heads", "kv_heads"])
def backward_end(
    dq_sum, dk_sum, dv_sum, dq, dk, dv,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    rows, cols, batch, heads, kv_heads, factor, D: gl.constexpr, DV: gl.constexpr,
):  # fmt: skip
    """dq from its accumulator, and as far as the grid asks dk and dv from theirs, [batch, kv_heads, cols, WIDTH].

    Grid: (blocks of dq, or all blocks,), a block QUERIES rows of one head."""
    program = gl.program_id(0)
    q_blocks = gl.cdiv(rows, QUERIES)
    k_blocks = gl.cdiv(cols, QUERIES)
    q_programs = batch * heads * q_blocks
    k_programs = batch * kv_heads * k_blocks
    if program < q_programs:
        rounded_fragments(
            dq_sum, dq, program // q_blocks, heads, program % q_blocks, rows,
            stride_qb, stride_qh, stride_qm, factor, D,
        )  # fmt: skip
    elif program < q_programs + k_programs:
        place = program - q_programs
        rounded(
            dk_sum, dk, place // k_blocks, kv_heads, place % k_blocks, cols,
            stride_kb, stride_kh, stride_kn, D,
        )  # fmt: skip
    else:
        place = program - q_programs - k_programs
        rounded(
            dv_sum, dv, place // k_blocks, kv_heads, place % k_blocks, cols,
            stride_vb, stride_vh, stride_vn, DV,
        )  # fmt: skip


# default hook: backward_place
@gluon.jit
def backward_place(work, program):
    """What a program owns: (sequence, key/value head, first query head, query heads, mask, column tile).

    The heaviest tiles of all heads come first. Where lists are short (`near`), one head after another, by position:
    tiles that are computed at the same time then add to the same dq, which stays in the L2 cache; but those of the last
    head by weight, so that all processors are done at about the same time."""
    parts = work.batch * work.kv_heads * work.splits
    tiles = gl.cdiv(work.cols, KEYS)
    part = program % parts
    place = program // parts
    if work.near:
        part = program // tiles
        place = program % tiles
    kv_head = part // work.splits % work.kv_heads
    sequence = part // work.splits // work.kv_heads
    members = work.group // work.splits
    first = kv_head * work.group + part % work.splits * members
    mask = sequence.to(gl.int64) * work.mask_batch + first * work.mask_head
    tile_col = place
    if (work.near == 0) | (part == parts - 1):
        tile_col = gl.load(work.order + mask * tiles + place)
    return sequence, kv_head, first, members, mask, tile_col


@gluon.jit
def produce_steps(q_desc, grad_desc, stats_desc, work, shared, sequence, first, members, mask, tile_col):
    """Queries, statistics and gradients of every step of a program's column tile."""
    heads = work.kv_heads * work.group
    padded = gl.cdiv(work.rows, KEYS) * KEYS
    stage = 0
    phase = 1
    # The query heads of the group share each visit of a tile, unless every head has a mask of its own.
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
                    block = [sequence, head, row, 0]
                    line = ((sequence * heads + head) * padded + row) * 2
                    mbarrier.wait(shared.q_empty.index(stage), phase)
                    load_block(q_desc, block, shared.q_full.index(stage), shared.q.index(stage))
                    load_block(stats_desc, [line], shared.q_full.index(stage), shared.stats.index(stage))
                    mbarrier.wait(shared.grad_empty.index(stage), phase)
                    load_block(grad_desc, block, shared.grad_full.index(stage), shared.grad.index(stage))
                    stage, phase = advance_stage(stage, phase, RING)


@gluon.jit
def backward_produce(q_desc, k_desc, v_desc, grad_desc, stats_desc, work, shared):
    """The producer warp: keys and values once, then queries, statistics and gradients of every step."""
    sequence, kv_head, first, members, mask, tile_col = backward_place(work, gl.program_id(0))
    load_block(k_desc, [sequence, kv_head, tile_col * KEYS, 0], shared.kv_full, shared.k)
    load_block(v_desc, [sequence, kv_head, tile_col * KEYS, 0], shared.kv_full, shared.v)
    produce_steps(q_desc, grad_desc, stats_desc, work, shared, sequence, first, members, mask, tile_col)


@gluon.jit
def backward_step(
    dq_desc, shared, words, line, stage, phase, turn, turn_phase, dk, dv, scale,
    WHO: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """One step of consumer WHO, the number `line` of all heads' steps: (stage, phase, turn, turn_phase, dk, dv) after
    it. MASKED: the tile is a partial one, with the visible `words`."""
    D: gl.constexpr = shared.k.shape[1]
    DV: gl.constexpr = shared.v.shape[1]
    PART: gl.constexpr = D // 2
    SCORE: gl.constexpr = score_layout(QUERIES)
    query = shared.q.index(stage)
    grad = shared.grad.index(stage)
    stats = shared.stats.index(stage)
    zero = gl.zeros([OWN, QUERIES], gl.float32, SCORE)

    mbarrier.wait(shared.q_full.index(stage), phase)
    own_k = shared.k.slice(WHO * OWN, OWN, 0)
    score = warpgroup_mma(own_k, query.permute((1, 0)), zero, use_acc=False, is_async=True)
    mbarrier.wait(shared.grad_full.index(stage), phase)
    own_v = shared.v.slice(WHO * OWN, OWN, 0)
    dp = warpgroup_mma(own_v, grad.permute((1, 0)), zero, use_acc=False, is_async=True)
    lse = of_columns(stats.slice(0, QUERIES))
    score = warpgroup_mma_wait(1, deps=(score,))
    score = score * scale - lse[None, :]
    if MASKED:
        score = select_backward(score, words, QUERIES)
    p = gl.exp2(score)
    delta = of_columns(stats.slice(QUERIES, QUERIES))
    p_operand = gl.convert_layout(p.to(query.dtype), operand_layout(DV))
    dp, p_operand = warpgroup_mma_wait(0, deps=(dp, p_operand))
    dv = warpgroup_mma(p_operand, grad, dv, is_async=True)

    ds = (p * (dp - delta[None, :])).to(query.dtype)
    both = shared.ds.index(turn)
    both.slice(WHO * OWN, OWN, 0).store(ds)
    fence_async_shared()
    mbarrier.arrive(shared.ds_full.index(turn), count=1)
    ds_operand = gl.convert_layout(ds, operand_layout(D))
    mbarrier.wait(shared.ds_full.index(turn), turn_phase)
    zero_dq = gl.zeros([QUERIES, PART], gl.float32, score_layout(PART))
    part_of_k = shared.k.slice(WHO * PART, PART, 1)
    dq = warpgroup_mma(both.permute((1, 0)), part_of_k, zero_dq, use_acc=False, is_async=True)
    dk = warpgroup_mma(ds_operand, query, dk, is_async=True)
    dq, dv, p_operand = warpgroup_mma_wait(1, deps=(dq, dv, p_operand))
    mbarrier.arrive(shared.grad_empty.index(stage), count=1)
    tma.store_wait(0)  # the dq of the step before has left
    leaving = reinterpreted(shared.dq.index(WHO), gl.float32, [PART // 4, 256], dq_desc.layout)
    leaving.store(as_fragments(dq))
    fence_async_shared()
    add_block(dq_desc, [(2 * line + WHO) * (PART // 4), 0], leaving)
    dk, ds_operand = warpgroup_mma_wait(0, deps=(dk, ds_operand))
    mbarrier.arrive(shared.q_empty.index(stage), count=1)
    turn, turn_phase = advance_stage(turn, turn_phase, RING)
    stage, phase = advance_stage(stage, phase, RING)
    return stage, phase, turn, turn_phase, dk, dv


# default hook: store_gradient
@gluon.jit
def store_gradient(desc, gradient, buffer, sequence, head, key):
    """Stores a gradient of OWN keys; adds it, half by half, where the tensor is an fp32 accumulator."""
    D: gl.constexpr = gradient.shape[1]
    tma.store_wait(0)
    if desc.dtype == gl.float32:
        PART: gl.constexpr = D // 2
        left, right = gradient.reshape([OWN, 2, PART]).permute((0, 2, 1)).split()
        block = reinterpreted(buffer, gl.float32, [OWN, PART], gl.NVMMASharedLayout(128, 32, 2))
        block.store(gl.convert_layout(left, score_layout(PART)))
        fence_async_shared()
        add_block(desc, [sequence, head, key, 0], block)
        tma.store_wait(0)
        block.store(gl.convert_layout(right, score_layout(PART)))
        fence_async_shared()
        add_block(desc, [sequence, head, key, PART], block)
    else:
        narrow = reinterpreted(buffer, desc.dtype, [OWN, D], gl.NVMMASharedLayout(128, 16, 2))
        narrow.store(gradient.to(desc.dtype))
        fence_async_shared()
        store_block(desc, [sequence, head, key, 0], narrow)


@gluon.jit
def backward_consume(dq_desc, dk_desc, dv_desc, work, shared, scale, factor, WHO: gl.constexpr):
    """A consumer warpgroup: the keys from WHO * OWN of the tile on."""
    D: gl.constexpr = shared.k.shape[1]
    DV: gl.constexpr = shared.v.shape[1]
    sequence, kv_head, first, members, mask, tile_col = backward_place(work, gl.program_id(0))
    key = tile_col * KEYS + WHO * OWN
    heads = sequence * (work.kv_heads * work.group)  # of the sequences before
    blocks = gl.cdiv(work.rows, KEYS) * (KEYS // QUERIES)
    dk = gl.zeros([OWN, D], gl.float32, score_layout(D))
    dv = gl.zeros([OWN, DV], gl.float32, score_layout(DV))
    stage = 0
    phase = 0
    turn = 0
    turn_phase = 0
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
                    stage, phase, turn, turn_phase, dk, dv = backward_step(
                        dq_desc, shared, words, line, stage, phase, turn, turn_phase, dk, dv, scale,
                        WHO, True,
                    )  # fmt: skip
        for entry in range(work.width - full, work.width):
            top = gl.load(index + entry) * KEYS
            for row in range(gl.maximum(top, low), gl.minimum(top + KEYS, high), QUERIES):
                for head in range(begin, begin + together):
                    line = (heads + head) * blocks + row // QUERIES
                    stage, phase, turn, turn_phase, dk, dv = backward_step(
                        dq_desc, shared, 0, line, stage, phase, turn, turn_phase, dk, dv, scale,
                        WHO, False,
                    )  # fmt: skip
    store_gradient(dv_desc, dv, shared.dq.index(WHO), sequence, kv_head, key)
    store_gradient(dk_desc, dk * factor, shared.dq.index(WHO), sequence, kv_head, key)
    tma.store_wait(0)


@gluon.jit(
    do_not_specialize=[
        "table_stride", "n_table", "width", "rows", "cols", "batch", "kv_heads", "group", "splits", "mask_batch",
        "mask_head", "near",
    ]
)  # fmt: skip
def backward(
    q_desc, k_desc, v_desc, grad_desc, stats_desc, dq_desc, dk_desc, dv_desc,
    table, count, index, live, order, hull, table_stride, n_table, width,
    rows, cols, batch, kv_heads, group, splits, mask_batch, mask_head, near, scale, factor,
    CONSUMER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """Adds to dq and stores dk and dv, or adds to them too where `splits` programs share a group of query heads.

    The TMA descriptors are those of [batch, heads, length, D] tensors with blocks of one head: QUERIES rows, KEYS
    columns of k and v; with splits dk and dv are fp32 accumulators, in blocks of half of D. But `stats` is one vector,
    and the accumulator of dq is of fragments (`as_fragments`), those of a consumer's step a block. From `table` to
    `width`: the column schedule, and the `hull` of each tile; `near`: lists are short. `scale` includes log2(e),
    `factor` does not.

    Grid: (cdiv(cols, KEYS) * batch * kv_heads * splits,)."""
    D: gl.constexpr = q_desc.block_type.shape[3]
    DV: gl.constexpr = v_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    WIDE: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    BARRIER: gl.constexpr = mbarrier.MBarrierLayout()
    shared = BackwardShared(
        gl.allocate_shared_memory(dtype, [RING, QUERIES, D], WIDE),
        gl.allocate_shared_memory(dtype, [RING, QUERIES, DV], WIDE),
        # Swizzled by D bytes, so that each consumer's half of the columns is whole swizzle patterns.
        gl.allocate_shared_memory(dtype, [KEYS, D], gl.NVMMASharedLayout(D, 16, 2)),
        gl.allocate_shared_memory(dtype, [KEYS, DV], WIDE),
        gl.allocate_shared_memory(gl.float32, [RING, 2 * QUERIES], stats_desc.layout),
        gl.allocate_shared_memory(dtype, [RING, KEYS, QUERIES], WIDE),
        # Later what dk and dv leave from too.
        gl.allocate_shared_memory(gl.float32, [2, max(D, DV) // 8, 256], dq_desc.layout),
        gl.allocate_shared_memory(gl.int64, [1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [RING, 1], BARRIER),
    )
    mbarrier.init(shared.kv_full, count=2)
    for stage in gl.static_range(RING):
        mbarrier.init(shared.q_full.index(stage), count=2)  # queries, statistics
        mbarrier.init(shared.q_empty.index(stage), count=2)
        mbarrier.init(shared.grad_full.index(stage), count=1)
        mbarrier.init(shared.grad_empty.index(stage), count=2)
        mbarrier.init(shared.ds_full.index(stage), count=2)
    fence_async_shared()
    work = BackwardWork(
        table, count, index, live, order, hull, table_stride, n_table, width,
        rows, cols, batch, kv_heads, group, splits, mask_batch, mask_head, near,
    )  # fmt: skip
    gl.warp_specialize(
        [
            (backward_consume, (dq_desc, dk_desc, dv_desc, work, shared, scale, factor, 0)),
            (backward_consume, (dq_desc, dk_desc, dv_desc, work, shared, scale, factor, 1)),
            (backward_produce, (q_desc, k_desc, v_desc, grad_desc, stats_desc, work, shared)),
        ],
        [4, 1],
        [CONSUMER_REGISTERS, 24],
    )
