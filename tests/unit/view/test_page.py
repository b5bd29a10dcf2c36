"""The page, in a real browser: it runs without an error, answers to the mouse, and no name of a spec is ever markup."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewing import lowered, open_page, plain, result_of, run_page, scenes

from cmir.errors import CmirError
from cmir.view.cell import explain
from cmir.view.load import lower
from cmir.view.page import page
from cmir.view.scene import Scene

POINT = """
const over = document.getElementById('over');
const point = (i, j) => {
  const box = over.getBoundingClientRect();
  const at = { clientX: box.left + margin + (j + 0.5) * cellSize, clientY: box.top + margin + (i + 0.5) * cellSize };
  over.dispatchEvent(new MouseEvent('mousemove', { ...at, bubbles: true }));
};
const live = () => [...document.querySelectorAll('.stage.source .line.live')].map((x) => x.textContent);
"""


def shown(scene: Scene, name: str) -> str:
    return page(scene, lowered(name), (4, 4), policy=False)


@pytest.mark.parametrize("name", ["hstu", "topk_blocks", "strided", "clear"])
def test_a_browser_computes_the_mask(name: str, tmp_path: Path):
    """Every pair as NumPy has it, in the engine that people use."""
    (scene,) = scenes(name, 1)
    script = "return { errors, pairs: [...pictures.visible], rows: [...pictures.rows], cols: [...pictures.cols] };"
    found = run_page(shown(scene, name), script, tmp_path)
    assert found["errors"] == []
    for key in ("pairs", "rows", "cols"):
        np.testing.assert_array_equal(np.array(found[key]).reshape(scene.dense.shape) >= 0, scene.dense)


def test_pointing_at_a_pair_explains_it(tmp_path: Path):
    mask = lowered("hstu")
    start = [0] * 7 + [7, 7, 9, 9, 9, 12, 12]
    scene = mask.scene(mask.metadata(14, None, {"history": 7, "start": start}))
    script = (
        POINT
        + """
    const out = {};
    for (const [i, j] of [[9, 8], [9, 9], [3, 2], [13, 0]]) {
      point(i, j);
      out[`${i},${j}`] = { words: document.getElementById('cell').innerText, live: live() };
    }
    const box = over.getBoundingClientRect();
    over.dispatchEvent(new MouseEvent('mouseleave', { bubbles: true }));
    out.after = document.getElementById('cell').innerText;
    return { errors, ...out };
    """
    )
    found = run_page(shown(scene, "hstu"), script, tmp_path)
    assert found["errors"] == []
    for i, j in ((9, 8), (9, 9), (3, 2), (13, 0)):
        said, words = explain(scene, i, j), found[f"{i},{j}"]["words"]
        assert f"row {i}, column {j}" in words
        assert ("not visible" in words) == (not said.visible)
        assert f"Region @{said.region}" in words
        for clause in said.clauses:
            assert f"clause {clause.name} {'holds' if clause.holds else 'fails'}" in words
            assert all(literal.text in words and literal.numbers in words for literal in clause.literals)
        for slot in (*said.row_slots, *said.col_slots):
            assert f"[{slot.lo}, {slot.hi})" in words
    # The lines of the clause that holds: start[i] <= j and j <= i.
    assert [re.sub(r"\s+", " ", line) for line in found["9,9"]["live"]] == [
        "16 %after = arith.cmpi sle, %first, %j : index",
        "17 %causal = arith.cmpi sle, %j, %i : index",
    ]
    assert found["9,8"]["live"] == []
    assert "Point at a pair" in found["after"]


def test_pointing_at_a_line_marks_what_comes_from_it(tmp_path: Path):
    (scene,) = scenes("hstu", 1)
    script = """
    const texts = (stage) => [...stage.querySelectorAll('.line.mark')].map((x) => x.textContent.trim());
    const marked = () =>
      [...document.querySelectorAll('.stage')].map((stage) => [stage.querySelector('h3').textContent, texts(stage)]);
    const span = lines.find((x) => x.keys.join() === 'candidate.1' && x.node.textContent.includes('interval.span'));
    span.node.dispatchEvent(new MouseEvent('mouseenter'));
    const during = marked();
    span.node.dispatchEvent(new MouseEvent('mouseleave'));
    return { errors, during, after: marked().flatMap(([, x]) => x) };
    """
    found = run_page(shown(scene, "hstu"), script, tmp_path)
    stages: dict[str, list[str]] = dict(found["during"])
    assert (found["errors"], found["after"]) == ([], [])
    assert [line[:2] for line in stages["hstu.mlir"]] == ["16", "17"]
    assert stages["--dnf-normalize"] == ["maskspec.clause start[i] <= j and j <= i"]
    assert stages["--merge-slots"][-1] == 'interval.span [start[i], i + 1) from "candidate.1"'
    assert "# slot 1: region candidate clause 1" in stages["-t triton"]


def test_sliders_and_tables_change_the_mask(tmp_path: Path):
    mask = lowered("hstu")
    scene = mask.scene(mask.metadata(8, None, {"history": 4, "start": [0, 0, 0, 0, 4, 4, 6, 6]}))
    script = """
    const set = (node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); };
    const words = () => [document.getElementById('summary').textContent, document.getElementById('facts').textContent,
      document.getElementById('problem').textContent];
    const out = [words()];
    const slider = document.querySelector('#metadata input[type=range]');
    set(slider, 6); out.push(words());
    out.push([...pictures.visible]);
    set(document.querySelector('#metadata textarea'), '0,0,0,0,0,0,6,7'); out.push(words());
    set(document.querySelector('#metadata textarea'), '0,0'); out.push(words());
    document.getElementById('reset').click(); out.push(words());
    return { errors, out };
    """
    found = run_page(shown(scene, "hstu"), script, tmp_path)
    assert found["errors"] == []
    first, broken, pairs, fixed, short, reset = found["out"]
    assert first[1] == reset[1] == fixed[1] == "All 6 facts hold."
    # Rows below history are of @history now; that start[4] was 4 breaks nothing.
    want = mask.scene(mask.metadata(8, None, {"history": 6, "start": [0, 0, 0, 0, 4, 4, 6, 6]})).dense
    np.testing.assert_array_equal(np.array(pairs).reshape(8, 8) >= 0, want)
    assert broken[1] == "All 6 facts hold."
    assert short[2] == "start: 8 entries are needed, not 2"
    assert first[0] == reset[0] and first[0] != broken[0]


def test_broken_facts_are_said(tmp_path: Path):
    mask = lowered("hstu")
    scene = mask.scene(mask.metadata(8, None, {"history": 4, "start": [0, 0, 0, 0, 4, 4, 6, 6]}))
    script = """
    const area = document.querySelector('#metadata textarea');
    area.value = '0,0,0,0,4,2,6,6';
    area.dispatchEvent(new Event('input', { bubbles: true }));
    return { errors, facts: document.getElementById('facts').textContent };
    """
    found = run_page(shown(scene, "hstu"), script, tmp_path)
    assert found["errors"] == []
    assert "history <= start[i] for i in [history, rows), at row 5" in found["facts"]
    assert "start nondecreasing over [history, rows), at row 4" in found["facts"]


HOSTILE = '<img src=x onerror="window.pwned=1"></script><script>window.pwned=1</script>\'"&<!--'


def hostile() -> tuple[Any, Scene]:
    """A spec whose every free text is an attack: comments, the text of a fact, the name of its file."""
    words = HOSTILE.replace("\\", "").replace('"', '\\"')
    text = (
        f"// {HOSTILE}\nmaskspec.spec @constructor(%toString: index, %hasOwnProperty: !maskspec.table<free>) {{\n"
        f'  maskspec.assume 0 <= toString and toString <= rows as "{words}"\n'
        "  maskspec.region @valueOf rows [0, rows) {\n"
        "    maskspec.clause j <= i and hasOwnProperty[j] <= toString\n  }\n}\n"
    )
    mask = lower(text, f"{HOSTILE}.mlir", kernels=True)
    return mask, mask.scene(mask.metadata(6, None, {"toString": 3, "hasOwnProperty": [1, 4, 2]}))


def test_hostile_names_are_text():
    mask, scene = hostile()
    text = page(scene, mask, (4, 4))
    assert "<img" not in text
    assert text.count("<script>") == text.count("</script>") == 1
    assert "<!--" not in text
    assert "default-src 'none'" in text


def test_hostile_names_run_nothing_in_a_browser(tmp_path: Path):
    mask, scene = hostile()
    script = (
        POINT
        + """
    point(4, 2);
    return { errors, pwned: window.pwned ?? null, images: document.images.length, pairs: [...pictures.visible],
      title: document.querySelector('.stage.source h3').textContent, words: document.getElementById('cell').innerText };
    """
    )
    found = run_page(page(scene, mask, (4, 4), policy=False), script, tmp_path)
    assert (found["errors"], found["pwned"], found["images"]) == ([], None, 0)
    assert found["title"] == f"{HOSTILE}.mlir"
    assert "hasOwnProperty[j] <= toString" in found["words"]
    np.testing.assert_array_equal(np.array(found["pairs"]).reshape(6, 6) >= 0, scene.dense)


def test_the_policy_lets_the_page_run_and_nothing_else(tmp_path: Path):
    (scene,) = scenes("hstu", 1)
    document = open_page(page(scene, lowered("hstu"), (4, 4)), "return 1;", tmp_path)
    assert '<tr id="rows-0">' in document  # made by the page's own script
    assert result_of(document) == ""  # the appended one did not run


def test_a_page_is_the_same_twice_and_asks_for_nothing_outside():
    (scene,) = scenes("shared_prompt", 1)
    text = shown(scene, "shared_prompt")
    assert text == shown(scene, "shared_prompt")
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_a_page_of_too_many_pairs_is_refused():
    mask = lowered("causal")
    scene = mask.scene(mask.metadata(2048, None, {}))
    with pytest.raises(CmirError, match="2048 x 2048 pairs are too many for a page"):
        page(scene, mask, (16, 16))


@pytest.mark.parametrize("lengths", [(0, 0), (0, 3), (5, 0), (1, 1)])
def test_masks_of_no_pairs(lengths: tuple[int, int], tmp_path: Path):
    mask = lowered("full")
    scene = mask.scene(mask.metadata(*lengths, {}))
    assert plain(scene) == {"rows": lengths[0], "cols": lengths[1]}
    found = run_page(page(scene, mask, (4, 4), policy=False), "return { errors };", tmp_path)
    assert found["errors"] == []
