"""The IR that `MaskSpec` builds: its text, its locations, and the masks it means beside those of the zoo's texts."""

import re
import subprocess
import sys
from math import isqrt
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import cmir
from cmir.analysis.facts import facts_of
from cmir.analysis.sampling import sample
from cmir.dialects.maskspec import SpecOp
from cmir.errors import SourceLocation, locate
from cmir.interp.domain import TableValue
from cmir.interp.masks import spec_mask
from cmir.tools.driver import parse

ZOO = Path(cmir.__file__).parent / "zoo"


def causal() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("causal")
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.i)
    return spec


def hstu() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("hstu")
    i, j, rows, cols = spec.i, spec.j, spec.rows, spec.cols
    history = spec.scalar("history")
    start = spec.table("start", per="row")
    spec.assume(rows == cols, history >= 0, history <= rows)
    spec.assume(history <= start[i], start[i] <= i, rows=(history, rows))
    spec.assume(start.nondecreasing(over=(history, rows)))
    spec.region("history", 0, history, visible=(j <= i))
    spec.region("candidate", history, rows, visible=(j < history) | ((start[i] <= j) & (j <= i)))
    return spec


def clear(r: int = 16, h: int = 64, w: int = 64, t: int = 512) -> cmir.MaskSpec:
    spec = cmir.MaskSpec("clear")
    radius, height, width = spec.static("radius", r), spec.static("height", h), spec.static("width", w)
    text = spec.static("text", t)
    half = spec.constants("half", [isqrt(r * r - d * d - 1) for d in range(1 - r, r)], base=1 - r)
    spec.assume((spec.rows == text + height * width) & (spec.cols == spec.rows))
    p, q = spec.i - text, spec.j - text
    y_i, x_i, y_j, x_j = p // width, p % width, q // width, q % width
    near = spec.exists(1 - radius, radius - 1, lambda d: (y_j == y_i + d) & (abs(x_j - x_i) <= half[d]))
    spec.region("text", 0, text, visible=True)
    spec.region("image", text, spec.rows, visible=(spec.j < text) | ((spec.j >= text) & near))
    return spec


def shared_prompt() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("shared_prompt")
    i, j = spec.i, spec.j
    pack, prompt, segment = (spec.table(name, per="row") for name in ("pack", "prompt", "segment"))
    spec.assume(spec.rows == spec.cols, pack[i] >= 0, pack[i] <= segment[i], segment[i] <= i)
    spec.assume(pack[i] <= prompt[i], prompt[i] == prompt[pack[i]])
    spec.assume(pack.nondecreasing(), prompt.nondecreasing(), segment.nondecreasing())
    in_prompt = (pack[i] <= j) & (j < prompt[i])
    spec.region("all", 0, spec.rows, visible=(j <= i) & (in_prompt | (segment[i] <= j)))
    return spec


def hstu_meta() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("hstu_meta")
    i, j, rows = spec.i, spec.j, spec.rows
    context, window, full = spec.static("context", 6), spec.static("window", 128), spec.static("full", 32)
    history = spec.scalar("history")
    spec.assume(history >= 0, context + history <= rows, rows == spec.cols)
    end, shift = context + history, spec.where(context > 0, 1, 0)
    last = history + shift
    id_j = spec.where(j < context, 0, spec.minimum(j - context, history) + shift)

    def rule(id_i: cmir.frontend.spec.Term) -> cmir.frontend.spec.Term:
        d = id_i - id_j
        return (i == j) | ((d > 0) & ((window == 0) | (d <= window) | ((full > 0) & (id_i >= last - full))))

    spec.region("context", 0, context, visible=j < end)
    spec.region("history", context, end, visible=rule(i - context + shift))
    spec.region("target", end, rows, visible=rule(last))
    return spec


def only_spec(module: ModuleOp) -> SpecOp:
    (spec,) = module.body.block.ops
    assert isinstance(spec, SpecOp)
    return spec


def zoo(name: str, **statics: int) -> SpecOp:
    text = (ZOO / f"{name}.mlir").read_text()
    for static, value in statics.items():
        text = re.sub(rf"%{static}: index = \d+", f"%{static}: index = {value}", text)
    return only_spec(parse(text, f"{name}.mlir"))


