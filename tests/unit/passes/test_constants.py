"""Constants of a rule: tables inside `exists` are factors known at compile time; numbers beyond int32 are refused."""

from pathlib import Path

import numpy as np
import pytest

import cmir


def test_a_constant_table_is_a_factor_inside_exists(tmp_path: Path) -> None:
    path = tmp_path / "spec.mlir"
    path.write_text("""maskspec.spec @scaled() {
  maskspec.constants @h [1, 3]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %p = maskspec.exists %d in [0, 1] {
      %k = maskspec.lookup @h[%d]
      %x = arith.muli %k, %i : index
      %q = arith.cmpi eq, %j, %x : index
      maskspec.yield %q
    }
    maskspec.visible %p
  }
}
""")
    mask = cmir.compile(path)
    i, j = np.arange(5)[:, None], np.arange(14)[None, :]
    np.testing.assert_array_equal(mask.dense(rows=5, cols=14), (j == i) | (j == 3 * i))


def test_numbers_beyond_int32_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.mlir"
    path.write_text("""maskspec.spec @huge() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i - 4294967291
  }
}
""")
    with pytest.raises(cmir.SpecError, match=r"3:5: error: the number 4294967291 does not fit 32 bits"):
        cmir.compile(path)


@pytest.mark.parametrize("value", [2**31, 2**63, -(2**31) - 1])
def test_entries_beyond_int32_are_refused(value: int) -> None:
    spec = cmir.MaskSpec("huge")
    table = spec.constants("c", [3, value])
    spec.region("all", 0, spec.rows, visible=spec.j < table[spec.i])
    message = rf"test_constants\.py:\d+:\d+: error: entry 1 of constant table @c is {value}, which does not fit 32 bits"
    with pytest.raises(cmir.SpecError, match=message):
        cmir.compile(spec)


def test_statics_of_a_python_spec_whose_constants_are_already_numbers() -> None:
    spec = cmir.MaskSpec("near")
    radius = spec.static("radius", 2)
    half = spec.constants("half", [1, 2, 1], base=-1)
    near = spec.exists(-1, 1, lambda d: spec.j == spec.i + d * half[d] * 0 + radius * 0)
    spec.region("all", 0, spec.rows, visible=near)
    with pytest.raises(cmir.SpecError, match="statics= cannot be given: constant table 'half' was computed in Python"):
        cmir.compile(spec, statics={"radius": 3})
