"""Pictures: written, repeatable, true to their scene, and refused by name without matplotlib."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from viewing import lowered, scenes

import cmir
from cmir.errors import CmirError
from cmir.view.colours import HIDDEN, colour
from cmir.view.coverage import CELLS, PALEST, image, pairs_of_cell
from cmir.view.picture import description, save

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.image")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb


@pytest.mark.parametrize("name", ["hstu", "clear", "strided", "topk_blocks", "full"])
def test_a_png_and_an_svg_are_written(name: str, tmp_path: Path):
    (scene,) = scenes(name, 1)
    save(scene, str(tmp_path / "mask.png"), (4, 4))
    data = (tmp_path / "mask.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert 200 < width < 4000 and 150 < height < 4000
    save(scene, str(tmp_path / "mask.svg"))
    text = (tmp_path / "mask.svg").read_text()
    assert f"@{scene.name}</text>" in text
    assert description(scene) in text


def test_an_svg_says_the_intervals_and_is_the_same_twice(tmp_path: Path):
    mask = lowered("hstu")
    scene = mask.scene(mask.metadata(14, None, {"history": 7, "start": [0] * 7 + [7, 7, 9, 9, 9, 12, 12]}))
    for name in ("a.svg", "b.svg"):
        save(scene, str(tmp_path / name), (4, 4))
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    for line in (*scene.intervals("rows"), *scene.intervals("cols")):
        for interval in line:
            assert f"[{interval.lo}, {interval.hi})</text>" in text
    for word in ("@candidate", "tiles of 4 x 4", "3 full", "6 partial", "7 empty", "45.4 % of pairs visible"):
        assert word in text


def test_an_interval_that_the_rule_decides_pair_by_pair_is_marked(tmp_path: Path):
    path = tmp_path / "strided.svg"
    spec = cmir.MaskSpec("strided")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & ((spec.i - spec.j) % 3 == 0))
    cmir.compile(spec).view(str(path), rows=6)
    text = path.read_text()
    assert ">[0, 6)?</text>" in text and ">[0, 6)</text>" not in text
    assert "? after an interval: the rule decides pair by pair what is visible in it</text>" in text


def test_intervals_that_are_united_have_a_mark_for_each_slot(tmp_path: Path):
    mask = lowered("sinks_window")
    scene = mask.scene(mask.metadata(3, None, {"start": [0, 0, 0]}))
    save(scene, str(tmp_path / "mask.svg"))
    (slots,) = {x.parts for line in scene.intervals("rows") for x in line}
    assert slots == (0, 1)
    legend = 2
    text = (tmp_path / "mask.svg").read_text()
    assert text.count("■</text>") == legend + 3  # one for every row
    assert "■ before an interval: a slot that is united in it</text>" in text


def test_cells_of_many_pairs_are_their_mean():
    rng = np.random.default_rng(0)
    numbers = rng.integers(-1, 3, (23, 37))
    for size in (1, 4, 8):
        shown = image(numbers, [0], size)
        assert shown.shape == (-(-23 // size), -(-37 // size), 3)
        for m, n in np.ndindex(*shown.shape[:2]):
            part = numbers[m * size : (m + 1) * size, n * size : (n + 1) * size]
            seen = part[part >= 0]
            strength = PALEST + (1 - PALEST) * seen.size / part.size if seen.size else 0
            ink = np.mean([to_rgb(colour(k)) for k in seen], axis=0) if seen.size else np.zeros(3)
            np.testing.assert_allclose(shown[m, n], strength * ink + (1 - strength) * np.array(to_rgb(HIDDEN)))


def test_a_cell_of_one_pair_has_its_colour():
    shown = image(np.array([[0, 4096 + 1], [-1, 1]]), [0, 2])
    want = [[to_rgb(colour(0)), to_rgb(colour(3))], [to_rgb(HIDDEN), to_rgb(colour(1))]]
    np.testing.assert_allclose(shown, want)


@pytest.mark.parametrize("length", [1, CELLS, CELLS + 1, 4096, 8192, 100_000])
def test_a_large_mask_has_few_cells_of_which_tiles_are_made(length: int):
    size = pairs_of_cell(length)
    assert -(-length // size) <= CELLS and size & (size - 1) == 0
    assert size == 1 or -(-length // (size // 2)) > CELLS


def test_a_large_mask_is_drawn_to_the_pixel(tmp_path: Path):
    """Every cell of a picture of 2048 x 1500 pairs is one pixel, with the colour that it is given."""
    mask = lowered("causal")
    scene = mask.scene(mask.metadata(2048, 1500, {}))
    save(scene, str(tmp_path / "mask.png"), (2048, 1500))  # no lines of tiles
    got = matplotlib.image.imread(tmp_path / "mask.png")[:, :, :3]
    want = image(scene.slots("rows")[0], [0], 2)
    top, left = next(
        (y, x)
        for y in range(got.shape[0] - 1024)
        for x in range(got.shape[1] - 750)
        if np.allclose(got[y : y + 9, x : x + 9], want[:9, :9], atol=0.01)
    )
    np.testing.assert_allclose(got[top : top + 1024, left : left + 750], want, atol=0.01)
    save(scene, str(tmp_path / "mask.svg"))
    assert "a cell is 2 x 2 pairs, the paler the fewer are visible</text>" in (tmp_path / "mask.svg").read_text()


def test_a_description_tells_scenes_apart():
    one, two = scenes("hstu", 2)
    assert description(one) != description(two)
    assert description(one) != description(one, (4, 4))


@pytest.mark.parametrize("lengths", [(0, 0), (0, 3), (5, 0), (1, 1), (3, 60)])
def test_masks_of_hardly_any_pairs(lengths: tuple[int, int], tmp_path: Path):
    mask = lowered("full")
    scene = mask.scene(mask.metadata(*lengths, {}))
    save(scene, str(tmp_path / "mask.svg"), (2, 2))
    assert (tmp_path / "mask.svg").stat().st_size


def test_a_folder_that_is_not_there(tmp_path: Path):
    (scene,) = scenes("full", 1)
    with pytest.raises(CmirError, match=r"cannot write '.*missing/mask\.png': No such file or directory"):
        save(scene, str(tmp_path / "missing" / "mask.png"))


def test_without_matplotlib_the_extra_is_named(tmp_path: Path):
    spec = tmp_path / "full.mlir"
    spec.write_text(
        "maskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i\n  }\n}\n"
    )
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from cmir.tools.cm_view import main\n"
        f"sys.exit(main([{str(spec)!r}, '--rows', '4', '-o', {str(tmp_path / 'm.png')!r}]))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert result.stderr.startswith("cm-view: error: pictures need matplotlib: pip install 'cmir[view]'")


def test_looking_at_a_mask_imports_no_torch_and_no_matplotlib(tmp_path: Path):
    spec = tmp_path / "m.mlir"
    spec.write_text(
        "maskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i\n  }\n}\n"
    )
    script = (
        "import sys\nfrom cmir.tools.cm_view import main\n"
        f"code = main([{str(spec)!r}, '--rows', '4', '-o', {str(tmp_path / 'm.html')!r}])\n"
        "sys.exit(code or any(m in sys.modules for m in ('torch', 'matplotlib', 'triton')))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 0