def test_text_of_hstu():
    assert str(hstu()) == dedent("""\
        maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
          maskspec.assume rows == cols
          maskspec.assume 0 <= history
          maskspec.assume history <= rows
          maskspec.assume for i in [history, rows) : history <= start[i]
          maskspec.assume for i in [history, rows) : start[i] <= i
          maskspec.nondecreasing start over [history, rows)
          maskspec.region @history rows [0, history) (%i, %j) {
            %0 = arith.cmpi sle, %j, %i : index
            maskspec.visible %0
          }
          maskspec.region @candidate rows [history, rows) (%i_1, %j_1) {
            %1 = arith.cmpi slt, %j_1, %history : index
            %start_i = maskspec.lookup %start[%i_1]
            %2 = arith.cmpi sle, %start_i, %j_1 : index
            %3 = arith.cmpi sle, %j_1, %i_1 : index
            %4 = arith.andi %2, %3 : i1
            %5 = arith.ori %1, %4 : i1
            maskspec.visible %5
          }
        }
        """)


def test_text_of_clear():
    """What does not read `d` stands before the `exists`; local variables name the values; entries count from 0."""
    assert str(clear(r=3, h=5, w=7, t=4)) == dedent("""\
        maskspec.spec @clear(%radius: index = 3, %height: index = 5, %width: index = 7, %text: index = 4) {
          maskspec.constants @half [2, 2, 2, 2, 2]
          maskspec.assume rows == text + height * width and cols == rows
          maskspec.region @text rows [0, text) (%i, %j) {
            %true = arith.constant true
            maskspec.visible %true
          }
          maskspec.region @image rows [text, rows) (%i_1, %j_1) {
            %0 = arith.cmpi slt, %j_1, %text : index
            %1 = arith.cmpi sle, %text, %j_1 : index
            %q = arith.subi %j_1, %text : index
            %y_j = arith.floordivsi %q, %width : index
            %p = arith.subi %i_1, %text : index
            %y_i = arith.floordivsi %p, %width : index
            %x_j = maskspec.mod %q, %width
            %x_i = maskspec.mod %p, %width
            %2 = arith.subi %x_j, %x_i : index
            %c0 = arith.constant 0 : index
            %3 = arith.subi %c0, %2 : index
            %4 = arith.maxsi %2, %3 : index
            %c2 = arith.constant 2 : index
            %near = maskspec.exists %d in [1 - radius, radius - 1] {
              %5 = arith.addi %y_i, %d : index
              %6 = arith.cmpi eq, %y_j, %5 : index
              %7 = arith.addi %d, %c2 : index
              %half_at = maskspec.lookup @half[%7]
              %8 = arith.cmpi sle, %4, %half_at : index
              %9 = arith.andi %6, %8 : i1
              maskspec.yield %9
            }
            %10 = arith.andi %1, %near : i1
            %11 = arith.ori %0, %10 : i1
            maskspec.visible %11
          }
        }
        """)


SMALL = {"radius": 3, "height": 5, "width": 7, "text": 4}
CASES = {
    "causal": (causal(), zoo("causal")),
    "hstu": (hstu(), zoo("hstu")),
    "clear": (clear(3, 5, 7, 4), zoo("clear", **SMALL)),
    "shared_prompt": (shared_prompt(), zoo("shared_prompt")),
    "hstu_meta": (hstu_meta(), zoo("hstu_meta")),
}


@pytest.mark.parametrize("name", CASES)
def test_same_mask_as_the_text(name: str):
    python, text = CASES[name]
    spec = python.build()
    for facts in (facts_of(spec), facts_of(text)):
        draws = sample(facts, count=12, seed=1, size=30)
        assert draws
        for draw in draws:
            assert np.array_equal(spec_mask(spec, draw.env), spec_mask(text, draw.env))


@pytest.mark.parametrize("name", CASES)
def test_same_facts_as_the_text(name: str):
    python, text = CASES[name]
    theirs = facts_of(text)
    ours = facts_of(python.build())
    assert {f.text for f in ours.facts} == {f.text for f in theirs.facts}
    assert ours.monotone == theirs.monotone


