# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false, reportAssignmentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
"""What the Hopper kernels share: the part of Gluon they use, layouts of a warpgroup's registers, visibility words.

Every name of Gluon that its versions spell differently is bound here, and nowhere else.

A warpgroup owns 64 lines of a score matrix [64, N]: query rows in the forward pass, keys in the backward pass. Of a
line a thread holds the columns 8 i + 2 c + e, for all i < N / 8 and e < 2, where c = lane % 4. Nothing tests a pair by
comparing its position: the mask becomes *words* of one bit a pair first, and a select reads those. Three forms:

- *line words* [64, 4]: bit 2 i + e of word c of a line, the bits of one thread; made of the intervals of the lines.
- *packed words* [64, N / 32]: bit j % 32 of word j // 32 of a line; the preprocess kernel packs them like that.
- *across words* [2, N]: bit r % 32 of word r // 32 of a column says whether line r is visible; made of the intervals of
  the columns, or packed.
"""

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import (  # noqa: F401  the kernels take them from here
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# A barrier of the warps that run the caller: those of a partition only, in a specialised region.
partition_barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier

tma_load = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
tma_store = tma.async_store if hasattr(tma, "async_store") else tma.async_copy_shared_to_global


@builtin
def reinterpreted(buffer, dtype, shape, layout, _semantic=None):
    """Shared memory as a block of another type, shape and layout."""
    method = buffer.reinterpret if hasattr(buffer, "reinterpret") else buffer._reinterpret
    return method(dtype, shape, layout, _semantic=_semantic)


@builtin
def tma_reduce_add(descriptor, coordinates, source, _semantic=None):
    """Adds a block of shared memory to global memory: atomic by element, in no fixed order."""
    coordinates = _semantic._convert_to_ir_values(coordinates, require_i64=False)
    _semantic.builder.create_async_tma_reduce(
        ir.DESCRIPTOR_REDUCE_KIND.ADD, descriptor.handle, coordinates, source.handle
    )


@gluon.jit
def load_block(descriptor, coordinates, barrier, buffer):
    """Loads the descriptor's block at `coordinates` into `buffer` and tells `barrier`. What lies outside is zero."""
    mbarrier.expect(barrier, descriptor.block_type.nbytes)
    block = reinterpreted(buffer, descriptor.dtype, descriptor.block_type.shape, descriptor.layout)
    tma_load(descriptor, coordinates, barrier, block)


@gluon.jit
def store_block(descriptor, coordinates, buffer):
    """Stores `buffer` as the descriptor's block at `coordinates`. What lies outside is left out."""
    block = reinterpreted(buffer, descriptor.dtype, descriptor.block_type.shape, descriptor.layout)
    tma_store(descriptor, coordinates, block)


@gluon.jit
def add_block(descriptor, coordinates, buffer):
    """Adds `buffer`, fp32, to the descriptor's block at `coordinates`, likewise."""
    block = reinterpreted(buffer, descriptor.dtype, descriptor.block_type.shape, descriptor.layout)
    tma_reduce_add(descriptor, coordinates, block)


@gluon.jit
def advance_stage(stage, phase, STAGES: gl.constexpr):
    """The next buffer of a ring, and its phase."""
    stage += 1
    if stage == STAGES:
        stage = 0
        phase ^= 1
    return stage, phase


@gluon.constexpr_function
def score_layout(N):
    """Of a [64, N] accumulator."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])


@gluon.constexpr_function
def operand_layout(N):
    """Of a left operand in registers, of a product with a [64, N] accumulator; of 16-bit elements."""
    return gl.DotOperandLayout(0, score_layout(N), 2)


@gluon.constexpr_function
def doubled(first, shape, axis):
    """Bases of `axis`: first, 2 first, 4 first, ... below its length."""
    return [[step if k == axis else 0 for k in range(len(shape))] for step in steps(first, shape[axis])]


@gluon.constexpr_function
def steps(first, stop):
    """first, 2 first, 4 first, ... below stop."""
    return [first << k for k in range(32) if first << k < stop]


@gluon.constexpr_function
def line_bits_layout(N):
    """The accumulator as [64 lines, N / 8 i, 4 c, 2 e]."""
    shape = [64, N // 8, 4, 2]
    registers = [[0, 0, 0, 1], [8, 0, 0, 0], *doubled(1, shape, 1)]
    lanes = [[0, 0, 1, 0], [0, 0, 2, 0], [1, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0]]
    return gl.DistributedLinearLayout(registers, lanes, [[16, 0, 0, 0], [32, 0, 0, 0]], [], shape)


@gluon.constexpr_function
def packed_bits_layout(N):
    """The accumulator as [64 lines, N / 32 words, 4 i, 4 c, 2 e]."""
    shape = [64, N // 32, 4, 4, 2]
    registers = [[0, 0, 0, 0, 1], [8, 0, 0, 0, 0], *doubled(1, shape, 2), *doubled(1, shape, 1)]
    lanes = [[0, 0, 0, 1, 0], [0, 0, 0, 2, 0], [1, 0, 0, 0, 0], [2, 0, 0, 0, 0], [4, 0, 0, 0, 0]]
    return gl.DistributedLinearLayout(registers, lanes, [[16, 0, 0, 0, 0], [32, 0, 0, 0, 0]], [], shape)


@gluon.constexpr_function
def across_bits_layout(N):
    """The accumulator as [2 words, 32 lines, N]."""
    shape = [2, 32, N]
    registers = [[0, 0, 1], [0, 8, 0], *doubled(8, shape, 2)]
    lanes = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]
    return gl.DistributedLinearLayout(registers, lanes, [[0, 16, 0], [1, 0, 0]], [], shape)


@gluon.constexpr_function
def line_layout(N):
    """Of line words: each thread its own."""
    return gl.SliceLayout(1, gl.SliceLayout(3, line_bits_layout(N)))


@gluon.constexpr_function
def packed_layout(N):
    """Of packed words: each thread those of its lines."""
    return gl.SliceLayout(2, gl.SliceLayout(3, gl.SliceLayout(4, packed_bits_layout(N))))


@gluon.constexpr_function
def across_layout():
    """Of across words as they are made: each thread those of one column."""
    return gl.BlockedLayout([2, 1], [1, 32], [1, 4], [1, 0])


@gluon.jit
def lines(first, N: gl.constexpr):
    """The positions of the 64 lines from `first`, as endpoints of line words are loaded."""
    return first + gl.arange(0, 64, gl.SliceLayout(1, line_layout(N)))


@gluon.jit
def packed_lines(first, N: gl.constexpr):
    """The positions of the 64 lines from `first`, as packed words are loaded."""
    return first + gl.arange(0, 64, gl.SliceLayout(1, packed_layout(N)))


@gluon.jit
def columns(start, N: gl.constexpr):
    """The positions of the N columns from `start`, as endpoints of across words are loaded."""
    return start + gl.arange(0, N, gl.SliceLayout(0, across_layout()))


@gluon.jit
def bits_between(low, high):
    """A word with the bits from `low` up to `high` set; below 0 is 0, above 32 is 32."""
    return gl.inline_asm_elementwise(
        "{ .reg .b32 x, y; shl.b32 x, -1, $1; shl.b32 y, -1, $2; not.b32 y, y; and.b32 $0, x, y; }",
        "=r,r,r",
        [gl.maximum(low, 0), gl.maximum(high, 0)],
        dtype=gl.int32,
        is_pure=True,
        pack=1,
    )


@gluon.jit
def line_ends(bound, N: gl.constexpr):
    """How many of the columns that a thread has of all tiles lie below `bound`, which is as `lines` has it: [64, 4].

    They are 8 i + 2 c and the one after it, for all i: two of every eight. Negative where `bound` is."""
    own = bound[:, None] - 2 * gl.arange(0, 4, gl.SliceLayout(0, line_layout(N)))[None, :]
    return 2 * (own >> 3) + gl.minimum(own & 7, 2)


@gluon.jit
def ends_word(lo, hi, start):
    """Line words [64, 4] of the columns from `start`, for one interval a line, whose ends `line_ends` has counted."""
    return bits_between(lo - start // 4, hi - start // 4)


@gluon.jit
def line_word(lo, hi, start, N: gl.constexpr):
    """Line words [64, 4] of the columns from `start`, for one interval [lo, hi) a line; lo, hi as `lines` has them."""
    return ends_word(line_ends(lo, N), line_ends(hi, N), start)


@gluon.jit
def across_word(lo, hi, first):
    """Across words [2, N] of the lines from `first`, for one interval [lo, hi) a column, as `columns` has them."""
    line = first + 32 * gl.arange(0, 2, gl.SliceLayout(1, across_layout()))
    return bits_between(lo[None, :] - line[:, None], hi[None, :] - line[:, None])


@gluon.jit
def no_line_word(N: gl.constexpr):
    """Line words with nothing visible."""
    return gl.zeros([64, 4], gl.int32, line_layout(N))


@gluon.jit
def no_across_word(N: gl.constexpr):
    """Across words with nothing visible."""
    return gl.zeros([2, N], gl.int32, across_layout())


@gluon.jit
def select_bit(score, word, bit):
    """The score where `word` has a bit of `bit`, else -inf. In PTX: LLVM would pack the predicates first."""
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .b32 t; and.b32 t, $2, $3; setp.ne.u32 p, t, 0; selp.f32 $0, $1, 0fFF800000, p; }",
        "=f,f,r,r",
        [score, word, bit],
        dtype=gl.float32,
        is_pure=True,
        pack=1,
    )


@gluon.jit
def select_lines(score, words, N: gl.constexpr):
    """The score [64, N] where the line words have a bit, else -inf."""
    L: gl.constexpr = line_bits_layout(N)
    i = gl.arange(0, N // 8, gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, L))))
    e = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, L))))
    place = 2 * i[None, :, None, None] + e[None, None, None, :]
    word, bit = gl.broadcast(words[:, None, :, None], gl.full([1, N // 8, 1, 2], 1, gl.int32, L) << place)
    word = gl.convert_layout(word.reshape([64, N]), score_layout(N), assert_trivial=True)
    bit = gl.convert_layout(bit.reshape([64, N]), score_layout(N), assert_trivial=True)
    return select_bit(score, word, bit)


@gluon.jit
def select_packed(score, words, N: gl.constexpr):
    """The score [64, N] where the packed words have a bit, else -inf."""
    L: gl.constexpr = packed_bits_layout(N)
    i = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, gl.SliceLayout(4, L)))))
    c = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(4, L)))))
    e = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, L)))))
    own = words[:, :, None, None, None] >> (2 * c[None, None, None, :, None])
    place = 8 * i[None, None, :, None, None] + e[None, None, None, None, :]
    word, bit = gl.broadcast(own, gl.full([1, 1, 4, 1, 2], 1, gl.int32, L) << place)
    word = gl.convert_layout(word.reshape([64, N]), score_layout(N), assert_trivial=True)
    bit = gl.convert_layout(bit.reshape([64, N]), score_layout(N), assert_trivial=True)
    return select_bit(score, word, bit)


@gluon.jit
def select_across(score, words, N: gl.constexpr):
    """The score [64, N] where the across words have a bit, else -inf. The words pass through shared memory."""
    L: gl.constexpr = across_bits_layout(N)
    words = gl.convert_layout(words, gl.SliceLayout(1, L))
    line = gl.arange(0, 32, gl.SliceLayout(0, gl.SliceLayout(2, L)))
    word, bit = gl.broadcast(words[:, None, :], gl.full([1, 32, 1], 1, gl.int32, L) << line[None, :, None])
    word = gl.convert_layout(word.reshape([64, N]), score_layout(N), assert_trivial=True)
    bit = gl.convert_layout(bit.reshape([64, N]), score_layout(N), assert_trivial=True)
    return select_bit(score, word, bit)
