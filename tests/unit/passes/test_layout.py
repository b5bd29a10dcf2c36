"""The layout pass: the mask of tokens in another order is the mask of the tokens, rows and columns picked."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from differential import PASSES, changed, check_kernels, check_table, spec_in, tables_in
from xdsl.ir import Operation

from cmir import zoo
from cmir.analysis.facts import facts_of
from cmir.analysis.layouts import orders_of
from cmir.analysis.sampling import sample
from cmir.interp.domain import Value
from cmir.interp.masks import spec_mask
from cmir.tools.driver import parse, run_pipeline

Tokens = Callable[[int, Mapping[str, Value]], np.ndarray]


def patches(grid: Sequence[int], size: Sequence[int], after: int, n: int) -> np.ndarray:
    """The tokens of a patch order, by cutting the raster into boxes: no arithmetic on places."""
    image = np.arange(np.prod(grid)).reshape(grid) + after
    boxes = [image]
    for axis, (d, p) in enumerate(zip(grid, size, strict=True)):
        boxes = [part for box in boxes for part in np.split(box, [d // p * p], axis=axis)]
    out = [np.arange(after)]
    for box in boxes:
        corner = [[range(s, min(s + p, e)) for s in range(0, e, p)] for e, p in zip(box.shape, size, strict=True)]
        for cut in np.ndindex(*(len(c) for c in corner)):
            out.append(box[np.ix_(*(corner[axis][k] for axis, k in enumerate(cut)))].ravel())
    return np.concatenate([*out, np.arange(after + image.size, n)]).astype(np.int64)


def zigzag(of: int, rank: int | None, n: int) -> np.ndarray:
    """`n` tokens in all."""
    chunks = np.split(np.arange(n), 2 * of)
    shards = [np.concatenate([chunks[r], chunks[2 * of - 1 - r]]) for r in range(of)]
    return np.concatenate(shards) if rank is None else shards[rank]


def striped(of: int, rank: int | None, n: int) -> np.ndarray:
    shards = [np.arange(r, n, of) for r in range(of)]
    return np.concatenate(shards) if rank is None else shards[rank]


def read(table: np.ndarray, n: int) -> np.ndarray:
    """The first `n` entries; past the end, the last one."""
    return table[np.minimum(np.arange(n), len(table) - 1)] if len(table) else np.zeros(n, dtype=np.int64)


def with_layouts(text: str, *layouts: str) -> str:
    """The text with layouts put before its first Region."""
    head, region, tail = text.partition("  maskspec.region")
    return head + "".join(f"  maskspec.layout {layout}\n" for layout in layouts) + region + tail


def check_layout(text: str, layouts: Sequence[str], tokens: Mapping[str, Tokens], count: int = 6, size: int = 14):
    """Every stage means the mask of the spec without its layouts, its rows and columns picked by `tokens`.

    `tokens` gives for "rows" and "cols" a function of (length of the axis, draw) to the tokens there.
    """
    plain = spec_in(parse(text, "plain.mlir"))
    module = parse(with_layouts(text, *layouts), "layout.mlir")
    surface = spec_in(module).clone()
    run_pipeline(module, ["layout"])
    draws = sample(facts_of(spec_in(module)), count=count, seed=1, size=size)
    assert draws, "no metadata satisfy the facts"
    masks: list[np.ndarray] = []
    for draw in draws:
        picked = {a: tokens[a](int(draw.env[a]), draw.env) if a in tokens else None for a in ("rows", "cols")}
        share = {a: o.share for a, o in orders_of(surface.layouts).items()}
        own = {a: int(draw.env[a]) * share.get(a, 1) for a in ("rows", "cols")}
        mask = spec_mask(plain, {**draw.env, **own})
        mask = mask if picked["rows"] is None else mask[picked["rows"]]
        mask = mask if picked["cols"] is None else mask[:, picked["cols"]]
        assert np.array_equal(spec_mask(surface, draw.env), mask), "the oracle"
        masks.append(mask)
    before: list[Operation] = []
    for stage in (None, *PASSES):
        if stage is not None:
            run_pipeline(module, [stage])
        printed = str(module)
        assert str(parse(printed, "printed.mlir")) == printed, f"after {stage}"
        specs, tables = changed(module, before)
        for draw, mask in zip(draws, masks, strict=True):
            for spec in specs:
                assert np.array_equal(spec_mask(spec, draw.env), mask), f"after {stage}:\n{printed}"
            for table in tables:
                check_table(table, draw, mask, f"after {stage}:\n{printed}")
    slots = {t.axis.data: None if t.slots is None else t.slots.data for t in tables_in(module)}
    check_kernels(module, draws, masks, (4, 3))
    return slots


def text_of(name: str, **statics: int) -> str:
    text = zoo.path(name).read_text()
    for static, value in statics.items():
        text = re.sub(rf"%{static}: index = -?\d+", f"%{static}: index = {value}", text)
    return text


SQUARE = """maskspec.spec @square(
    %s: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>) {
"""
CAUSAL = (
    SQUARE
    + "  maskspec.assume rows == cols\n  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i\n  }\n}\n"
)
WINDOW = CAUSAL.replace("j <= i", "j <= i and i < j + 3")
# Two Regions that no layout respects, a table of each kind, facts of each kind.
TABLES = (
    SQUARE
    + """  maskspec.assume 0 <= s and s <= rows and rows == cols
  maskspec.assume for i in [s, rows) : s <= t[i] and t[i] <= i
  maskspec.nondecreasing t over [s, rows)
  maskspec.assume c[j] <= 2 * cols
  maskspec.region @head rows [0, s) (%i, %j) {
    %last = maskspec.rows
    %one = arith.constant 1 : index
    %k = arith.addi %i, %one : index
    %end = maskspec.lookup %c[%j]
    %a = arith.cmpi slt, %k, %end : index
    %b = arith.cmpi slt, %i, %last : index
    %v = arith.andi %a, %b : i1
    maskspec.visible %v
  }
  maskspec.region @tail rows [s, rows) {
    maskspec.clause t[i] <= j and j <= i
    maskspec.clause f[i] == j and i + 2 < cols
  }
}
"""
)
# Entries that hold several integers, and which of them is read does not move with the tokens.
LISTS = """maskspec.spec @lists(%lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>) {
  maskspec.assume rows == cols
  maskspec.assume lo[i, 0] <= hi[i, 0] and lo[i, 1] <= hi[i, 1]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %slot = maskspec.exists %t in [0, 1] {
      %a = maskspec.lookup %lo[%i, %t]
      %b = maskspec.lookup %hi[%i, %t]
      %p = arith.cmpi sle, %a, %j : index
      %q = arith.cmpi slt, %j, %b : index
      %r = arith.andi %p, %q : i1
      maskspec.yield %r
    }
    maskspec.visible %slot
  }
}
"""
# Where a row stands among the columns is said of the tokens: of all of them, where a shard holds a few.
ALIGNED = """maskspec.spec @aligned(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %p = maskspec.position bottom_right %i
    %near = maskspec.exists %d in [1, 1] {
      %q = maskspec.position bottom_right %i
      %x = arith.subi %q, %s : index
      %y = arith.cmpi sle, %x, %j : index
      maskspec.yield %y
    }
    %a = arith.cmpi sle, %j, %p : index
    %v = arith.andi %a, %near : i1
    maskspec.visible %v
  }
}
"""
ROWS_OF: dict[str, Tokens] = {
    "zigzag(of = 3, rank = 1)": lambda n, _: zigzag(3, 1, 3 * n),
    "striped(of = 3, rank = 2)": lambda n, _: striped(3, 2, 3 * n),
    "striped(of = 2)": lambda n, _: striped(2, None, n),
    "zigzag(of = 2)": lambda n, _: zigzag(2, None, n),
    "residue(of = 3)": lambda n, _: striped(3, None, n),
    # What is drawn is seldom a permutation, nor of the right length: it means what it says all the same.
    "table(name = order)": lambda n, env: read(env["order"].values, n),
}


@pytest.mark.parametrize("order", ROWS_OF)
@pytest.mark.parametrize("axes", ["rows", "cols", "rows, cols"])
@pytest.mark.parametrize(
    "text", [CAUSAL, WINDOW, TABLES, LISTS, ALIGNED], ids=["causal", "window", "tables", "lists", "aligned"]
)
def test_orders_of_rows_and_columns(text: str, axes: str, order: str):
    check_layout(text, [f"{axes} = {order}"], dict.fromkeys(axes.split(", "), ROWS_OF[order]))


@pytest.mark.parametrize("text", [CAUSAL, TABLES], ids=["causal", "tables"])
def test_rows_and_columns_of_different_ranks(text: str):
    layouts = ["rows = zigzag(of = 2, rank = 0)", "cols = zigzag(of = 2, rank = 1)"]
    check_layout(text, layouts, {"rows": lambda n, _: zigzag(2, 0, 2 * n), "cols": lambda n, _: zigzag(2, 1, 2 * n)})


INTERVALS = """maskspec.spec @intervals(%s: index, %lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>) {
  maskspec.assume for i in [s, rows) : 0 <= lo[i, 0] and hi[i, 0] <= lo[i, 1]
  maskspec.region @all rows [0, rows) {
    maskspec.clause lo[i, 0] <= j and j < hi[i, 0]
  }
}
"""


def test_a_fact_of_two_tables_of_which_one_is_drawn_first():
    check_layout(INTERVALS, ["rows = zigzag(of = 2, rank = 1)"], {"rows": lambda n, _: zigzag(2, 1, 2 * n)})


@pytest.mark.parametrize(
    ("grid", "size", "after"),
    [((4, 6), (2, 3), 2), ((3, 4), (3, 4), 0), ((3, 5), (2, 2), 1)],
)
@pytest.mark.parametrize("axes", ["rows, cols", "rows", "cols"])
def test_patches_of_clear(axes: str, grid: tuple[int, int], size: tuple[int, int], after: int):
    text = text_of("clear", radius=3, height=grid[0], width=grid[1], text=after)
    layout = f"{axes} = patch(grid = [height, width], size = [{size[0]}, {size[1]}], after = text)"
    check_layout(text, [layout], dict.fromkeys(axes.split(", "), lambda n, _: patches(grid, size, after, n)), count=2)


def test_patches_of_a_video():
    text = SQUARE + (
        "  maskspec.assume rows == cols and rows == 30\n  maskspec.region @all rows [0, rows) {\n"
        "    maskspec.clause j floordiv 12 <= i floordiv 12 and j mod 4 <= i mod 4 + 1\n  }\n}\n"
    )
    layout = "rows, cols = patch(grid = [2, 3, 4], size = [1, 2, 2], after = 1)"
    check_layout(
        text, [layout], dict.fromkeys(["rows", "cols"], lambda n, _: patches((2, 3, 4), (1, 2, 2), 1, n)), count=2
    )


def test_shards_stay_a_few_intervals():
    """A zig-zag or striped shard has the slots of its mask; a dilated window by residue has one."""
    assert check_layout(CAUSAL, ["rows = zigzag(of = 4, rank = 1)"], {"rows": lambda n, _: zigzag(4, 1, 4 * n)}) == {
        "rows": 1,
        "cols": 1,
    }
    assert check_layout(WINDOW, ["rows = striped(of = 4, rank = 3)"], {"rows": lambda n, _: striped(4, 3, 4 * n)}) == {
        "rows": 1,
        "cols": 1,
    }
    dilated = CAUSAL.replace("j <= i", "j <= i and i <= j + 7 and (i - j) mod 3 == 0")
    by_residue: dict[str, Tokens] = dict.fromkeys(["rows", "cols"], lambda n, _: striped(3, None, n))
    assert check_layout(dilated, ["rows, cols = residue(of = 3)"], by_residue) == {"rows": 1, "cols": 1}