@pytest.mark.parametrize("name", CASES)
def test_text_parses_to_the_same_ir(name: str):
    spec = CASES[name][0]
    assert parse(str(spec)).is_structurally_equivalent(spec.module())


def test_building_twice_gives_the_same_text():
    spec = hstu()
    assert str(spec) == str(spec)
    assert str(hstu()) == str(spec)


def test_every_op_knows_its_line():
    spec = cmir.MaskSpec("s")
    line = sys._getframe().f_lineno - 1
    low = spec.table("low", per="col")
    spec.assume(
        low[spec.j] >= 0,
        low.nondecreasing(),
    )
    early = spec.i < 3
    spec.region("all", 0, spec.rows, visible=early | (low[spec.j] <= spec.i))
    places = {op.name: locate(op) for op in spec.module().walk()}
    at = {name: (place.line - line, place.column) for name, place in places.items() if place}
    assert {place.file for place in places.values() if place} == {__file__}
    assert at == {
        "builtin.module": (0, 12),
        "maskspec.spec": (0, 12),
        "maskspec.assume": (4, 9),
        "maskspec.nondecreasing": (5, 9),
        "maskspec.region": (8, 5),
        "arith.constant": (7, 13),
        "maskspec.lookup": (8, 55),
        "arith.cmpi": (8, 55),
        "arith.ori": (8, 46),
        "maskspec.visible": (8, 46),
    }


def test_compiler_errors_point_at_python():
    from cmir.passes.check_regions import CheckRegions
    from cmir.tools.driver import run_pipeline

    spec = cmir.MaskSpec("twice")
    line = sys._getframe().f_lineno + 1
    spec.region("a", 0, 5, visible=True)
    spec.region("b", 4, 8, visible=True)
    with pytest.raises(cmir.SpecError, match="overlap") as caught:
        run_pipeline(spec.module(), [CheckRegions()])
    assert isinstance(caught.value.location, SourceLocation)
    assert caught.value.location.file == __file__
    assert caught.value.location.line in (line, line + 1)


def test_facts_of_every_kind():
    spec = cmir.MaskSpec("facts")
    i, j = spec.i, spec.j
    n = spec.scalar("n")
    by_row, by_col, free = (
        spec.table("by_row", per="row"),
        spec.table("by_col", per="col"),
        spec.table("free", per="free"),
    )
    spec.assume(~(n == 3), n != 4, (n < 0) | (n >= 8))
    spec.assume(by_row[i] <= i, by_row.nondecreasing())
    spec.assume(by_col[j] >= 0, cols=(n, spec.cols - 1))
    spec.assume(lambda k: free[k] <= free[k + 1], lambda n: free[n] >= n, entries=(0, 7))
    spec.assume(free[0] == 0, free.nondecreasing(over=(0, 8)))
    spec.assume(spec.exists(0, 3, lambda d: free[d] == n))
    assert [line.strip().removeprefix("maskspec.") for line in str(spec).splitlines()[1:-1]] == [
        "assume not n == 3",
        "assume not n == 4",
        "assume n < 0 or 8 <= n",
        "assume by_row[i] <= i",
        "nondecreasing by_row",
        "assume for j in [n, cols - 1) : 0 <= by_col[j]",
        "assume for k in [0, 7) : free[k] <= free[k + 1]",
        "assume for n_2 in [0, 7) : n_2 <= free[n_2]",
        "assume free[0] == 0",
        "nondecreasing free over [0, 8)",
        "assume exists d in [0, 3] : free[d] == n",
    ]
    assert parse(str(spec)).is_structurally_equivalent(spec.module())
    env = {
        "rows": 9,
        "cols": 9,
        "n": 8,
        "by_row": np.zeros(9, int),
        "by_col": np.zeros(9, int),
        "free": np.arange(9) * 4,
    }
    env = {k: TableValue(v) if isinstance(v, np.ndarray) else v for k, v in env.items()}
    from cmir.analysis.facts import first_violation

    assert first_violation(facts_of(spec.build()), env) is None


def test_an_entry_fact_beside_metadata_of_its_name():
    spec = cmir.MaskSpec("s")
    k, free = spec.scalar("k"), spec.table("free", per="free")
    spec.assume(lambda k_: free[k_] <= k, entries=(0, k))
    assert "assume for k_2 in [0, k) : free[k_2] <= k\n" in str(spec)


