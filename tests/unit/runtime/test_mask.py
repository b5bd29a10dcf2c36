"""cmir.compile and CompiledMask: the public face of a compiled mask."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.runtime import cache
from cmir.runtime.private_files import cache_directory

HSTU = """
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume 0 <= history and history <= rows
  maskspec.region @history rows [0, history) (%i, %j) {
    %p = arith.cmpi sle, %j, %i : index
    maskspec.visible %p
  }
  maskspec.region @candidate rows [history, rows) (%i, %j) {
    %p = arith.cmpi slt, %j, %history : index
    %s = maskspec.lookup %start[%i]
    %q = arith.cmpi sle, %s, %j : index
    %r = arith.cmpi sle, %j, %i : index
    %own = arith.andi %q, %r : i1
    %v = arith.ori %p, %own : i1
    maskspec.visible %v
  }
}
"""
START = [0, 0, 0, 0, 4, 4, 6, 6]


@pytest.fixture
def hstu(tmp_path: Path) -> cmir.CompiledMask:
    path = tmp_path / "hstu.mlir"
    path.write_text(HSTU)
    return cmir.compile(path)


def expected() -> np.ndarray:
    i, j, start = np.arange(8)[:, None], np.arange(8)[None, :], np.array(START)[:, None]
    return np.where(i < 4, j <= i, (j < 4) | ((start <= j) & (j <= i)))


def test_lengths_may_be_numpys() -> None:
    mask = cmir.zoo.load("causal")
    rows: Any = np.int64(5)
    cols: Any = np.int32(4)
    assert np.array_equal(mask.dense(rows=rows, cols=cols), mask.dense(rows=5, cols=4))
    assert np.array_equal(mask.intervals(rows=rows), mask.intervals(rows=5))
    with pytest.raises(cmir.MetadataError, match=r"rows of mask 'causal': expected an int from 0 to \d+, got True"):
        mask.dense(rows=True)


def test_dense_and_intervals(hstu: cmir.CompiledMask) -> None:
    np.testing.assert_array_equal(hstu.dense(rows=8, history=4, start=START), expected())
    rows = hstu.intervals("rows", rows=8, cols=8, history=4, start=START)
    assert rows.dtype == np.int32 and rows.shape == (2, 2, 8)
    assert rows[:, :, 5].tolist() == [[0, 4], [4, 6]]


def test_a_table_that_nothing_says_is_monotone_leaves_columns_unbounded(hstu: cmir.CompiledMask) -> None:
    assert hstu.slots == {"rows": 2, "cols": None}
    with pytest.raises(cmir.CmirError) as error:
        hstu.intervals("cols", rows=8, history=4, start=START)
    assert str(error.value) == (
        "mask 'hstu' is unbounded by cols: 'start[i] <= j' bounds no interval, "
        "since nothing says that table 'start' is nondecreasing"
    )


def test_an_unbounded_axis_still_runs(hstu: cmir.CompiledMask) -> None:
    desc = hstu.describe(rows=8, history=4, start=torch.tensor(START), tile=(16, 16)).check()
    assert desc.col_table is None and desc.area.tolist() == [int(expected().sum())]
    q, k, v = (torch.randn(1, 1, 8, 16, requires_grad=True) for _ in range(3))
    out = cmir.attention(q, k, v, desc)
    from cmir.runtime.reference import reference_attention

    want, _ = reference_attention(q, k, v, torch.from_numpy(expected()), 0.25)
    torch.testing.assert_close(out, want)
    gradient = torch.randn_like(out)
    for a, b in zip(
        torch.autograd.grad(out, (q, k, v), gradient), torch.autograd.grad(want, (q, k, v), gradient), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_a_batch_of_masks_equals_its_masks_one_by_one(hstu: cmir.CompiledMask) -> None:
    history, start = torch.tensor([4, 2]), torch.tensor([START, [0, 0, 2, 3, 4, 5, 6, 7]])
    both = hstu.describe(rows=8, history=history, start=start, tile=(16, 16)).check()
    q, k, v = (torch.randn(2, 2, 8, 16) for _ in range(3))
    out = cmir.attention(q, k, v, both)
    for b in range(2):
        one = hstu.describe(rows=8, history=int(history[b]), start=start[b], tile=(16, 16))
        assert torch.equal(both.area[b], one.area[0])
        torch.testing.assert_close(out[b : b + 1], cmir.attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], one))


def test_the_same_text_is_the_same_mask(hstu: cmir.CompiledMask, tmp_path: Path) -> None:
    other = tmp_path / "copy.mlir"
    other.write_text("// a comment\n" + HSTU)
    assert cmir.compile(str(other)) is hstu


def test_source_stands_alone(hstu: cmir.CompiledMask) -> None:
    source = hstu.source("triton")
    imports = {line for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imports == {"import triton", "import triton.language as tl"}
    compile(source, "generated", "exec")
    with pytest.raises(cmir.CmirError, match="unknown target 'cuda'; the targets are: triton"):
        hstu.source("cuda")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"rows": 8, "start": START}, "mask 'hstu' needs metadatum 'history': an int; it was not given"),
        (
            {"rows": 8},
            "mask 'hstu' needs metadata 'history': an int; 'start': a 1-D sequence of 8 ints, one per row; "
            "they were not given",
        ),
        (
            {"rows": 8, "history": 4, "start": START, "histroy": 1},
            "mask 'hstu' has no metadatum 'histroy', did you mean 'history'? It takes history, start",
        ),
        (
            {"rows": 8, "history": 4, "start": START[:7]},
            "metadatum 'start' of mask 'hstu': expected a 1-D sequence of 8 ints, one per row, got int64 of shape (7,)",
        ),
        ({"rows": 8, "history": 4.0, "start": START}, "metadatum 'history' of mask 'hstu': expected an int, got 4.0"),
        ({"rows": 8, "history": 9, "start": START}, "mask 'hstu': the metadata break the fact 'history <= rows'"),
        ({"rows": -1, "history": 0, "start": []}, "rows of mask 'hstu': expected an int from 0 to 2147483647, got -1"),
    ],
)
def test_bad_metadata_for_the_oracle(hstu: cmir.CompiledMask, metadata: dict[str, object], message: str) -> None:
    with pytest.raises(cmir.MetadataError) as error:
        hstu.dense(**metadata)  # pyright: ignore[reportArgumentType]
    assert str(error.value) == message


def test_scalar_facts_about_ints_are_checked_at_once(hstu: cmir.CompiledMask) -> None:
    with pytest.raises(cmir.MetadataError) as error:
        hstu.describe(rows=8, history=9, start=torch.tensor(START))
    assert str(error.value) == "mask 'hstu': the metadata break the fact 'history <= rows': rows=8, cols=8, history=9"


def test_facts_about_tensors_are_checked_on_the_device(hstu: cmir.CompiledMask) -> None:
    desc = hstu.describe(rows=8, history=torch.tensor([4, 9]), start=torch.tensor(START), tile=(16, 16))
    with pytest.raises(cmir.MetadataError, match="history <= rows"):
        desc.check()


def test_bounded_on_neither_axis(tmp_path: Path) -> None:
    path = tmp_path / "strided.mlir"
    path.write_text("""maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %k = arith.constant 4 : index
    %zero = arith.constant 0 : index
    %d = arith.subi %i, %j : index
    %m = maskspec.mod %d, %k
    %p = arith.cmpi eq, %m, %zero : index
    maskspec.visible %p
  }
}
""")
    mask = cmir.compile(path)
    assert mask.slots == {"rows": None, "cols": None}
    assert len(mask.remarks) == 2 and all("'(i - j) mod 4' repeats along" in remark for remark in mask.remarks)
    desc = mask.describe(rows=9, cols=9, tile=(16, 16)).check()
    i, j = np.ogrid[:9, :9]
    assert desc.area.tolist() == [int(((i - j) % 4 == 0).sum())]
    with pytest.raises(cmir.SpecError, match="@strided cannot be tested by rows, which are unbounded"):
        cmir.compile(path, test="rows")


def test_unreadable_specs(tmp_path: Path) -> None:
    with pytest.raises(cmir.SpecError, match="cannot read the spec"):
        cmir.compile(tmp_path / "nothing.mlir")
    two = tmp_path / "two.mlir"
    two.write_text("maskspec.spec @a() {\n}\nmaskspec.spec @b() {\n}\n")
    with pytest.raises(cmir.SpecError, match=r"expected one maskspec\.spec, found 2"):
        cmir.compile(two)
    taken = tmp_path / "taken.mlir"
    taken.write_text("maskspec.spec @a(%tile: index) {\n}\n")
    with pytest.raises(cmir.SpecError, match="metadata 'tile' has the name of an argument of describe; rename it"):
        cmir.compile(taken)


def test_empty_masks(tmp_path: Path) -> None:
    path = tmp_path / "nothing.mlir"
    path.write_text("maskspec.spec @nothing() {\n}\n")
    with pytest.raises(
        cmir.SpecError, match="@nothing has no Region, so no row would see anything; give its rows a rule"
    ):
        cmir.compile(path)
    path.write_text("maskspec.spec @nothing() {\n  maskspec.region @all rows [0, rows) {\n  }\n}\n")
    mask = cmir.compile(path)
    assert mask.slots == {"rows": 0, "cols": 0}
    assert not mask.dense(rows=3, cols=4).any()
    desc = mask.describe(rows=3, cols=4, tile=(16, 16)).check()
    q, k, v = (torch.randn(1, 1, n, 16, requires_grad=True) for n in (3, 4, 4))
    out, lse = cmir.attention(q, k, v, desc, return_lse=True)
    assert not out.any() and torch.isneginf(lse).all()
    for gradient in torch.autograd.grad(out, (q, k, v), torch.ones_like(out)):
        assert not gradient.any()


def test_the_cache_survives_damage(hstu: cmir.CompiledMask) -> None:
    key = cache.key_of("some spec")
    cache.write(key, {"ir": "x", "triton": "y"})
    assert cache.read(key) == {"ir": "x", "triton": "y"}
    path = cache_directory() / f"{key}.json"
    whole = path.read_text()
    for damaged in (whole[:-3], whole.replace('"x"', '"z"'), "[]", ""):
        path.write_text(damaged)
        assert cache.read(key) is None
    path.unlink()


def test_compiled_masks_come_from_the_cache_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "hstu.mlir"
    path.write_text(HSTU)
    program = (
        "import sys, cmir; from cmir.lowering import triton\n"
        "triton.lowered = None if sys.argv[2] == 'cached' else triton.lowered\n"
        "from cmir.runtime import modules; modules.lowered = triton.lowered\n"
        "m = cmir.compile(sys.argv[1]); print(m.slots, 'torch' in sys.modules)"
    )
    env = {"CMIR_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": str(Path(cmir.__file__).parents[1])}
    for mode in ("fresh", "cached"):
        run = subprocess.run(
            [sys.executable, "-c", program, str(path), mode], capture_output=True, text=True, env=env, check=False
        )
        assert run.stdout.strip() == "{'rows': 2, 'cols': None} False", run.stderr


def test_first_mistakes(hstu: cmir.CompiledMask) -> None:
    with pytest.raises(cmir.SpecError) as error:
        cmir.compile(lambda b, h, q, k: q >= k)  # pyright: ignore[reportArgumentType]
    assert str(error.value) == (
        "expected the path of a .mlir file or a cmir.MaskSpec, got function; "
        "a mask_mod is imported first: cmir.compile(cmir.from_mask_mod(mask_mod))"
    )
    with pytest.raises(cmir.SpecError, match="got the text of a spec; write it to a file"):
        cmir.compile("maskspec.spec @a() {}")
    q = torch.randn(1, 1, 8, 16)
    with pytest.raises(cmir.CmirError) as wrong:
        cmir.attention(q, q, q, hstu)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert str(wrong.value) == (
        "desc: expected the Descriptor that mask.describe returns, got a CompiledMask; call its describe(...)"
    )


def test_a_cached_module_that_cannot_be_read_is_compiled_anew(tmp_path: Path) -> None:
    from cmir.runtime import compiling as runtime

    path = tmp_path / "empty.mlir"
    path.write_text("maskspec.spec @empty_again() {\n  maskspec.region @all rows [0, rows) {\n  }\n}\n")
    for entry in (None, {"ir": "not mlir", "triton": ""}):
        first = cmir.compile(path)
        text = next(t for t, m in runtime._masks.items() if m is first)  # pyright: ignore[reportPrivateUsage]
        if entry is not None:
            cache.write(cache.key_of(text), entry)
        del runtime._masks[text]  # pyright: ignore[reportPrivateUsage]
        again = cmir.compile(path)
        assert again is not first and again.slots == {"rows": 0, "cols": 0} and again.source() == first.source()


def test_the_zoo_is_there_without_an_import() -> None:
    assert cmir.zoo.NAMES[0] == "causal"
