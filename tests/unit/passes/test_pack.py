"""`--pack`: the packed tables, kernels and facts mean the mask of every sequence, run alone, in its place."""

import numpy as np
import pytest
from differential import check_table, spec_in, tables_in
from packing import Env, draw_sequences, pack_env, places
from test_zoo import zoo
from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.facts import facts_of, first_violation
from cmir.analysis.sampling import Draw
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.maskspec import SpecOp
from cmir.interp.masks import packed_mask, table_intervals
from cmir.interp.preprocess import kernel_mask, slot_table, status_word
from cmir.tools.driver import parse, run_pipeline

DRAWS = 30
TO_TABLES = ["lower-intervals", "transpose"]

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
}


def check_pack(
    surface: SpecOp, packed: ModuleOp, kernels: ModuleOp | None, sequences: list[Env], tail: tuple[int, int]
) -> None:
    """Tables, kernels and facts of the packed form, on one pack."""
    env = pack_env(facts_of(surface), sequences, tail)
    want = packed_mask(surface, places(sequences), int(env["rows"]), int(env["cols"]))
    where = f"where {sequences}, tail {tail}:\n{packed}"
    for table in tables_in(packed):
        check_table(table, Draw(env), want, where)
    assert first_violation(facts_of(spec_in(packed)), env) is None, where
    if kernels is None:
        return
    preprocess = next(op for op in kernels.walk() if isinstance(op, PreprocessOp))
    assert status_word(preprocess, env) == 0, where
    for table in tables_in(packed):
        axis = table.axis.data
        if preprocess.slots_of(axis) is not None:
            intervals = table_intervals(table, env)
            slots = slot_table(preprocess, axis, env)
            assert np.array_equal(slots[: len(intervals)], intervals) and not slots[len(intervals) :].any(), where
    for kernel in (op for op in kernels.walk() if isinstance(op, KernelOp)):
        assert np.array_equal(kernel_mask(kernel, preprocess, env, (4, 3)), want), f"{kernel.role.data} {where}"


def lower(text: str) -> tuple[SpecOp, ModuleOp, ModuleOp]:
    """The surface spec, and its packed form as tables and as kernels."""
    surface, module = parse(text, "surface.mlir"), parse(text, "surface.mlir")
    run_pipeline(module, TO_TABLES)
    counts = {t.axis.data: t.slots for t in tables_in(module)}
    run_pipeline(module, ["pack"])
    assert {t.axis.data: t.slots for t in tables_in(module)} == counts
    printed = str(module)
    packed = parse(printed, "packed.mlir")
    assert str(packed) == printed
    run_pipeline(module, ["choose-axis", "lower-descriptor", "lower-attention"])
    return spec_in(surface), packed, module


@pytest.mark.parametrize("name", CASES)
def test_a_pack_is_its_sequences(name: str):
    surface, packed, kernels = lower(CASES[name])
    rng = np.random.default_rng(7)
    facts = facts_of(surface)
    empty = 0
    for _ in range(DRAWS):
        count = int(rng.integers(0, 6))
        sequences = draw_sequences(facts, rng, count, 9)
        assert len(sequences) == count
        empty += sum(int(env["rows"]) == 0 for env in sequences)
        tail = tuple(map(int, rng.integers(0, 6, 2) * rng.integers(0, 2, 2)))
        check_pack(surface, packed, kernels, sequences, (tail[0], tail[1]))
    assert empty or name in ("clear", "hstu_meta")