def test_a_slot_list():
    spec = cmir.MaskSpec("slots")
    i, j = spec.i, spec.j
    lo, hi = spec.table("lo", per="row", entries=3), spec.table("hi", per="row", entries=3)
    pair = spec.table("pair", per="free", entries=2)
    spec.assume(~spec.exists(0, 2, lambda t: hi[i, t] < lo[i, t]), lo.nondecreasing())
    spec.assume(lambda k: pair[k, 0] <= pair[k, 1], entries=(0, 4))
    spec.region("all", 0, spec.rows, visible=spec.exists(0, 2, lambda t: (lo[i, t] <= j) & (j < hi[i, t])))
    text = str(spec)
    assert "%lo: !maskspec.table<row x 3>" in text
    assert "maskspec.assume not (exists t in [0, 2] : hi[i, t] < lo[i, t])" in text
    assert "maskspec.assume for k in [0, 4) : pair[k, 0] <= pair[k, 1]" in text
    assert "%lo_i_t = maskspec.lookup %lo[%i, %t]" in text
    assert parse(text).is_structurally_equivalent(spec.module())
    mask = cmir.compile(spec)
    assert mask.slots["rows"] == 3
    metadata: dict[str, Any] = {"lo": [[0, 2, 4]] * 5, "hi": [[1, 3, 9]] * 5, "pair": [[0, 0]]}
    assert mask.dense(rows=5, cols=7, **metadata)[3].tolist() == [True, False, True, False, True, True, True]
    assert mask.intervals(rows=5, cols=7, **metadata)[:, :, 2].tolist() == [[0, 1], [2, 3], [4, 7]]
    for wrong, text in (
        ({"lo": [[0, 2]] * 5}, "a 2-D sequence: 5 lists, one per row, of 3 ints, got int64 of shape (5, 2)"),
        ({"pair": [0, 1]}, "a 2-D sequence: n lists (n >= 1) of 2 ints, got int64 of shape (2,)"),
    ):
        with pytest.raises(cmir.CmirError) as caught:
            mask.dense(rows=5, cols=7, **metadata | wrong)
        name = next(iter(wrong))
        assert str(caught.value) == f"metadatum {name!r} of mask 'slots': expected {text}"
    with pytest.raises(cmir.CmirError, match=r"break the fact 'lo\[i, 1\] <= hi\[i, 1\]' at row 4$"):
        mask.dense(rows=5, cols=7, **metadata | {"hi": [[1, 3, 9]] * 4 + [[1, 1, 9]]})
    with pytest.raises(cmir.CmirError, match=r"break the fact 'lo nondecreasing, number 2' at row 3$"):
        mask.dense(rows=5, cols=7, **metadata | {"lo": [[0, 2, 4]] * 4 + [[0, 2, 3]]})
    assert mask.dense(rows=0, cols=7, lo=[], hi=[], pair=[[0, 0]]).shape == (0, 7)


def test_alignment_is_named():
    spec = cmir.MaskSpec("cached")
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.position("bottom_right"))
    assert "maskspec.position bottom_right %i" in str(spec)
    assert parse(str(spec)).is_structurally_equivalent(spec.module())
    mask = cmir.compile(spec)
    assert mask.slots == {"rows": 1, "cols": 1}
    assert mask.dense(rows=2, cols=5).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert mask.dense(rows=5, cols=2).astype(int).tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]

    other = cmir.MaskSpec("square")
    assert other.position("top_left") is other.i
    other.region("all", 0, other.rows, visible=other.j <= other.position("top_left"))
    assert cmir.compile(other).dense(rows=2, cols=5).astype(int).tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    with pytest.raises(ValueError, match="an alignment is 'top_left' or 'bottom_right', got 'right'"):
        spec.position("right")  # pyright: ignore[reportArgumentType]


