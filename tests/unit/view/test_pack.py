"""A pack, looked at: all sequences in their places, or one of them alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewing import lowered

import cmir
from cmir import zoo
from cmir.view.load import lower_spec
from cmir.view.pack import Pack
from cmir.view.scene import Interval
from cmir.view.text import drawing

STARTS = [0, 0, 2, 3, 3, 0, 0, 0, 3, 3, 5, 5, 0, 0]
PACK: dict[str, Any] = {"cu_seqlens": [0, 5, 5, 12], "history": [2, 0, 3], "start": STARTS}
CROSS: dict[str, Any] = {"cu_seqlens": [0, 2, 5], "cu_seqlens_k": [0, 4, 6]}


def packed(
    mask: cmir.CompiledMask, rows: int | None, cols: int | None, sequence: int | None = None, **given: Any
) -> Any:
    given = dict(given)
    ends = given.pop("cu_seqlens"), given.pop("cu_seqlens_k", None)
    return lower_spec(mask.surface).pack(rows, cols, *ends, given, sequence)


@pytest.mark.parametrize(
    ("name", "rows", "cols", "given"),
    [("hstu", 14, None, PACK), ("full", 5, 7, CROSS), ("causal_bottom_right", 6, 6, CROSS)],
)
def test_a_pack_is_that_of_the_mask(name: str, rows: int, cols: int | None, given: dict[str, Any]):
    mask = zoo.load(name)
    scene = packed(mask, rows, cols, **given)
    assert isinstance(scene, Pack)
    lengths = {"rows": rows, "cols": rows if cols is None else cols}
    want = mask.dense(**lengths, **given)
    np.testing.assert_array_equal(scene.dense, want)
    for axis in ("rows", "cols"):
        np.testing.assert_array_equal(scene.slots(axis)[0] >= 0, want)
        painted = np.zeros_like(want if axis == "rows" else want.T)
        for line, found in zip(painted, scene.intervals(axis), strict=True):
            for interval in found:
                line[interval.lo : interval.hi] = True
        np.testing.assert_array_equal(painted if axis == "rows" else painted.T, want)
        # Those of the packed tables themselves.
        ends = mask.intervals(axis, **lengths, **given)
        for k, found in enumerate(scene.intervals(axis)):
            assert sorted((x.lo, x.hi) for x in found) == sorted((a, b) for a, b in ends[:, :, k].tolist() if a < b)


def test_lengths_are_those_of_the_sequences_unless_they_are_given():
    mask = zoo.load("full")
    scene = packed(mask, None, None, **CROSS)
    assert (scene.rows, scene.cols) == (5, 6)
    scene = packed(mask, None, None, cu_seqlens=[0, 3, 4])
    assert (scene.rows, scene.cols) == (4, 4)
    assert [(name, lo, hi) for name, lo, hi in scene.sections()] == [("sequence 0", 0, 3), ("sequence 1", 3, 4)]


def test_one_sequence_of_a_pack_is_the_mask_of_that_one():
    mask = zoo.load("hstu")
    scene = packed(mask, 14, None, 2, **PACK)
    assert not isinstance(scene, Pack)
    np.testing.assert_array_equal(scene.dense, mask.dense(rows=7, history=3, start=STARTS[5:12]))
    assert scene.sections() == [("@history", 0, 3), ("@candidate", 3, 7)]


def test_pages_and_pictures_of_a_pack(tmp_path: Path):
    mask = zoo.load("hstu")
    mask.view(tmp_path / "one.html", rows=14, sequence=2, **PACK)
    text = (tmp_path / "one.html").read_text()
    assert '"rows": 7' in text and '"history": 3' in text
    pytest.importorskip("matplotlib")
    mask.view(tmp_path / "all.svg", rows=14, **PACK)
    text = (tmp_path / "all.svg").read_text()
    for words in ("14 rows, 14 columns; 18.9 % of pairs visible", "sequence 0", "sequence 2", "[10, 12)", "[8, 10)"):
        assert f"{words}</text>" in text
    assert "sequence 1</text>" not in text  # it has no rows


def test_a_pack_as_text():
    lines = drawing(lowered("hstu").pack(None, None, [0, 5, 12], None, {"history": [2, 3], "start": STARTS[:12]}))
    assert lines.startswith("@hstu: 12 rows, 12 columns, 37 of 144 pairs visible\n")
    assert "   8  .....bbbc...  b [5, 8)  c [8, 9)\n" in lines


def test_what_is_refused_of_packs(tmp_path: Path):
    mask, page = zoo.load("hstu"), tmp_path / "a.html"
    with pytest.raises(cmir.CmirError) as error:
        mask.view(page, rows=14, **PACK)
    assert str(error.value) == (
        "a page shows one sequence: choose one of the pack, sequence 0 to 2, or make a picture (.png)"
    )
    with pytest.raises(cmir.MetadataError, match=r"^sequence 3 of mask 'hstu': expected an int from 0 to 2$"):
        mask.view(page, rows=14, sequence=3, **PACK)
    with pytest.raises(cmir.MetadataError, match="a pack without sequences has nothing to look at"):
        mask.view(page, rows=4, cu_seqlens=[0], history=[], start=[0] * 4)
    with pytest.raises(
        cmir.MetadataError, match=r"^mask 'hstu': cu_seqlens_k and sequence go with cu_seqlens, not given here$"
    ):
        mask.view(page, rows=4, history=2, start=[0, 0, 2, 3], sequence=0)
    with pytest.raises(cmir.MetadataError, match=r"^sequence 2: .* break the fact 'history <= rows'"):
        mask.view(page, rows=14, sequence=0, **{**PACK, "history": [2, 0, 8]})
    with pytest.raises(cmir.MetadataError, match="needs metadatum 'history'"):
        mask.view(page, rows=14, sequence=0, cu_seqlens=[0, 14], start=STARTS)
    with pytest.raises(
        cmir.CmirError, match=r"^mask 'hstu' is packed: give cu_seqlens to the view of the mask it was made from$"
    ):
        mask.packed.view(page)


def test_intervals_that_are_united_name_all_their_slots():
    mask = lowered("sinks_window")
    scene = mask.scene(mask.metadata(9, None, {"start": [0] * 9}))
    assert scene.intervals("rows")[2] == [Interval("all", 1, 0, 3, (0, 1))]
    whole = zoo.load("sinks_window", window=4, sinks=3)
    scene = packed(whole, None, None, cu_seqlens=[0, 9], start=[0] * 9)
    assert scene.intervals("rows")[6] == [Interval("all", 0, 3, 7, (0,)), Interval("all", 1, 0, 3, (1,))]
    assert "  2  bbb......  a+b [0, 3)\n" in drawing(scene)
