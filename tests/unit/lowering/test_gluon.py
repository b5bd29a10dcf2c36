"""The generated Hopper kernels: golden files for what a mask decides, and skeletons for all the rest."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cmir
import cmir.lowering.skeletons as skeletons
from cmir import zoo
from cmir.lowering.gluon import PARTS
from cmir.lowering.hooks import fill, hook_names
from cmir.lowering.visibility import Axis
from cmir.lowering.words import interval_hooks, word_axis

GOLDEN = Path(__file__).parents[2] / "golden"
MASKS: list[tuple[str, dict[str, int]]] = [
    ("causal", {}),
    ("hstu", {}),
    ("shared_prompt", {}),
    ("clear", {"radius": 4, "height": 8, "width": 8, "text": 5}),
    ("random_eviction", {}),
    ("strided", {"stride": 8}),
]
IDS = [name for name, _ in MASKS]


def source(name: str, statics: dict[str, int]) -> str:
    return cmir.compile(Path(zoo.__file__).with_name(f"{name}.mlir"), statics=statics).source("gluon")


def functions(text: str) -> dict[str, str]:
    """Top-level functions of a module by name, decorators included."""
    lines = text.splitlines()
    out: dict[str, str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            out[node.name] = "\n".join(lines[start : node.end_lineno])
    return out


def skeleton_text() -> str:
    return "\n".join(Path(skeletons.__path__[0], f"{part}.py").read_text() for part in PARTS)


def hooks() -> set[str]:
    return set(re.findall(r"^# hook: (\w+)$", skeleton_text(), re.MULTILINE))


@pytest.mark.parametrize(("name", "statics"), MASKS, ids=IDS)
def test_golden(name: str, statics: dict[str, int]) -> None:
    """`CMIR_UPDATE_GOLDEN=1 pytest tests/unit/lowering` rewrites the files; read the difference."""
    text = source(name, statics)
    head = text[: text.index("from typing")]
    text = head + "\n\n".join(body for name, body in functions(text).items() if name in hooks()) + "\n"
    path = GOLDEN / f"gluon_{name}.txt"
    if os.environ.get("CMIR_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


def test_the_rest_is_the_skeletons() -> None:
    printed, skeleton = functions(source("causal", {})), functions(skeleton_text())
    assert printed.keys() == skeleton.keys()
    for name in skeleton.keys() - hooks():
        assert printed[name] == skeleton[name], name


@pytest.mark.parametrize(("name", "statics"), MASKS, ids=IDS)
def test_formatted_and_standing_alone(name: str, statics: dict[str, int]) -> None:
    text = source(name, statics)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "--diff", "-"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    modules = {n.module or "" for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} == {"typing", "triton"}
    assert "# hook" not in text and "# noqa" not in text


def test_hooks_that_no_mask_fills_can_be_filled() -> None:
    """Order of tiles and what is stored: as they stand unless somebody replaces them; no mark of one is printed."""
    defaults = [name for name in hook_names(skeleton_text()) if name not in hooks()]
    assert defaults == ["forward_place", "finish_rows", "backward_place", "store_gradient"]
    forward = Path(skeletons.__path__[0], "gluon_forward.py").read_text()
    kept, halved = fill(forward, {}, []), "@gluon.jit\ndef finish_rows(acc, inverse):\n    return acc * inverse * 0.5\n"
    assert "default hook" not in kept and functions(kept) == functions(forward)
    changed = functions(fill(forward, {"finish_rows": halved}, []))
    assert changed.pop("finish_rows") == halved.strip()
    assert all(functions(forward)[name] == text for name, text in changed.items())


def test_names_are_of_one_part() -> None:
    """The parts become one module: a name that two of them define would be the later one's in both."""
    names = [n.name for n in ast.parse(skeleton_text()).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert len(names) == len(set(names))


def test_words_are_of_the_own_axis_where_it_is_bounded() -> None:
    assert word_axis("forward", 7, 1) == "rows" and word_axis("backward", 1, 7) == "cols"
    assert word_axis("forward", None, 1) == "cols" and word_axis("backward", 1, None) == "rows"


def test_a_table_without_slots_shows_nothing() -> None:
    nothing: list[tuple[Axis, str]] = [("rows", "no_line_word"), ("cols", "no_across_word")]
    for axis, none in nothing:
        assert f"seen = {none}(N)\n    return seen" in interval_hooks("forward", axis, 0, False, [])["words_forward"]


def test_one_comment_a_slot() -> None:
    with pytest.raises(ValueError, match="2 slots, but comments for 1"):
        interval_hooks("forward", "rows", 2, False, [["a"]])


@pytest.mark.parametrize("dim", [64, 128])
def test_the_accumulator_of_dq_is_read_as_it_was_written(dim: int) -> None:
    """Every row and column of both consumers' halves, once; and as the kernel's documentation says where."""
    from cmir.lowering.skeletons import gluon_backward

    x = torch.arange(64 * dim).reshape(64, dim)
    parts = [gluon_backward.as_fragments.fn(half) for half in x.split(dim // 2, 1)]
    assert torch.equal(gluon_backward.from_fragments.fn(torch.cat(parts)), x)
    w, h, r, i, c, e = 2, 1, 5, dim // 16 - 1, 3, 1
    place = ((((i * 4 + w) * 8 + r) * 4 + c) * 2 + h) * 2 + e
    assert parts[0].flatten()[place] == x[16 * w + 8 * h + r, 8 * i + 2 * c + e]


def test_statistics_stand_by_thread() -> None:
    from cmir.lowering.skeletons import gluon_backward

    column = torch.arange(64)
    place = gluon_backward.by_thread.fn(column)
    assert torch.equal(place.sort().values, column)
    j, i, c, e = 3, 1, 2, 1
    assert place[16 * j + 8 * i + 2 * c + e] == 16 * j + 4 * c + 2 * i + e


@pytest.mark.parametrize(("keys", "hull"), [([(130, 140), (90, 100)], (90, 200)), ([(5, 5), (9, 3)], (300, 0))])
def test_the_hull_of_a_tile_has_what_any_slot_of_its_keys_sees(
    keys: list[tuple[int, int]], hull: tuple[int, int]
) -> None:
    """Two slots of three columns, the first tile: slot 1 sees rows 150 to 200 where slot 0 sees anything."""
    text = interval_hooks("backward", "cols", 2, False, [[], []])["hull_backward"]
    slots = [[*keys, (0, 0)], [(150, 200) if lo < hi else (0, 0) for lo, hi in keys] + [(0, 0)]]
    table = torch.tensor([ends for slot in slots for ends in zip(*slot, strict=True)])  # [slots * 2, columns]

    class Language:
        where, minimum, maximum = torch.where, torch.minimum, torch.maximum
        BlockedLayout = staticmethod(lambda *_: None)
        arange = staticmethod(lambda first, stop, _: torch.arange(first, stop))
        load = staticmethod(lambda place, mask, other: torch.where(mask, table.flatten()[place.clamp(max=11)], other))
        min = staticmethod(lambda x, axis: int(x.min()))
        max = staticmethod(lambda x, axis: int(x.max()))

    names = {"gl": Language, "KEYS": 128}
    exec(text.replace("@gluon.jit\n", ""), names)
    assert names["hull_backward"](0, 0, 3, torch.tensor(300)) == hull
    assert "return 0, rows" in interval_hooks("backward", "rows", 2, False, [[], []])["hull_backward"]
