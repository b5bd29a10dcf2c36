"""A pair explained: what is said of Regions, clauses and slots is what the oracle says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewing import scenes

import cmir
from cmir import zoo
from cmir.interp.domain import TableValue
from cmir.interp.masks import spec_mask, spec_part
from cmir.view.cell import explain
from cmir.view.load import lower

MASKS = ("hstu", "hstu_meta", "shared_prompt", "vertical_slash", "strided", "topk_blocks", "flamingo", "clear")


@pytest.mark.parametrize("name", MASKS)
def test_an_explanation_says_what_the_rule_says(name: str):
    rng = np.random.default_rng(3)
    for scene in scenes(name, 3):
        for _ in range(40):
            i, j = int(rng.integers(scene.rows)), int(rng.integers(scene.cols))
            said = explain(scene, i, j)
            assert said.visible == bool(scene.dense[i, j]) == any(c.holds for c in said.clauses)
            assert said.visible == any(s.holds for s in said.row_slots) == any(s.holds for s in said.col_slots)
            for clause in said.clauses:
                for literal in clause.literals:
                    # `3 <= 4` is Python too; `true` compares nothing.
                    assert literal.holds == eval(literal.numbers or literal.text.capitalize())


@pytest.mark.parametrize("cached", [False, True])
def test_the_text_of_an_explanation(cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CMIR_CACHE_DIR", str(tmp_path))
    for _ in range(1 + cached):  # as another process would find it, too
        monkeypatch.setattr("cmir.runtime.compiling._masks", {})
        mask = zoo.load("hstu")
    start = [0] * 7 + [7, 7, 9, 9, 9, 12, 12]
    said = mask.explain(9, 8, rows=14, history=7, start=start)
    file = str(zoo.path("hstu"))
    assert (
        str(said)
        == f"""\
@hstu, row 9, column 8: not visible
  Region @candidate, rows [history, rows) = [7, 14)
    clause candidate.0 fails  ({file}:14)
      no   j < history  8 < 7
    clause candidate.1 fails  ({file}:16-17)
      no   start[i] <= j  9 <= 8
      yes  j <= i         8 <= 9
  columns that row 9 sees:
    slot 0  [0, 7)  = [0, history)  from candidate.0
    slot 1  [9, 10)  = [start[i], i + 1)  from candidate.1
  rows that see column 8:
    slot 0  [8, 9)  = [j, select(j < history, rows, first i in [history, rows) : j < start[i]))  \
