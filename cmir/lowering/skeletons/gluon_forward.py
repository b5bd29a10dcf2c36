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
seen nothing yet its peak is the lowest finite number, so that no -inf - -inf is ever formed: hidden scores weigh 0, and
the first visible one weighs too much.

A consumer takes as long as its instructions do one after another, so a step has few of them. Weights are relative to a
row's *peak*, the maximum of its first step. Later steps take no maximum: only where weights become large does the peak
follow, and what has been summed is scaled (FlashAttention-4 scales as rarely, but takes every maximum). Sums of rows
are kept by thread until a list ends; and one barrier frees keys and values.
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

TOLD = gl.constexpr(8)
"""Room for what `announce` tells of a tile row."""

LIMIT = gl.constexpr(1024.0)
"""What the sum of a thread's weights of a row stays below, in a step after the first. Larger ones would fit; but where
one key outweighs the others, its weight is rounded to 8 bits, and the sum that it is divided by is not: relative to
that key itself it is 1, and exact."""

LOWEST = gl.constexpr(-3.4028234663852886e38)
"""The peak of a row that has seen nothing yet, the lowest finite number."""


class ForwardShared(NamedTuple):
    """Shared memory: tiles, the next tile rows, and the barriers."""

    q: object
    k: object
    v: object
    out: object
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
    number = mask_of(mask, 0, heads)
    if work < total:
        place, head = forward_place(work, tile_rows, batch_heads, section)
        number = mask_of(mask, head, heads)
        tile_row = gl.load(mask.order + number * tile_rows + place)
        partial = gl.load(mask.count + 2 * (number * tile_rows + tile_row))
        full = gl.load(mask.count + 2 * (number * tile_rows + tile_row) + 1)
    told = (head, tile_row, partial, full, head // heads, head % heads, number.to(gl.int32))
    mbarrier.wait(shared.row_empty.index(slot), phase)
    for k in gl.static_range(len(told)):
        shared.row.index(TOLD * slot + k).store(gl.zeros([1], gl.int32, LAYOUT) + told[k])
    mbarrier.arrive(shared.row_full.index(slot), count=1)
    return head, tile_row, partial, full


@gluon.jit
def heard(shared, slot, k):
    """What `announce` tells as number `k`."""
    return gl.max(shared.row.index(TOLD * slot + k).load(gl.BlockedLayout([1], [32], [4], [0])), 0)


@gluon.jit
def hear(shared, slot, phase):
    """What `announce` tells: (head of all, tile row, partial tiles, full tiles, sequence, head of it, its mask)."""
    mbarrier.wait(shared.row_full.index(slot), phase)
    head, tile_row, partial = heard(shared, slot, 0), heard(shared, slot, 1), heard(shared, slot, 2)
    full, batch, head_q = heard(shared, slot, 3), heard(shared, slot, 4), heard(shared, slot, 5)
    number = heard(shared, slot, 6)
    mbarrier.arrive(shared.row_empty.index(slot), count=1)
    return head, tile_row, partial, full, batch, head_q, number


@gluon.jit
def listed(entry, partial, full, width):
    """Where the list has what is visited as number `entry`: partial tiles from the last to the first, then full ones.

    In the last partial tile of a row, often that of the diagonal, every line sees something: so no later step is the
    first one of a line."""
    place = gl.where(entry < partial, partial - 1 - entry, width - full + (entry - partial))
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
    """The words of a step over the partial tiles of the list number `line`, from the last; past the first, of that."""
    PARTS: gl.constexpr = TILE // STEP
    step = gl.maximum(gl.minimum(step, PARTS * partial - 1), 0)
    entry = gl.maximum(partial - 1 - step // PARTS, 0)
    start = gl.load(mask.index + line * mask.width + entry, mask=partial > 0, other=0) * TILE + step % PARTS * STEP
    live = mask.live
    if LIVE:  # without partial tiles no live word is defined: their number is one of no slots
        live = gl.where(partial > 0, live + line * mask.width + entry, mask.count + 2 * line)
    return words_forward(slots, table, first, start, mask.n_table, live, STEP)


@gluon.jit
def first_weights(score, scale):
    """Of the scores [64, N] of a list's first step: (weights, peaks of their rows [64, 4] by thread)."""
    OWN: gl.constexpr = line_layout(score.shape[1])
    peak = gl.maximum(gl.max(score, 1) * scale, LOWEST)
    weight = gl.exp2(score * scale - peak[:, None])
    peak = gl.convert_layout(peak, gl.SliceLayout(1, OWN), assert_trivial=True)
    peak, _ = gl.broadcast(peak[:, None], gl.zeros([HALF, 4], gl.float32, OWN))
    return weight, peak


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


@gluon.jit
def of_pairs(own, N: gl.constexpr):
    """What threads have of their rows, [64, 4], for each pair of their elements of [64, N]: [64, N / 2]."""
    L: gl.constexpr = gl.SliceLayout(3, line_bits_layout(N))
    own = gl.convert_layout(own, gl.SliceLayout(1, L), assert_trivial=True)
    wide, _ = gl.broadcast(own[:, None, :], gl.zeros([HALF, N // 8, 4], own.dtype, L))
    return wide.reshape([HALF, N // 2])


@gluon.jit
def of_elements(own, N: gl.constexpr):
    """The same for each element: [64, N]."""
    wide = of_pairs(own, N)
    return gl.convert_layout(gl.join(wide, wide).reshape([HALF, N]), score_layout(N), assert_trivial=True)


@gluon.jit
def of_threads(wide):
    """What is of the first pair of a thread's elements, of [64, N / 2]: [64, 4]."""
    N: gl.constexpr = 2 * wide.shape[1]
    own = wide.reshape([HALF, N // 8, 4])
    for _ in gl.static_range((N // 8).bit_length() - 1):
        own, _rest = own.reshape([HALF, 2, own.shape[1] // 2, 4]).permute((0, 2, 3, 1)).split()
    return gl.convert_layout(own.reshape([HALF, 4]), line_layout(N), assert_trivial=True)


@gluon.constexpr_function
def raising(count, narrow):
    """PTX that weighs a thread's `count` pairs of scores anew, if the sum of some thread of its warp has reached LIMIT;
    and its constraints. Rows of which no thread has keep their peaks, and every bit of their weights and sums.

    Pairs are of the upper row and of the lower one in turn. Operands: weights, peaks and sums, which are results; the
    scores, the first of each pair and the second; the scale."""
    weight, peak, total, first, second, scale = (
        [f"${count * operand + k}" for k in range(count)] for operand in range(6)
    )
    lines = [
        ".reg .pred upper, lower, some; .reg .f32 x, y, sum; .reg .b32 quad, reached;",
        f"setp.geu.f32 upper, {total[0]}, {LIMIT.value};",
        f"setp.geu.f32 lower, {total[1]}, {LIMIT.value};",
        "or.pred some, upper, lower;",
        "vote.sync.any.pred some, some, 0xffffffff;",
        "@!some bra.uni DONE;",
        "mov.u32 quad, %laneid;",
        "and.b32 quad, quad, 28;",
    ]
    for row, own in enumerate(("upper", "lower")):
        pairs = range(row, count, 2)
        lines += [f"max.f32 x, {first[row]}, {second[row]};"]
        lines += [f"max.f32 x, x, {score[k]};" for k in pairs[1:] for score in (first, second)]
        for lane in (1, 2):
            lines += [f"shfl.sync.bfly.b32 y, x, {lane}, 0x1f, 0xffffffff;", "max.f32 x, x, y;"]
        lines += [f"mul.f32 x, x, {scale[0]};"]
        # A row is of the four threads of a quad: all of them raise its peak, or none.
        lines += [f"vote.sync.ballot.b32 reached, {own}, 0xffffffff;", "shr.b32 reached, reached, quad;"]
        lines += ["and.b32 reached, reached, 15;", f"setp.ne.b32 {own}, reached, 0;"]
        lines += [f"@{own} max.f32 {peak[row]}, {peak[row]}, x;", "mov.f32 sum, 0.0;"]
        for k in pairs:
            for x, score in (("x", first[k]), ("y", second[k])):
                lines += [f"neg.f32 {x}, {peak[row]};", f"fma.rn.f32 {x}, {score}, {scale[0]}, {x};"]
                lines += [f"ex2.approx.ftz.f32 {x}, {x};", f"add.f32 sum, sum, {x};"]
            lines += [f"cvt.rn.{narrow}x2.f32 {weight[k]}, y, x;"]
        lines += [f"@{own} mov.f32 {total[row]}, sum;"]
    lines += ["DONE:"]
    kinds = ["=r"] * count + ["=f"] * (2 * count) + ["f"] * (3 * count) + [str(k) for k in range(3 * count)]
    return "{ " + " ".join(lines) + " }", ",".join(kinds)


@gluon.jit
def next_weights(score, peak, scale, TYPE: gl.constexpr):
    """Of the scores [64, N] of a later step: (weights, narrowed; their sums and new peaks, [64, 4] by thread).

    Weights are relative to peaks of the steps before, so no maximum is waited for. Where a thread's sum has reached
    LIMIT, and so a weight may have, its warp takes the maxima and weighs anew: a row that has seen nothing until now
    reaches it."""
    N: gl.constexpr = score.shape[1]
    ASM: gl.constexpr = raising(N // 4, "bf16" if gl.bfloat16 == TYPE else "f16")
    weight = gl.exp2(score * scale - of_elements(peak, N))
    sums = sums_of_threads(weight)
    first, second = score.reshape([HALF, N // 2, 2]).split()
    peaks = gl.convert_layout(of_pairs(peak, N), first.type.layout, assert_trivial=True)
    sums = gl.convert_layout(of_pairs(sums, N), first.type.layout, assert_trivial=True)
    pairs, peaks, sums = gl.inline_asm_elementwise(
        ASM[0],
        ASM[1],
        [first, second, scale, narrowed(weight, TYPE), peaks, sums],
        dtype=(gl.int32, gl.float32, gl.float32),
        is_pure=False,
        pack=N // 4,
    )
    return pairs, of_threads(sums), of_threads(peaks)


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
    """acc [64, DV] times factor [64, 4], by thread, which is nearly always 1."""
    DV: gl.constexpr = acc.shape[1]
    COUNT: gl.constexpr = min(DV // 2, 64)
    ASM: gl.constexpr = scaling(COUNT)
    factor = of_elements(factor, DV)
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
    weight, sums, new_peak = next_weights(score, peak, scale, shared.v.dtype)
    shrink = gl.exp2(peak - new_peak)
    total = total * shrink + sums
    acc, left, weight, total = warpgroup_mma_wait(0, deps=(acc, left, weight, total))
    partition_barrier()  # all warps have read the keys and values
    mbarrier.arrive(shared.kv_empty.index(stage), count=1)
    return weight, scaled(acc, shrink), new_peak, total, new_words, stage, phase


@gluon.jit
def log2_of(x):
    """log2 of a sum of weights, which is no denormal: to 2^-22 of it, and near 1 to 2^-22."""
    return gl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.constexpr_function
def clearing(count):
    """PTX that makes zeros of the `count` registers of an accumulator whose row's factor is 0, unless no thread of the
    warp has such a row; and its constraints, as those of `scaling`."""
    upper, lower = 2 * count, 2 * count + 2
    lines = [
        ".reg .pred p, q, r;",
        f"setp.eq.f32 p, ${upper}, 0f00000000;",
        f"setp.eq.f32 q, ${lower}, 0f00000000;",
        "or.pred r, p, q;",
        "vote.sync.any.pred r, r, 0xffffffff;",
        "@!r bra.uni DONE;",
        *[f"@{'q' if k % 4 >= 2 else 'p'} mov.f32 ${k}, 0f00000000;" for k in range(count)],
        "DONE:",
    ]
    return "{ " + " ".join(lines) + " }", scaling(count)[1]


# default hook: finish_rows
@gluon.jit
def finish_rows(acc, inverse):
    """The output [64, DV]: what is summed over the sum of weights, whose inverse [64, 1] is 0 where a row saw nothing.

    What is in a tile that is hidden from a row does not matter, not even where 0 times that is not 0."""
    COUNT: gl.constexpr = min(acc.shape[1] // 2, 64)
    ASM: gl.constexpr = clearing(COUNT)
    acc, inverse = gl.broadcast(acc, inverse)
    acc = gl.inline_asm_elementwise(ASM[0], ASM[1], [acc, inverse], dtype=gl.float32, is_pure=True, pack=COUNT)
    return acc * inverse


@gluon.jit
def attend(
    o_desc, lse, mask, shared, head, tile_row, partial, full, batch, head_q, number, stage, phase, q_phase,
    rows, tile_rows, scale,
    WHO: gl.constexpr, LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr, OUT_IN_Q: gl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of 64 rows of one head: (stage, phase)."""
    STEP: gl.constexpr = shared.k.shape[1]
    PARTS: gl.constexpr = TILE // STEP
    DV: gl.constexpr = shared.v.shape[2]
    ROWS: gl.constexpr = gl.SliceLayout(1, score_layout(STEP))
    OUT_ROWS: gl.constexpr = gl.SliceLayout(1, score_layout(DV))
    number = number.to(gl.int64)
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
    partition_barrier()
    mbarrier.arrive(shared.kv_empty.index(stage), count=1)
    weight, peak = first_weights(select_forward(score, words, STEP), scale)
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
    peak = gl.convert_layout(gl.max(peak, 1), ROWS, assert_trivial=True)
    hidden = total == 0.0
    log_sum = gl.where(hidden, float("-inf"), (peak + log2_of(total)) * 0.6931471805599453)
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
    store_block(o_desc, [batch, head_q, first, 0], leaving)
    if OUT_IN_Q:
        tma.store_wait(0)
        partition_barrier()
        mbarrier.arrive(shared.q_empty.index(WHO), count=1)
    return stage, phase


@gluon.jit
def consume(
    o_desc, lse, mask, shared, rows, tile_rows, scale,
    WHO: gl.constexpr, LIVE: gl.constexpr, STAGES: gl.constexpr, PIECES: gl.constexpr, OUT_IN_Q: gl.constexpr,
):  # fmt: skip
    """A consumer warpgroup: the rows of the first half of every tile row, or of the second one."""
    stage = 0
    phase = 0
    q_phase = 0
    slot = 0
    slot_phase = 0
    head, tile_row, partial, full, batch, head_q, number = hear(shared, slot, slot_phase)
    while head >= 0:
        stage, phase = attend(
            o_desc, lse, mask, shared, head, tile_row, partial, full, batch, head_q, number, stage, phase, q_phase,
            rows, tile_rows, scale, WHO, LIVE, STAGES, PIECES, OUT_IN_Q,
        )  # fmt: skip
        q_phase ^= 1
        slot, slot_phase = advance_stage(slot, slot_phase, 2)
        head, tile_row, partial, full, batch, head_q, number = hear(shared, slot, slot_phase)
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
        gl.allocate_shared_memory(gl.int32, [2 * TOLD, 1], PLAIN),
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
            (consume, (o_desc, lse, mask, shared, rows, tile_rows, scale, 0, LIVE, STAGES, PIECES, OUT_IN_Q)),
            (consume, (o_desc, lse, mask, shared, rows, tile_rows, scale, 1, LIVE, STAGES, PIECES, OUT_IN_Q)),
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
