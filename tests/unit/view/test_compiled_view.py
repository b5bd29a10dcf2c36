"""`CompiledMask.view`: pages and pictures of masks that were compiled, from text or from Python."""

import re
from pathlib import Path

import numpy as np
import pytest

import cmir
from cmir import zoo


def test_a_page_of_a_mask_written_in_python_shows_the_python(tmp_path: Path):
    spec = cmir.MaskSpec("in_python")
    window = spec.scalar("window")
    spec.assume(window > 0)
    spec.region(
        "all",
        0,
        spec.rows,
        visible=(spec.j <= spec.i)  # the line of the first literal
        & (spec.i - spec.j < window),  # and of the second
    )
    mask = cmir.compile(spec)
    mask.view(tmp_path / "mask.html", rows=9, window=3)
    text = (tmp_path / "mask.html").read_text()
    assert f"<h3>{__file__}</h3>" in text
    source = text[text.index('class="stage source"') : text.index("--dnf-normalize")]
    keyed = re.findall(r'data-keys="([^"]*)"><span class="number">\d+</span>([^<]*)', source)
    lines = [line for keys, line in keyed if "all.0" in keys.split()]
    assert [line for line in lines if "# the line of the first literal" in line]
    assert [line for line in lines if "# and of the second" in line]


def test_pictures_and_drawn_metadata(tmp_path: Path):
    mask = zoo.load("hstu")
    mask.view(tmp_path / "a.html", rows=12)
    assert "const mask" in (tmp_path / "a.html").read_text()
    pytest.importorskip("matplotlib")
    start = np.array([0, 0, 0, 0, 4, 4, 6, 6])
    mask.view(str(tmp_path / "b.svg"), history=4, start=start, tile=(2, 2))
    text = (tmp_path / "b.svg").read_text()
    assert "8 rows, 8 columns" in text and "tiles of 2 x 2" in text


def test_what_is_refused(tmp_path: Path):
    mask = zoo.load("hstu")
    with pytest.raises(cmir.CmirError, match=r"its name ends in one of \.html, \.png, \.svg"):
        mask.view(tmp_path / "a.pdf")
    with pytest.raises(cmir.MetadataError, match="no metadatum 'histry'"):
        mask.view(tmp_path / "a.html", rows=4, histry=2)


def test_a_spec_that_was_never_in_a_file_is_its_own_source(tmp_path: Path):
    scope = {"cmir": cmir}
    code = 's = cmir.MaskSpec("typed_in")\ns.region("all", 0, s.rows, visible=s.j <= s.i)\nmask = cmir.compile(s)'
    exec(compile(code, "<typed in>", "exec"), scope)
    scope["mask"].view(tmp_path / "a.html", rows=4)
    text = (tmp_path / "a.html").read_text()
    assert "<h3>@typed_in</h3>" in text
    assert re.search(r'data-keys="all\.0"><span class="number">\d+</span> *%\w+ = arith\.cmpi sle', text)