from history.0, candidate.0, candidate.1"""
    )
    assert not said.visible and said.region == "candidate"
    assert mask.explain(9, 9, rows=14, history=7, start=start).visible


def test_a_row_of_no_region():
    spec = cmir.MaskSpec("some_rows")
    spec.region("first", 0, spec.minimum(2, spec.rows), visible=spec.j <= spec.i)
    said = cmir.compile(spec).explain(3, 1, rows=5)
    assert "no Region holds row 3: it sees nothing" in str(said)
    assert not said.visible and said.region is None and said.row_slots == ()


def test_a_pair_that_is_not_there():
    mask = zoo.load("causal")
    for i, j, message in (
        (5, 0, "row 5 of mask 'causal': expected an int from 0 to 4"),
        (0, -1, "column -1 of mask 'causal': expected an int from 0 to 4"),
        ("2", 0, "row '2' of mask 'causal': expected an int from 0 to 4"),
    ):
        with pytest.raises(cmir.MetadataError, match=f"^{message}$"):
            mask.explain(i, j, rows=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(cmir.MetadataError, match="it has no rows"):
        mask.explain(0, 0, rows=0, cols=3)
    with pytest.raises(cmir.MetadataError, match="row 4 of mask 'causal': expected an int from 0 to 3"):
        mask.explain(4, 0, rows=4, cu_seqlens=[0, 2, 4])
    with pytest.raises(cmir.CmirError, match="give cu_seqlens to the explain of the mask it was made from"):
        mask.packed.explain(0, 0, rows=4)


def test_fused_slots_say_where_they_went():
    mask = zoo.load("vertical_slash", verticals=2, slashes=1)
    said = mask.explain(5, 3, rows=8, vertical=[3, 3], slash=[2])
    assert [s.why for s in said.row_slots] == ["united with slot 1", "united with slot 2", "united with slots 0 and 1"]
    assert [s.holds for s in said.row_slots] == [False, False, True]
    # Its clauses and its forms are those of all that are one here.
    parts = [s.text for s in mask.explain(7, 0, rows=8, vertical=[0, 6], slash=[4]).row_slots]
    assert said.row_slots[2].text == " and ".join(parts) and len(parts) == 3
    origins = mask.explain(7, 0, rows=8, vertical=[0, 6], slash=[4]).row_slots
    assert [s.why for s in origins] == ["", "", ""]
    assert said.row_slots[2].origins == tuple(dict.fromkeys(o for s in origins for o in s.origins))


def test_pairs_of_a_pack():
    mask = zoo.load("hstu")
    pack = {
        "rows": 14,
        "cu_seqlens": [0, 5, 5, 12],
        "history": [2, 0, 3],
        "start": [0, 0, 2, 3, 3] + [0] * 3 + [3, 3, 5, 5, 0, 0],
    }
    dense = mask.dense(**pack)
    for i in range(14):
        for j in range(14):
            said = mask.explain(i, j, **pack)
            assert said.visible == dense[i, j]
            assert said.visible == any(s.holds for s in said.row_slots) == any(s.holds for s in said.col_slots)
    lines = str(mask.explain(8, 7, **pack)).splitlines()
    assert lines[0] == "row 8, column 7 of the pack is row 3, column 2 of sequence 2"
    assert lines[1] == "@hstu, row 3, column 2: visible"
    assert str(mask.explain(3, 6, **pack)) == (
        "@hstu, row 3, column 6: not visible\n"
        "  row 3 is of sequence 0 and column 6 is of sequence 2; only rows and columns of one sequence see each other"
    )
    assert "row 13 is padding and column 0 is of sequence 0" in str(mask.explain(13, 0, **pack))


def test_lengths_whose_whole_mask_is_too_large():
    mask = zoo.load("hstu")
    n = 1 << 20
    start = np.maximum(np.arange(n) // 1000 * 1000, 700_000)
    said = mask.explain(900_500, 900_100, rows=n, history=700_000, start=start)
    assert said.visible and "slot 1  [900000, 900501), holds column 900100" in str(said)
    assert not mask.explain(900_500, 899_999, rows=n, history=700_000, start=start).visible


def test_one_pair_of_a_mask_with_a_layout_is_that_of_the_whole():
    mask = cmir.compile(str(zoo.path("causal")), layout={"rows": cmir.layouts.ZigZag(of=2, rank=1)})
    dense = mask.dense(rows=4, cols=8)
    found = [[mask.explain(i, j, rows=4, cols=8).visible for j in range(8)] for i in range(4)]
    assert np.array_equal(found, dense)


@pytest.mark.parametrize("layout", ["", "zigzag", "striped"])
def test_a_part_of_a_mask_is_that_of_the_whole(layout: str):
    """Of a shard of an order of the tokens, too."""
    order: Any = {"zigzag": cmir.layouts.ZigZag(of=2, rank=1), "striped": cmir.layouts.Striped(of=2, rank=0)}.get(
        layout
    )
    mask = cmir.compile(str(zoo.path("causal")), layout=None if order is None else {"rows": order})
    env = {"rows": 12, "cols": 12 if order is None else 24}
    whole = spec_mask(mask.surface, env)
    rows, cols = np.array([11, 0, 4, 5, 6]), np.array([3, 11, 5])
    assert np.array_equal(spec_part(mask.surface, env, rows, cols), whole[rows[:, None], cols])
    assert spec_part(mask.surface, env, rows[:0], cols).shape == (0, 3)


def test_a_part_of_a_mask_with_regions_is_that_of_the_whole():
    start = TableValue(np.array([0] * 5 + [5, 5, 7, 7, 9, 9, 11]))
    env = {"rows": 12, "cols": 12, "history": 5, "start": start}
    surface = zoo.load("hstu").surface
    rows, cols = np.array([11, 0, 4, 5, 6]), np.array([3, 11, 5, 6])
    assert np.array_equal(spec_part(surface, env, rows, cols), spec_mask(surface, env)[rows[:, None], cols])


def test_a_large_mask_is_drawn_with_something_to_see():
    mask = lower(zoo.path("hstu").read_text(), "hstu.mlir")
    for seed in range(3):
        assert 0 < int(mask.metadata(2000, None, {}, seed).env["history"]) < 2000
