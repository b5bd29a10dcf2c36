# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportAssignmentType=false
"""Forward attention on Hopper over a descriptor's row schedule.

A program has one producer warp, which loads tiles by TMA, and two consumer warpgroups, which own 64 query rows of a
tile row each. Programs stay: the producer draws the next tile row of a head while the one before is computed, and tells
the consumers. A consumer is one product ahead: the scores of a tile are computed while the softmax of the tile before
waits for its own product with v.

A step takes all keys of a tile, or half of them where the head dims are large. The head dim of q and k is cut into
PIECES, each a block of shared memory and a part of the sum that a score is: so it need not be a power of two. That of v
is filled up with zeros to one.

The first step of a list is peeled off, for there is no product with v before it, and is tested whatever it is; a tile
row that sees nothing visits one tile of which nothing is visible. Scores that are hidden are -inf, and where a row has
seen nothing yet its peak is: such a row uses 0 instead, so that no -inf - -inf is ever formed.

A consumer takes as long as its instructions do one after another, so a step has few of them: weights are relative to a
maximum of some time, not to the newest, so that what has been summed is nearly never scaled (as FlashAttention-4 does);
sums of rows are kept by thread until a list ends; and one barrier frees keys and values.
"""

from typing import NamedTuple

from cmir.lowering.skeletons.hopper import (  # hooks use what the skeleton does not
    across_layout,  # noqa: F401
    across_word,  # noqa: F401
    advance_stage,
    columns,  # noqa: F401
    ends_word,
    fence_async_shared,
    gl,
    gluon,
    line_bits_layout,
    line_ends,
    line_layout,
    line_word,  # noqa: F401
    lines,
    load_block,
    mbarrier,
    no_across_word,  # noqa: F401
    no_line_word,  # noqa: F401
    operand_layout,
    packed_layout,  # noqa: F401
    packed_lines,  # noqa: F401
    partition_barrier,
    reinterpreted,
    score_layout,
    select_across,  # noqa: F401
    select_lines,
    select_packed,  # noqa: F401
    store_block,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

TILE = gl.constexpr(128)
"""Rows and columns of a tile."""

HALF = gl.constexpr(64)
"""Rows of a consumer."""

LAG = gl.constexpr(8.0)
"""How far, in powers of two, a row's maximum may be above the score that its weights are relative to."""


class ForwardShared(NamedTuple):
    """Shared memory: tiles, what consumers write and nobody reads (`pin`), the next tile rows, and the barriers."""

    q: object
    k: object
    v: object
    out: object
    pin: object
    row: object
    q_full: object
    q_empty: object
    k_full: object
    v_full: object
    kv_empty: object
    row_full: object
    row_empty: object


class ForwardMask(NamedTuple):
    """What is visited and tested: see the parameters of `forward`."""

    table: object
    count: object
    index: object
    live: object
    order: object
    table_stride: object
    n_table: object
    width: object
    mask_batch: object
    mask_head: object


# hook: prepare_forward
@gluon.jit
def prepare_forward(table, first, n_table, N: gl.constexpr):
    """What the words of every tile need of the 64 rows from `first`."""
    position = lines(first, N)
    inside = position < n_table
    lo = line_ends(gl.load(table + position, mask=inside, other=0), N)
    hi = line_ends(gl.load(table + n_table + position, mask=inside, other=0), N)
    return lo, hi


# hook: words_forward
@gluon.jit
def words_forward(slots, table, first, start, n_table, live, N: gl.constexpr):
    """Which of the N columns from `start` are visible; `live` points to the live word of the tile."""
    return ends_word(slots[0], slots[1], start)


# hook: select_forward
@gluon.jit
def select_forward(score, words, N: gl.constexpr):
    """The score where the words say that it is visible, else -inf."""
    return select_lines(score, words, N)


# default hook: forward_place
@gluon.jit
def forward_place(work, tile_rows, batch_heads, section):
    """Order of tile rows of heads: (place in the tile order, head). `section` heads at a time, the heaviest tile rows
    of all of them first, so that their keys stay in the L2 cache."""
    of_section = section * tile_rows
    first = work // of_section * section
    together = gl.minimum(section, batch_heads - first)
    place = work % of_section
    return place // together, first + place % together


@gluon.jit
def mask_of(mask, head, heads):
    """The number of the mask of a head of the batch."""
    return (head // heads).to(gl.int64) * mask.mask_batch + (head % heads) * mask.mask_head


@gluon.jit
def announce(work, total, mask, shared, slot, phase, tile_rows, batch_heads, heads, section):
    """Tells the consumers of the tile row number `work`; past the last one, that there are no more: head -1."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    head = -1
    tile_row = 0
    partial = 0
    full = 0
    if work < total:
        place, head = forward_place(work, tile_rows, batch_heads, section)
        number = mask_of(mask, head, heads)
        tile_row = gl.load(mask.order + number * tile_rows + place)
        partial = gl.load(mask.count + 2 * (number * tile_rows + tile_row))
        full = gl.load(mask.count + 2 * (number * tile_rows + tile_row) + 1)
    one = gl.zeros([1], gl.int32, LAYOUT)
    mbarrier.wait(shared.row_empty.index(slot), phase)
    shared.row.index(4 * slot + 0).store(one + head)
    shared.row.index(4 * slot + 1).store(one + tile_row)
    shared.row.index(4 * slot + 2).store(one + partial)
    shared.row.index(4 * slot + 3).store(one + full)
    mbarrier.arrive(shared.row_full.index(slot), count=1)
    return head, tile_row, partial, full


@gluon.jit
def hear(shared, slot, phase):
    """What `announce` tells: (head, tile row, partial tiles, full tiles)."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    mbarrier.wait(shared.row_full.index(slot), phase)
    head = gl.max(shared.row.index(4 * slot + 0).load(LAYOUT), 0)
    tile_row = gl.max(shared.row.index(4 * slot + 1).load(LAYOUT), 0)
    partial = gl.max(shared.row.index(4 * slot + 2).load(LAYOUT), 0)
    full = gl.max(shared.row.index(4 * slot + 3).load(LAYOUT), 0)
    mbarrier.arrive(shared.row_empty.index(slot), count=1)
    return head, tile_row, partial, full


@gluon.jit
def listed(entry, partial, full, width):
    """Where the list has its entry number `entry`: partial tiles from the front, then full ones from the back."""
    place = gl.where(entry < partial, entry, width - full + (entry - partial))
    return gl.minimum(place, width - 1)


@gluon.jit
def load_pieces(descriptor, place, barrier, buffer, first, PIECES: gl.constexpr):
    """Loads a block of q or k, in pieces of the head dim, into the buffers from `first`."""
    WIDTH: gl.constexpr = buffer.shape[2]
    for piece in gl.static_range(PIECES):
        load_block(descriptor, [place[0], place[1], place[2], piece * WIDTH], barrier, buffer.index(first + piece))


@gluon.jit
def load_head(
    q_desc, k_desc, v_desc, mask, shared, head, tile_row, partial, full, stage, phase, q_phase,
    tile_rows, heads, group, STAGES: gl.constexpr, PIECES: gl.constexpr,
):  # fmt: skip
    """Loads what one tile row of one head takes: (stage, phase, q_phase).

    The keys of a step go before the values of the step before: in that order they are used, and their places become
    free together."""
    STEP: gl.constexpr = shared.k.shape[1]
    PARTS: gl.constexpr = TILE // STEP
    batch = head // heads
    head_q = head % heads
    head_kv = head_q // group
    index = mask.index + (mask_of(mask, head, heads) * tile_rows + tile_row) * mask.width
    some = partial + full > 0
    key = gl.load(index + listed(0, partial, full, mask.width), mask=some, other=0) * TILE
    for half in gl.static_range(2):
        mbarrier.wait(shared.q_empty.index(half), q_phase)
        place = (batch, head_q, tile_row * TILE + half * HALF)
        load_pieces(q_desc, place, shared.q_full.index(half), shared.q, half * PIECES, PIECES)
    mbarrier.wait(shared.kv_empty.index(stage), phase)
    load_pieces(k_desc, (batch, head_kv, key), shared.k_full.index(stage), shared.k, stage * PIECES, PIECES)
    for step in range(1, PARTS * (partial + full)):
        tile = gl.load(index + listed(step // PARTS, partial, full, mask.width))
        before = stage
        stage, phase = advance_stage(stage, phase, STAGES)
        mbarrier.wait(shared.kv_empty.index(stage), phase)
        next_key = tile * TILE + step % PARTS * STEP
        load_pieces(k_desc, (batch, head_kv, next_key), shared.k_full.index(stage), shared.k, stage * PIECES, PIECES)
        load_block(v_desc, [batch, head_kv, key, 0], shared.v_full.index(before), shared.v.index(before))
        key = next_key
    before = stage
    stage, phase = advance_stage(stage, phase, STAGES)
    mbarrier.wait(shared.kv_empty.index(stage), phase)
    load_block(v_desc, [batch, head_kv, key, 0], shared.v_full.index(before), shared.v.index(before))
    return stage, phase, q_phase ^ 1


@gluon.jit
def produce(
    q_desc, k_desc, v_desc, mask, shared, drawn, tile_rows, batch_heads, heads, group, section,
    STAGES: gl.constexpr, PIECES: gl.constexpr,
):  # fmt: skip
    """The producer warp. Tile rows are drawn by number: the first is the program's own, the others come from the
    counter `drawn`. Every program draws one number too many, so that the last of all draws is known: it sets the
    counter back to zero, for the next launch."""
    programs = gl.num_programs(0)
    total = tile_rows * batch_heads
    stage = 0
    phase = 1
    q_phase = 1
    slot = 0
    slot_phase = 1
    head, tile_row, partial, full = announce(
        gl.program_id(0), total, mask, shared, slot, slot_phase, tile_rows, batch_heads, heads, section
    )
    while head >= 0:
        slot, slot_phase = advance_stage(slot, slot_phase, 2)
        ticket = gl.atomic_add(drawn, 1, sem="relaxed")
        if ticket == total - 1:
            gl.store(drawn, 0)
        next_head, next_row, next_partial, next_full = announce(
            programs + ticket, total, mask, shared, slot, slot_phase, tile_rows, batch_heads, heads, section
        )
        stage, phase, q_phase = load_head(
            q_desc, k_desc, v_desc, mask, shared, head, tile_row, partial, full, stage, phase, q_phase,
            tile_rows, heads, group, STAGES, PIECES,
        )  # fmt: skip
        head = next_head
        tile_row = next_row
        partial = next_partial
        full = next_full


@gluon.jit
def partial_words(slots, table, first, mask, line, step, partial, LIVE: gl.constexpr, STEP: gl.constexpr):
    """The words of a step over the partial tiles of the list number `line`; past the last one, of that."""
    PARTS: gl.constexpr = TILE // STEP
    step = gl.maximum(gl.minimum(step, PARTS * partial - 1), 0)
    entry = step // PARTS
    start = gl.load(mask.index + line * mask.width + entry, mask=partial > 0, other=0) * TILE + step % PARTS * STEP
    live = mask.live
    if LIVE:  # without partial tiles no live word is defined: their number is one of no slots
        live = gl.where(partial > 0, live + line * mask.width + entry, mask.count + 2 * line)
    return words_forward(slots, table, first, start, mask.n_table, live, STEP)


@gluon.jit
def softmax_step(score, peak, scale, MASKED: gl.constexpr):
    """Online softmax in base 2: (weights, new peak, factor of what was summed before).

    The peak of a row is the score that its weights are relative to, its maximum of some time. It follows the maximum
    where that is larger by LAG or more, so that weights stay below 2 ** LAG and nearly every factor is 1."""
    maximum = gl.maximum(peak, gl.max(score, 1) * scale)
    new_peak = gl.where(maximum - peak >= LAG, maximum, peak)
    safe = gl.where(new_peak == float("-inf"), 0.0, new_peak) if MASKED else new_peak
    weight = gl.exp2(score * scale - safe[:, None])
    return weight, new_peak, gl.exp2(peak - safe)


@gluon.jit
def sums_of_threads(weight):
    """Sums of the rows of [64, N], those of each thread by themselves: [64, 4]."""
    N: gl.constexpr = weight.shape[1]
    by_thread = gl.convert_layout(weight.reshape([HALF, N // 8, 4, 2]), line_bits_layout(N), assert_trivial=True)
    return gl.sum(gl.sum(by_thread, 3), 1)


@gluon.jit
def narrowed(weight, TYPE: gl.constexpr):
    """Weights [64, N] rounded to TYPE, two of them an int32: [64, N / 2]. As elements of 16 bits, compilers carry them
    through a loop one a register."""
    N: gl.constexpr = weight.shape[1]
    low, high = weight.reshape([HALF, N // 2, 2]).split()
    return gl.inline_asm_elementwise(
        "cvt.rn.bf16x2.f32 $0, $2, $1;" if gl.bfloat16 == TYPE else "cvt.rn.f16x2.f32 $0, $2, $1;",
        "=r,f,f",
        [low, high],
        dtype=gl.int32,
        is_pure=True,
        pack=1,
    )


@gluon.jit
def operand(pairs, TYPE: gl.constexpr, DV: gl.constexpr):
    """Narrowed weights as the left operand of a product with a [64, DV] accumulator."""
    N: gl.constexpr = 2 * pairs.shape[1]
    low, high = gl.inline_asm_elementwise(
        "mov.b32 {$0, $1}, $2;", "=h,=h,r", [pairs], dtype=(gl.int16, gl.int16), is_pure=True, pack=1
    )
    weight = gl.join(low.to(TYPE, bitcast=True), high.to(TYPE, bitcast=True)).reshape([HALF, N])
    return gl.convert_layout(weight, operand_layout(DV), assert_trivial=True)


@gluon.constexpr_function
def scaling(count):
    """PTX that multiplies `count` registers of an accumulator by the factors of their two rows, unless those are 1 in
    all threads of the warp; and its constraints: results in the place of the first operand, the factors by element."""
    upper, lower = 2 * count, 2 * count + 2
    lines = [
        ".reg .pred p, q;",
        f"setp.neu.f32 p, ${upper}, 0f3F800000;",
        f"setp.neu.f32 q, ${lower}, 0f3F800000;",
        "or.pred p, p, q;",
        "vote.sync.any.pred p, p, 0xffffffff;",
        "@!p bra.uni DONE;",
        *[f"mul.f32 ${k}, ${k}, ${lower if k % 4 >= 2 else upper};" for k in range(count)],
        "DONE:",
    ]
    return "{ " + " ".join(lines) + " }", ",".join(["=f"] * count + [str(k) for k in range(count)] + ["f"] * count)


@gluon.jit
def scaled(acc, factor):
    """acc [64, DV] times factor [64], which is nearly always 1."""
    DV: gl.constexpr = acc.shape[1]
    COUNT: gl.constexpr = min(DV // 2, 64)
    ASM: gl.constexpr = scaling(COUNT)
    factor = gl.convert_layout(factor, gl.SliceLayout(1, score_layout(DV)), assert_trivial=True)
    acc, factor = gl.broadcast(acc, factor[:, None])
    return gl.inline_asm_elementwise(ASM[0], ASM[1], [acc, factor], dtype=gl.float32, is_pure=True, pack=COUNT)


@gluon.jit
def begin_scores(shared, stage, WHO: gl.constexpr, PIECES: gl.constexpr):
    """Begins the product [HALF, STEP] of the consumer's queries and a step's keys."""
    STEP: gl.constexpr = shared.k.shape[1]
    score = gl.zeros([HALF, STEP], gl.float32, score_layout(STEP))
    for piece in gl.static_range(PIECES):
        query = shared.q.index(WHO * PIECES + piece)
        key = shared.k.index(stage * PIECES + piece).permute((1, 0))
        score = warpgroup_mma(query, key, score, use_acc=piece > 0, is_async=True)
    return score


@gluon.jit
def end_product(acc, left, weight, total, shared, stage, WHO: gl.constexpr):
    """Waits for the product with v: (acc, weights of the step, narrowed, their sums), and frees a place of the ring."""
    # The exponentials belong before the wait, while the product is in flight; a store and a barrier keep them there.
    shared.pin.store(total.to(gl.bfloat16))
    partition_barrier()
    acc, left, weight, total = warpgroup_mma_wait(0, deps=(acc, left, weight, total))
    mbarrier.arrive(shared.kv_empty.index(stage), count=1)
    return acc, narrowed(weight, shared.v.dtype), total


@gluon.jit
def forward_step(
    shared, mask, slots, table, line, step, partial, words, first,
    weight, acc, peak, total, stage, phase, scale,
    WHO: gl.constexpr, MASKED: gl.constexpr, LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr,
):  # fmt: skip
    """Scores of a step and the product with v of the step before, whose narrowed `weight` waits; MASKED: it is in a
    partial tile with the visible `words`, and those of the next one are made."""
    STEP: gl.constexpr = shared.k.shape[1]
    DV: gl.constexpr = shared.v.shape[2]
    before = stage
    phase_before = phase
    stage, phase = advance_stage(stage, phase, STAGES)
    mbarrier.wait(shared.k_full.index(stage), phase)
    score = begin_scores(shared, stage, WHO, PIECES)
    mbarrier.wait(shared.v_full.index(before), phase_before)
    left = operand(weight, shared.v.dtype, DV)
    acc = warpgroup_mma(left, shared.v.index(before), acc, is_async=True)
    new_words = words
    if MASKED:
        new_words = partial_words(slots, table, first, mask, line, step + 1, partial, LIVE, STEP)
    score = warpgroup_mma_wait(1, deps=(score,))
    if MASKED:
        score = select_forward(score, words, STEP)
    new_weight, peak, shrink = softmax_step(score, peak, scale, MASKED)
    by_thread = gl.convert_layout(shrink, gl.SliceLayout(1, line_layout(STEP)), assert_trivial=True)
    total = total * by_thread[:, None] + sums_of_threads(new_weight)
    acc, weight, total = end_product(acc, left, new_weight, total, shared, stage, WHO)
    return weight, scaled(acc, shrink), peak, total, new_words, stage, phase


# default hook: finish_rows
@gluon.jit
def finish_rows(acc, inverse):
    """The output [64, DV]: what is summed over the sum of weights, whose inverse [64, 1] is 0 where a row saw nothing.

    What is in a tile that is hidden from a row does not matter, not even where 0 times that is not 0."""
    return gl.where(inverse == 0.0, 0.0, acc * inverse)


@gluon.jit
def attend(
    o_desc, lse, mask, shared, head, tile_row, partial, full, stage, phase, q_phase,
    rows, tile_rows, heads, scale,
    WHO: gl.constexpr, LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr, OUT_IN_Q: gl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of 64 rows of one head: (stage, phase)."""
    STEP: gl.constexpr = shared.k.shape[1]
    PARTS: gl.constexpr = TILE // STEP
    DV: gl.constexpr = shared.v.shape[2]
    ROWS: gl.constexpr = gl.SliceLayout(1, score_layout(STEP))
    OUT_ROWS: gl.constexpr = gl.SliceLayout(1, score_layout(DV))
    number = mask_of(mask, head, heads)
    first = tile_row * TILE + WHO * HALF
    line = number * tile_rows + tile_row
    table = mask.table + number * mask.table_stride
    slots = prepare_forward(table, first, mask.n_table, STEP)

    # A full tile has nothing hidden, an empty list nothing to show.
    words = partial_words(slots, table, first, mask, line, 0, partial, LIVE, STEP)
    words = gl.where(partial > 0, words, gl.where(full > 0, -1, 0))
    new_words = partial_words(slots, table, first, mask, line, 1, partial, LIVE, STEP)

    mbarrier.wait(shared.q_full.index(WHO), q_phase)
    mbarrier.wait(shared.k_full.index(stage), phase)
    score = begin_scores(shared, stage, WHO, PIECES)
    score = warpgroup_mma_wait(0, deps=(score,))
    mbarrier.arrive(shared.kv_empty.index(stage), count=1)
    peak = gl.full([HALF], float("-inf"), gl.float32, ROWS)
    weight, peak, _ = softmax_step(select_forward(score, words, STEP), peak, scale, True)
    total = sums_of_threads(weight)
    weight = narrowed(weight, shared.v.dtype)
    acc = gl.zeros([HALF, DV], gl.float32, score_layout(DV))
    for step in range(1, PARTS * partial):
        weight, acc, peak, total, new_words, stage, phase = forward_step(
            shared, mask, slots, table, line, step, partial, new_words, first,
            weight, acc, peak, total, stage, phase, scale, WHO, True, LIVE, STAGES, PIECES,
        )  # fmt: skip
    for step in range(gl.maximum(PARTS * partial, 1), PARTS * (partial + full)):
        weight, acc, peak, total, new_words, stage, phase = forward_step(
            shared, mask, slots, table, line, step, partial, new_words, first,
            weight, acc, peak, total, stage, phase, scale, WHO, False, LIVE, STAGES, PIECES,
        )  # fmt: skip
    if not OUT_IN_Q:
        mbarrier.arrive(shared.q_empty.index(WHO), count=1)
    mbarrier.wait(shared.v_full.index(stage), phase)
    left = operand(weight, shared.v.dtype, DV)
    acc = warpgroup_mma(left, shared.v.index(stage), acc, is_async=True)
    acc, left = warpgroup_mma_wait(0, deps=(acc, left))
    stage, phase = advance_stage(stage, phase, STAGES)

    total = gl.convert_layout(gl.sum(total, 1), ROWS, assert_trivial=True)
    hidden = total == 0.0
    log_sum = gl.where(hidden, float("-inf"), (peak + gl.log2(total)) * 0.6931471805599453)
    row = first + gl.arange(0, HALF, ROWS)
    gl.store(lse + head.to(gl.int64) * rows + row, log_sum, mask=row < rows)
    inverse = gl.convert_layout(gl.where(hidden, 0.0, 1.0 / total), OUT_ROWS, assert_trivial=True)[:, None]
    result = finish_rows(acc, inverse)
    leaving = shared.out.index(WHO * (shared.out.shape[0] - 1))
    tma.store_wait(0)
    if OUT_IN_Q:
        partition_barrier()  # all warps have done with the queries
    leaving.store(result.to(o_desc.dtype))
    fence_async_shared()
    store_block(o_desc, [head // heads, head % heads, first, 0], leaving)
    if OUT_IN_Q:
        tma.store_wait(0)
        partition_barrier()
        mbarrier.arrive(shared.q_empty.index(WHO), count=1)
    return stage, phase


@gluon.jit
def consume(
    o_desc, lse, mask, shared, rows, tile_rows, heads, scale,
    WHO: gl.constexpr, LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr, OUT_IN_Q: gl.constexpr,
):  # fmt: skip
    """A consumer warpgroup: the rows of the first half of every tile row, or of the second one."""
    stage = 0
    phase = 0
    q_phase = 0
    slot = 0
    slot_phase = 0
    head, tile_row, partial, full = hear(shared, slot, slot_phase)
    while head >= 0:
        stage, phase = attend(
            o_desc, lse, mask, shared, head, tile_row, partial, full, stage, phase, q_phase,
            rows, tile_rows, heads, scale, WHO, LIVE, STAGES, PIECES, OUT_IN_Q,
        )  # fmt: skip
        q_phase ^= 1
        slot, slot_phase = advance_stage(slot, slot_phase, 2)
        head, tile_row, partial, full = hear(shared, slot, slot_phase)
    tma.store_wait(0)


@gluon.jit(
    do_not_specialize=[
        "table_stride", "n_table", "width", "rows",
        "batch_heads", "heads", "group", "mask_batch", "mask_head", "section",
    ]
)  # fmt: skip
def forward(
    q_desc, k_desc, v_desc, o_desc, lse, drawn,
    table, count, index, live, order, table_stride, n_table, width,
    rows, batch_heads, heads, group, mask_batch, mask_head, section, scale,
    LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr, OUT_IN_Q: gl.constexpr,
):  # fmt: skip
    """out = softmax(q k^T) v over the visible pairs and lse, its natural log-sum-exp; `scale` includes log2(e).

    The TMA descriptors are those of [batch, heads, length, head dim] with blocks of one head: 64 rows of q and out, a
    step's of k and v; of q and k a piece of the head dim, of v and out the next power of two of it. `drawn` is a zero,
    and is one again afterwards. OUT_IN_Q: the output leaves from where the queries were, for want of shared memory.

    Grid: as many programs as fit at once, at most one for each tile row of each head. Four warps, and five more that
    the kernel adds.
    """
    WIDTH: gl.constexpr = q_desc.block_type.shape[3]
    DV: gl.constexpr = v_desc.block_type.shape[3]
    STEP: gl.constexpr = k_desc.block_type.shape[2]
    TYPE: gl.constexpr = q_desc.dtype
    PLAIN: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    BARRIER: gl.constexpr = mbarrier.MBarrierLayout()
    OUT: gl.constexpr = gl.NVMMASharedLayout.get_default_for([HALF, DV], TYPE)
    q = gl.allocate_shared_memory(
        TYPE, [2 * PIECES, HALF, WIDTH], gl.NVMMASharedLayout.get_default_for([HALF, WIDTH], TYPE)
    )
    if OUT_IN_Q:  # the first block of the first consumer's queries, the last one of the second's
        out = reinterpreted(q, TYPE, [2 * PIECES * WIDTH // DV, HALF, DV], OUT)
    else:
        out = gl.allocate_shared_memory(TYPE, [2, HALF, DV], OUT)
    KEYS_LAYOUT: gl.constexpr = gl.NVMMASharedLayout.get_default_for([STEP, WIDTH], TYPE)
    shared = ForwardShared(
        q,
        gl.allocate_shared_memory(TYPE, [STAGES * PIECES, STEP, WIDTH], KEYS_LAYOUT),
        gl.allocate_shared_memory(TYPE, [STAGES, STEP, DV], gl.NVMMASharedLayout.get_default_for([STEP, DV], TYPE)),
        out,
        gl.allocate_shared_memory(gl.bfloat16, [HALF, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])),
        gl.allocate_shared_memory(gl.int32, [8, 1], PLAIN),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
        gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER),
    )
    for k in gl.static_range(2):
        mbarrier.init(shared.q_full.index(k), count=PIECES)
        mbarrier.init(shared.q_empty.index(k), count=1)
        mbarrier.init(shared.row_full.index(k), count=1)
        mbarrier.init(shared.row_empty.index(k), count=2)
    for k in gl.static_range(STAGES):
        mbarrier.init(shared.k_full.index(k), count=PIECES)
        mbarrier.init(shared.v_full.index(k), count=1)
        mbarrier.init(shared.kv_empty.index(k), count=2)
    fence_async_shared()
    mask = ForwardMask(table, count, index, live, order, table_stride, n_table, width, mask_batch, mask_head)
    tile_rows = gl.cdiv(rows, TILE)
    gl.warp_specialize(
        [
            (consume, (o_desc, lse, mask, shared, rows, tile_rows, heads, scale, 0, LIVE, STAGES, PIECES, OUT_IN_Q)),
            (consume, (o_desc, lse, mask, shared, rows, tile_rows, heads, scale, 1, LIVE, STAGES, PIECES, OUT_IN_Q)),
            (
                produce,
                (
                    q_desc, k_desc, v_desc, mask, shared, drawn, tile_rows, batch_heads, heads, group, section,
                    STAGES, PIECES,
                ),
            ),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