def test_facts_of_segments():
    spec = cmir.MaskSpec("segments")
    i, j = spec.i, spec.j
    seg, length = spec.table("seg", per="free"), spec.table("length", per="free")
    lo = spec.table("lo", per="row", entries=2)
    spec.assume(seg.contiguous(), seg.contiguous(over=(0, spec.rows)))
    spec.assume(spec.forall(0, 1, lambda t: lo[i, t] <= i))
    spec.region("all", 0, spec.rows, visible=(seg[i] == seg[j]) & (j < length[seg[i]]))
    text = str(spec)
    assert "maskspec.contiguous seg\n" in text and "maskspec.contiguous seg over [0, rows)" in text
    assert "maskspec.assume forall t in [0, 1] : lo[i, t] <= i\n" in text
    assert parse(text).is_structurally_equivalent(spec.module())
    assert repr(seg.contiguous()) == "seg contiguous"
    with pytest.raises(cmir.SpecError, match=r"the range of this fact is its own: seg\.contiguous\(over="):
        spec.assume(seg.contiguous(), rows=(0, 3))
    mask = cmir.compile(spec)
    assert mask.slots["rows"] == 1
    good: dict[str, Any] = {"seg": [4, 4, 5, 6, 6], "length": [3, 0, 5, 2, 2, 5, 9], "lo": [[0, 0]] * 5}
    want = [[0] * 5, [0] * 5, [0, 0, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    assert mask.dense(rows=5, **{**good, "length": [9, 9, 9, 9, 0, 9, 9]}).astype(int).tolist() == want
    with pytest.raises(cmir.CmirError, match=r"break the fact 'seg contiguous, no id left out' at entry 2$"):
        mask.dense(rows=5, **{**good, "seg": [4, 4, 5, 7, 7]})
    with pytest.raises(cmir.CmirError, match=r"break the fact 'seg contiguous' at entry 0$"):
        mask.dense(rows=5, **{**good, "seg": [5, 4, 5, 6, 6]})


def test_subterms_are_shared():
    spec = cmir.MaskSpec("s")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=((i // 8) == (j // 8)) | ((i // 8) + 1 == (j // 8)))
    text = str(spec)
    assert text.count("floordivsi") == 2
    assert text.count("arith.constant 8") == 1


def test_nested_exists():
    spec = cmir.MaskSpec("s")
    i, j = spec.i, spec.j
    near = spec.exists(-1, 1, lambda d: spec.exists(0, 1, lambda e: (j == i + d * e) & (i % 3 == e)))
    again = spec.exists(-1, 1, lambda d: j == i + 2 * d)
    spec.region("all", 0, spec.rows, visible=near | again)
    text = str(spec)
    assert text.index("maskspec.mod") < text.index("maskspec.exists")  # reads neither index
    env = {"rows": 7, "cols": 8}
    want = [
        [
            any(y == x + d * e and x % 3 == e for d in (-1, 0, 1) for e in (0, 1)) or y - x in (-2, 0, 2)
            for y in range(8)
        ]
        for x in range(7)
    ]
    assert np.array_equal(spec_mask(spec.build(), env), want)
    assert parse(text).is_structurally_equivalent(spec.module())


def test_a_bound_index_never_captures_metadata():
    spec = cmir.MaskSpec("s")
    some = spec.exists(0, 2, lambda d: spec.j == d + 1)
    d = spec.scalar("d")
    spec.region("all", 0, spec.rows, visible=some & (spec.j != d + 1))
    assert np.array_equal(spec_mask(spec.build(), {"rows": 1, "cols": 5, "d": 1}), [[False, True, False, True, False]])


def test_long_chains():
    spec = cmir.MaskSpec("s")
    rule = spec.j == 0
    for k in range(1, 1100):
        rule = rule | (spec.j == 2 * k)
    spec.region("all", 0, spec.rows, visible=rule)
    assert str(spec).count("arith.ori") == 1099


def test_numpy_integers_are_integers():
    spec = cmir.MaskSpec("s")
    three: Any = np.int64(3)
    assert repr((three * spec.i + three < spec.j) & (three == spec.j)) == "3 * i + 3 < j and j == 3"
    assert repr(spec.static("n", three + 1) // three) == "n // 3"


def test_needs_no_heavy_library():
    script = "import sys, cmir; cmir.MaskSpec; sys.exit(bool({'torch', 'triton', 'z3', 'numpy'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ZOO.parents[1])
