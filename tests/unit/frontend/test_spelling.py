# pyright: basic
"""Whoever writes `//` and `%` in Python reads `//` and `%`; in text they are `floordiv` and `mod`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.errors import as_python
from cmir.view.load import lower_spec
from cmir.view.text import drawing

TEXT = """\
maskspec.spec @strided(%stride: index, %block: !maskspec.table<row>) {
  maskspec.assume 1 <= stride and rows mod 2 == 0
  maskspec.assume block[i] == i floordiv 4
  maskspec.region @all rows [0, rows floordiv 2) {
    maskspec.clause j <= i and (i - j) mod stride == 0
  }
  maskspec.region @rest rows [rows floordiv 2, rows) {
    maskspec.clause i floordiv 4 == j floordiv 4
  }
}
"""


def in_python() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("strided")
    i, j, rows = spec.i, spec.j, spec.rows
    stride, block = spec.scalar("stride"), spec.table("block", per="row")
    spec.assume(stride >= 1, rows % 2 == 0, block[i] == i // 4)
    spec.region("all", 0, rows // 2, visible=(j <= i) & ((i - j) % stride == 0))
    spec.region("rest", rows // 2, rows, visible=i // 4 == j // 4)
    return spec


@pytest.fixture
def masks(tmp_path: Path) -> tuple[cmir.CompiledMask, cmir.CompiledMask]:
    path = tmp_path / "strided.mlir"
    path.write_text(TEXT)
    return cmir.compile(in_python()), cmir.compile(path)


GIVEN: dict[str, Any] = {"rows": 8, "stride": 3, "block": [0] * 4 + [1] * 4}


def both(said: Iterable[str], expected: str, otherwise: str) -> None:
    """The first says the one in Python, the second the other in text, and neither the words of the other."""
    python, text = said
    assert expected in python and otherwise in text
    assert " mod " not in python and " floordiv " not in python
    assert " % " not in text and " // " not in text


def test_words() -> None:
    assert as_python("(i - j) mod 4 == 0 and i floordiv 8 * 8 <= j") == "(i - j) % 4 == 0 and i // 8 * 8 <= j"


def test_terms() -> None:
    spec = cmir.MaskSpec("terms")
    assert repr((spec.i - spec.j) % 4 + spec.i // 8) == "(i - j) % 4 + i // 8"


def test_remarks_and_explanations(masks) -> None:
    remarks = ("\n".join(remark.partition("\n")[0] for remark in mask.remarks) for mask in masks)
    both(remarks, "'(i - j) % stride == 0'", "'(i - j) mod stride == 0'")
    both((str(mask.explain(3, 2, **GIVEN)) for mask in masks), "(i - j) % stride == 0", "(i - j) mod stride == 0")
    both((str(mask.explain(6, 2, **GIVEN)) for mask in masks), "i // 4 * 4", "i floordiv 4 * 4")
    pack = {**GIVEN, "cu_seqlens": [0, 8]}
    both((str(mask.explain(6, 2, **pack)) for mask in masks), "rows [rows // 2, rows)", "rows [rows floordiv 2, rows)")


def test_errors_about_metadata(masks) -> None:
    def said(mask: cmir.CompiledMask, ask: str, **changed) -> str:
        with pytest.raises(cmir.MetadataError) as error:
            getattr(mask, ask)(**GIVEN | changed)
        return str(error.value)

    odd = {"rows": 7, "block": [0] * 4 + [1] * 3}
    both((said(mask, "dense", **odd) for mask in masks), "'rows % 2 == 0'", "'rows mod 2 == 0'")
    odd["block"] = torch.tensor(odd["block"])
    both((said(mask, "describe", **odd) for mask in masks), "'rows % 2 == 0'", "'rows mod 2 == 0'")
    wrong = [0] * 5 + [1] * 3
    both((said(mask, "dense", block=wrong) for mask in masks), "'block[i] == i // 4' at row 4", "i floordiv 4'")
    pack = {"block": wrong, "cu_seqlens": [0, 8]}
    both((said(mask, "dense", **pack) for mask in masks), "'block[i] == i // 4' at row 4", "i floordiv 4'")

    def checked(mask: cmir.CompiledMask, **changed) -> str:
        given: dict[str, Any] = {**GIVEN, "block": torch.tensor(wrong), **changed}
        with pytest.raises(cmir.MetadataError) as error:
            mask.describe(**given).check()
        return str(error.value)

    python, text = map(checked, masks)
    both((python, text), "`block[i] == i // 4` at row 4", "`block[i] == i floordiv 4` at row 4")
    assert f"(declared at {__file__}:" in python and "strided.mlir:3:" in text
    python, text = (checked(mask, cu_seqlens=torch.tensor([0, 8])) for mask in masks)
    both((python, text), "`block[i] == i // 4, in every sequence`", "`block[i] == i floordiv 4, in every sequence`")
    assert f"(declared at {__file__}:" in python


def test_errors_of_the_compiler(masks, tmp_path: Path) -> None:
    for mask, spelled in zip(masks, ("'(i - j) % stride == 0'", "'(i - j) mod stride == 0'"), strict=True):
        with pytest.raises(cmir.CmirError, match="bounds no interval") as error:
            mask.intervals(**GIVEN)
        assert spelled in str(error.value)
        with pytest.raises(cmir.CmirError, match="FlashMask takes the hidden rows") as error:
            mask.to_flashmask(**GIVEN | {"block": torch.tensor(GIVEN["block"])})
        assert (" % " in str(error.value)) == mask.in_python == (" mod " not in str(error.value))

    def refused(spec) -> str:
        with pytest.raises(cmir.SpecError) as error:
            cmir.compile(spec)
        return error.value.message

    path = tmp_path / "divides.mlir"
    for operator, name in (("//", "arith.floordivsi"), ("%", "maskspec.mod")):
        spec = cmir.MaskSpec("divides")
        n = spec.scalar("n")
        spec.region("all", 0, spec.rows, visible=(spec.i // n if operator == "//" else spec.i % n) <= spec.j)
        sort = " : index" if operator == "//" else ""
        path.write_text(
            "maskspec.spec @divides(%n: index) {\n  maskspec.region @all rows [0, rows) (%i, %j) {\n"
            f"    %q = {name} %i, %n{sort}\n    %v = arith.cmpi sle, %q, %j : index\n"
            "    maskspec.visible %v\n  }\n}\n"
        )
        rest = "divides by n, and nothing says that it is at least 1; state the fact 1 <= n"
        assert refused(spec) == f"'{operator}' {rest}"
        assert refused(path) == f"'{name}' {rest}"


def test_warnings_and_slots() -> None:
    spec = cmir.MaskSpec("doubled")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=((i // 4 <= j) & (j <= i)) | ((i // 4 <= j) & (j <= i + i % 4)))
    (pair, *_) = cmir.compile(spec).explain_slots()
    assert pair.first == "[i // 4, min(cols, i + 1))" and pair.second == "[i // 4, min(cols, i + i % 4 + 1))"
    spec = cmir.MaskSpec("empty")
    spec.region("all", 0, spec.rows // 2, visible=spec.j <= spec.i)
    spec.region("none", spec.rows // 2, spec.rows // 2, visible=spec.j <= spec.i)
    said = [warning.partition("\n")[0].partition("warning: ")[2] for warning in cmir.compile(spec).warnings]
    assert said == ["Region @none is always empty: the facts leave no row in [rows // 2, rows // 2)"]


def test_views_of_a_mask_written_in_python(masks, tmp_path: Path) -> None:
    python, text = (lower_spec(mask.surface, in_python=mask.in_python) for mask in masks)
    given = {"stride": 3, "block": GIVEN["block"]}
    drawings = [drawing(lowered.scene(lowered.metadata(8, None, given))) for lowered in (python, text)]
    both(drawings, "i // 4 * 4", "i floordiv 4 * 4")
    for mask, words in zip(masks, ("(i - j) % stride == 0", "(i - j) mod stride == 0"), strict=True):
        mask.view(tmp_path / "mask.html", rows=8, **given)
        page = (tmp_path / "mask.html").read_text()
        assert f'"text": "{words}"' in page
    with pytest.raises(cmir.MetadataError, match="break the fact 'rows % 2 == 0'"):
        masks[0].view(tmp_path / "mask.html", rows=7, **{**given, "block": np.arange(7) // 4})
