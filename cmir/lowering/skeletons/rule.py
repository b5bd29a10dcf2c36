# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportAssignmentType=false
"""What the preprocess kernels know of a mask: its metadata, its slots, its rule of a pair, and its facts.

The functions below a `# hook:` line are the mask; the ones here are the causal mask, without facts. META stands for
the mask's metadata. What a fact found is a *status word*, (number of the broken fact) << 32 | index, and the smallest
one counts.
"""

import triton
import triton.language as tl

NO_BREAK: tl.constexpr = tl.constexpr(0x7FFFFFFFFFFFFFFF)
"""Status of a program that found no broken fact: larger than any status word."""

OVERFLOW: tl.constexpr = tl.constexpr(0x7FFFFFFE)
"""In place of a fact's number in a status word: a list of tiles was too short."""

EIGHTH: tl.constexpr = tl.constexpr(8)
"""Columns that a thread asks its rows about at once, which make one byte of a word of bits."""


@triton.jit
def wide(value):
    """As int64, in which rules are computed: with int32 metadata and constants nothing wraps."""
    return tl.full([], 0, tl.int64) + value


@triton.jit
def narrow(value):
    """The nearest int32: with what lies strictly between the least and the greatest, it compares as the value does."""
    if value.dtype == tl.int64:
        value = tl.minimum(tl.maximum(value, -2147483648), 2147483647).to(tl.int32)
    return value


# hook: saturate
@triton.jit
def saturate(value):
    """The nearest int64 with which no sum of the rule wraps; narrower metadata have none too large."""
    if value.dtype == tl.int64:
        value = tl.minimum(tl.maximum(value, -2305843009213693952), 2305843009213693952)
    return wide(value)


@triton.jit
def scalar_entry(value, stride, POINTER: tl.constexpr, z):
    """The scalar metadatum of mask z."""
    return tl.load(value + z.to(tl.int64) * stride) if POINTER else value


@triton.jit
def table_entry(table, stride, index, z):
    """The entries `index` of mask z's table."""
    return tl.load(table + z.to(tl.int64) * stride + index)


@triton.jit
def nearest_entry(table, stride, index, length, z):
    """The same for an index that may lie outside [0, length): the nearest entry; 0 where there is none."""
    inside = tl.maximum(tl.minimum(index, length - 1), 0)
    return tl.load(table + z.to(tl.int64) * stride + inside, mask=inside < length, other=0)


@triton.jit
def floor_div(a, k):
    """a // k rounded down, for k > 0: the language's division, which on a GPU rounds toward zero."""
    return tl.where(a >= 0, a // k, -((k - 1 - a) // k))


@triton.jit
def floor_mod(a, k):
    """The remainder of `floor_div`: from 0 to k - 1."""
    return a - floor_div(a, k) * k


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


# hook: pair_rows
@triton.jit
def pair_rows(i, z, rows, cols, META):
    """What `pair_visible` needs of rows i and computes of no column: a tuple, to be computed once for many columns."""
    return (i,)


# hook: pair_visible
@triton.jit
def pair_visible(own, i, j, z, rows, cols, META):
    """Whether rows i, of which `own` is `pair_rows`, see columns j: of a shape that broadcasts to that of both."""
    return j <= i


@triton.jit
def eight(j, cols):
    """The columns from j on, [8, ...]: the last one in place of those that are not there."""
    return tl.minimum(j + tl.arange(0, EIGHTH)[:, None, None], cols - 1)


@triton.jit
def packed(see):
    """The bits that eight columns make: [1, ...] int32 of [8, ...] or what broadcasts to it."""
    return tl.sum(see.to(tl.int32) << tl.arange(0, EIGHTH)[:, None, None], axis=0, keep_dims=True)


# hook: byte_visible
@triton.jit
def byte_visible(own, i, j, z, rows, cols, META):
    """Whether rows i, of which `own` is `pair_rows`, see columns j to j + 7, in bits 0 to 7 of an int32: of a shape
    that broadcasts to that of both, [1, ...]. Of bits above these, and of columns that are not there, it says nothing.

    j is a multiple of 8 and below cols.
    """
    see = pair_visible(
        own,
        i,
        eight(j, cols),
        z,
        rows,
        cols,
        META,
    )
    return packed(see)


# hook: tile_rows
@triton.jit
def tile_rows(i, z, rows, cols, META):
    """What `tiles_visible` needs of rows i, [M]: a tuple."""
    return tl.min(i), tl.max(i)


# hook: tiles_visible
@triton.jit
def tiles_visible(own, j, z, rows, cols, META):
    """Whether some row of a tile, of which `own` is `tile_rows`, may see some column of j, [N, tiles], and whether some
    may not see some: [tiles] each.

    Both may be true where they need not be; a row of a tile is false only where it is so of all its pairs.
    """
    low, high = own
    return tl.min(j, axis=0) <= high, tl.max(j, axis=0) > low


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
