"""`--pack`: the packed tables, kernels and facts mean the mask of every sequence, run alone, in its place."""

import pytest
from packing import check_packs
from test_zoo import zoo

DRAWS = 30

BOTTOM_RIGHT = """
maskspec.spec @bottom_right() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i + cols - rows
  }
}
"""

WINDOW = """
maskspec.spec @window(%w: index, %sink: index) {
  maskspec.assume 0 <= w and 0 <= sink
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w <= j and j <= i + cols - rows
    maskspec.clause j < sink and j <= i
  }
}
"""

EVICT = """
maskspec.spec @evict(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}
"""

# A free table is shared; a table per row is read at other rows; guards from scalars; a span under a condition.
MIXED = """
maskspec.spec @mixed(%cut: index, %limit: !maskspec.table<free>, %start: !maskspec.table<row>) {
  maskspec.assume 0 <= cut and start[0] <= 3
  maskspec.nondecreasing start
  maskspec.region @low rows [cut - 2, cut) {
    maskspec.clause j < limit[i]
  }
  maskspec.region @high rows [cut, rows + 3) {
    maskspec.clause start[i - 1] <= j and j <= i
    maskspec.clause cols - 2 <= j and cut <= 4
  }
}
"""

FULL = """
maskspec.spec @full() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause true
  }
}
"""

NOTHING = """
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}
"""

# Lists of intervals per row, and lists in a table that all sequences share.
SLOT_LIST = """
maskspec.spec @slot_list(
    %lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>, %cut: !maskspec.table<free x 2>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause lo[i, 0] <= j and j < hi[i, 0]
    maskspec.clause lo[i, 1] <= j and j < hi[i, 1]
    maskspec.clause cut[i + 1, 0] <= j and j < cut[0, 1]
  }
}
"""

# Every sequence has a divisor of its own; facts divide by it too.
CHUNKED = """
maskspec.spec @chunked(%chunk: index, %t: !maskspec.table<row>) {
  maskspec.assume 1 <= chunk
  maskspec.assume 0 <= t[i] and t[i] <= i floordiv chunk
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv chunk == i floordiv chunk and j mod chunk <= 2
    maskspec.clause j <= t[i]
  }
}
"""

# Unbounded by row and by column.
STRIDE = """
maskspec.spec @stride(%shift: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j + shift) mod 3 == 0
  }
}
"""

# Unbounded by column: a residual there.
RESIDUAL = """
maskspec.spec @residual(%start: !maskspec.table<row>, %w: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i + w
  }
}
"""

# A fact that relates the entries of a free table to its sequence: no two sequences share it.
RELATED = """
maskspec.spec @related(%keys: index, %limit: !maskspec.table<free>) {
  maskspec.assume 0 <= keys
  maskspec.assume for e in [0, keys) : 0 <= limit[e] and limit[e] <= rows
  maskspec.nondecreasing limit over [0, keys)
  maskspec.region @all rows [0, rows) {
    maskspec.clause limit[j] <= i and j < keys
  }
}
"""

CASES = {
    "causal": zoo("causal", {}),
    "hstu": zoo("hstu", {}),
    "shared_prompt": zoo("shared_prompt", {}),
    "hstu_meta": zoo("hstu_meta", {"context": 2, "window": 3, "full": 2}),
    "clear": zoo("clear", {"radius": 2, "height": 2, "width": 3, "text": 1}),
    "bottom_right": BOTTOM_RIGHT,
    "window": WINDOW,
    "evict": EVICT,
    "mixed": MIXED,
    "full": FULL,
    "nothing": NOTHING,
    "residual": RESIDUAL,
    "slot_list": SLOT_LIST,
    "chunked": CHUNKED,
    "stride": STRIDE,
    "related": RELATED,
}


@pytest.mark.parametrize("name", CASES)
def test_a_pack_is_its_sequences(name: str):
    empty = check_packs(CASES[name], DRAWS, shared=name != "related")
    assert empty or name in ("clear", "hstu_meta")
