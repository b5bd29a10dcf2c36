"""Masks that no number of intervals says on either axis: packed bits, against their NumPy meaning and the rule."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

import cmir
from cmir import zoo
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.interp.domain import TableValue, Value
from cmir.interp.preprocess import FULL, PARTIAL, bit_words, kernel_mask, pair_mask, status_word, tile_states
from cmir.runtime.descriptor import MAX_BITS, Descriptor
from cmir.runtime.mask import CompiledMask
from cmir.runtime.reference import reference_attention
from cmir.tools.driver import parse

SPECS = {
    # Sparse Transformer: a window, and every l-th token before it.
    "strided": """
maskspec.spec @strided(%l: index = 6) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j < l
    maskspec.clause j <= i and (i - j) mod l == 0
  }
}""",
    # Some keys were never there, others go at any time: a row's keys are scattered, and so are a key's rows.
    "holes": """
maskspec.spec @holes(%evict: !maskspec.table<col>, %since: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j] and since[i] <= j
  }
}""",
    # Whatever the tables say.
    "any": """
maskspec.spec @any(%a: !maskspec.table<row>, %b: !maskspec.table<col>, %f: !maskspec.table<free>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause (a[i] * 3 + b[j]) mod 7 < f[a[i] + b[j]]
  }
}""",
    # A residual in one Region only; some rows are in none.
    "regions": """
maskspec.spec @regions(%s: index, %t: !maskspec.table<row>) {
  maskspec.assume 0 <= s
  maskspec.region @first rows [0, s) {
    maskspec.clause j <= i
    maskspec.clause t[i] <= j and j < t[i] + 4
  }
  maskspec.region @second rows [s + 5, rows) {
    maskspec.clause (i + j) mod 5 == 1 and j <= i + 20
    maskspec.clause j < 3
  }
}""",
    # A search, which only rows need, beside what repeats.
    "search": """
maskspec.spec @search(%c: !maskspec.table<col>) {
  maskspec.nondecreasing c
  maskspec.region @all rows [0, rows) {
    maskspec.clause c[j] <= i and (i - j) mod 3 == 1
  }
}""",
}


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CompiledMask]:
    folder = tmp_path_factory.mktemp("specs")
    for name, text in SPECS.items():
        (folder / f"{name}.mlir").write_text(text)
    return {name: cmir.compile(folder / f"{name}.mlir") for name in SPECS}


def metadata_of(name: str, rows: int, cols: int, rng: np.random.Generator) -> dict[str, Any]:
    def table(length: int, low: int, high: int) -> np.ndarray:
        return rng.integers(low, high, length).astype(np.int32)

    return {
        "strided": dict,
        "holes": lambda: {"evict": table(cols, 0, rows + 9), "since": table(rows, -5, cols // 2)},
        "any": lambda: {"a": table(rows, -9, 9), "b": table(cols, 0, 30), "f": table(40, -1, 4)},
        "regions": lambda: {"s": int(rng.integers(0, rows + 3)), "t": table(rows, -3, cols)},
        "search": lambda: {"c": np.sort(table(cols, -2, rows))},
    }[name]()


def tensors(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(value) if hasattr(value, "shape") else value for name, value in metadata.items()}


def stage(mask: CompiledMask) -> tuple[PreprocessOp, list[KernelOp]]:
    module: ModuleOp = parse(mask.ir, "after.mlir")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    return next(op for op in module.walk() if isinstance(op, PreprocessOp)), kernels


def check_descriptor(mask: CompiledMask, desc: Descriptor, z: int, env: dict[str, Value], dense: np.ndarray) -> None:
    """One mask of the descriptor against what the stage means, and that against the rule."""
    preprocess, kernels = stage(mask)
    states, words = tile_states(preprocess, "rows", env, desc.tile), bit_words(preprocess, env, desc.tile)
    np.testing.assert_array_equal(pair_mask(preprocess, env, desc.tile), dense)
    for kernel in kernels:
        np.testing.assert_array_equal(kernel_mask(kernel, preprocess, env, desc.tile), dense)
    assert int(desc.status[z]) == status_word(preprocess, env)
    assert int(desc.area[z]) == dense.sum()
    for axis, lines in (("row", states), ("col", states.T)):
        count, index, state = (getattr(desc, f"{axis}_{field}")[z].numpy() for field in ("count", "index", "state"))
        for (partial, full), listed, word, line in zip(count, index, state, lines, strict=True):
            assert listed[:partial].tolist() == np.flatnonzero(line == PARTIAL).tolist()
            assert sorted(listed[len(line) - full :]) == np.flatnonzero(line == FULL).tolist()
            assert [word[t // 16] >> 2 * (t % 16) & 3 for t in range(len(line))] == line.tolist()
        work = count.sum(1)
        order = sorted(range(len(lines)), key=lambda t: (-work[t], t))
        assert getattr(desc, f"{axis}_order")[z].tolist() == order
    stored = desc.bits
    assert stored is not None and stored.shape[1:] == words.shape
    for m, n in np.argwhere(states == PARTIAL):
        rows, columns = (slice(k * size, (k + 1) * size) for k, size in zip((m, n), desc.tile, strict=True))
        column = np.arange(columns.start, columns.stop)
        got, want = (w[rows, column // 32] >> (column % 32) & 1 for w in (stored[z].numpy(), words))
        np.testing.assert_array_equal(got, want)


def check_attention(desc: Descriptor, dense: torch.Tensor, heads: int = 2, dim: int = 16) -> None:
    """`dense` is broadcastable to [B, heads, rows, cols]; one key head serves all."""
    batch = dense.shape[0]
    torch.manual_seed(0)
    q = torch.randn(batch, heads, desc.rows, dim, requires_grad=True)
    k, v = (torch.randn(batch, 1, desc.cols, dim, requires_grad=True) for _ in range(2))
    out, lse = cmir.attention(q, k, v, desc, return_lse=True)
    want, want_lse = reference_attention(q, k, v, dense)
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(lse, want_lse)
    gradient = torch.randn_like(out)
    for a, b in zip(
        torch.autograd.grad(out, (q, k, v), gradient), torch.autograd.grad(want, (q, k, v), gradient), strict=True
    ):
        torch.testing.assert_close(a, b)


SHAPES = [
    (70, 70, (32, 32)),
    (50, 90, (16, 16)),
    (90, 45, (16, 32)),
    (40, 100, (64, 16)),
    (33, 300, (32, 128)),
    (1, 1, (16, 16)),
]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("rows", "cols", "tile"), SHAPES)
def test_bits_and_attention(
    masks: Mapping[str, CompiledMask], name: str, rows: int, cols: int, tile: tuple[int, int]
) -> None:
    mask = masks[name]
    assert mask.slots == {"rows": None, "cols": None} or name == "search"
    assert mask.tests == dict.fromkeys(("forward", "dq", "dkv"), "bits")
    rng = np.random.default_rng(rows + cols)
    metadata = metadata_of(name, rows, cols, rng)
    dense = mask.dense(rows=rows, cols=cols, **metadata)
    desc = mask.describe(rows=rows, cols=cols, tile=tile, **tensors(metadata)).check()
    assert desc.row_table is None and desc.col_table is None
    env: dict[str, Value] = {"rows": rows, "cols": cols}
    env |= {n: TableValue(v.astype(np.int64)) if hasattr(v, "shape") else v for n, v in metadata.items()}
    check_descriptor(mask, desc, 0, env, dense)
    check_attention(desc, torch.from_numpy(dense)[None, None])


def test_a_mask_for_each_sequence_and_for_each_head(masks: Mapping[str, CompiledMask]) -> None:
    mask, (rows, cols), rng = masks["any"], (45, 70), np.random.default_rng(1)
    drawn = [metadata_of("any", rows, cols, rng) for _ in range(4)]
    dense = torch.from_numpy(np.stack([mask.dense(rows=rows, cols=cols, **m) for m in drawn]))
    stacked: dict[str, Any] = {name: torch.from_numpy(np.stack([m[name] for m in drawn])) for name in drawn[0]}
    one_each = mask.describe(rows=rows, cols=cols, tile=(16, 32), **stacked).check()
    assert one_each.area.tolist() == dense.sum((1, 2)).tolist()
    for z, metadata in enumerate(drawn):
        env: dict[str, Value] = {"rows": rows, "cols": cols}
        env |= {n: TableValue(v.astype(np.int64)) for n, v in metadata.items()}
        check_descriptor(mask, one_each, z, env, dense[z].numpy())
    check_attention(one_each, dense[:, None])

    by_head: dict[str, Any] = {name: value.reshape(2, 2, -1) for name, value in stacked.items()}
    check_attention(mask.describe(rows=rows, cols=cols, tile=(32, 16), **by_head).check(), dense.reshape(2, 2, 45, 70))


@pytest.mark.parametrize(("rows", "cols"), [(0, 40), (40, 0), (0, 0)])
def test_no_rows_or_no_columns(masks: Mapping[str, CompiledMask], rows: int, cols: int) -> None:
    desc = masks["strided"].describe(rows=rows, cols=cols, tile=(16, 16)).check()
    assert desc.area.tolist() == [0] and not desc.row_count.any() and not desc.col_count.any()
    q, k = torch.randn(1, 1, rows, 16), torch.randn(1, 1, cols, 16)
    assert not cmir.attention(q, k, k, desc).any()


def test_rows_of_a_hull_that_says_nothing(masks: Mapping[str, CompiledMask]) -> None:
    """Every row is empty, by its interval or by what is left over."""
    mask = masks["holes"]
    for evict, since in ((0, 0), (100, 99)):
        metadata: dict[str, Any] = {"evict": torch.full((40,), evict), "since": torch.full((50,), since)}
        desc = mask.describe(rows=50, cols=40, tile=(16, 16), **metadata).check()
        assert desc.area.tolist() == [0] and not desc.row_state.any() and not desc.col_state.any()
        q, k = torch.randn(1, 1, 50, 16), torch.randn(1, 1, 40, 16)
        out, lse = cmir.attention(q, k, k, desc, return_lse=True)
        assert not out.any() and torch.isneginf(lse).all()


def test_more_tiles_than_a_chunk(masks: Mapping[str, CompiledMask]) -> None:
    rows, cols = 20, 700  # 44 tiles: three words of states
    dense = masks["regions"].dense(rows=rows, cols=cols, s=7, t=(table := np.arange(rows) * 35 % 700))
    desc = masks["regions"].describe(rows=rows, cols=cols, tile=(16, 16), s=7, t=torch.from_numpy(table)).check()
    env: dict[str, Value] = {"rows": rows, "cols": cols, "s": 7, "t": TableValue(table)}
    check_descriptor(masks["regions"], desc, 0, env, dense)


def test_what_a_mask_would_not_fit_is_refused(masks: Mapping[str, CompiledMask]) -> None:
    length = 2**18
    assert length * length // 8 > MAX_BITS
    with pytest.raises(cmir.MetadataError) as error:
        masks["strided"].describe(rows=length, tile=(128, 128))
    assert str(error.value) == (
        "mask 'strided' is tested by bits, one a pair: 1 of 262144 x 262144 take 8.0 GiB; "
        "expected at most 4 GiB a descriptor"
    )


def forced() -> Iterator[tuple[str, dict[str, int], dict[str, Any]]]:
    start = torch.tensor([0, 0, 0, 0, 0, 0, 0, 7, 7, 9, 9, 9, 12] + [13] * 27)
    yield "causal", {}, {}
    yield "hstu", {}, {"history": 7, "start": start}
    yield "hstu_meta", {"context": 3, "window": 5, "full": 4}, {"history": 20}
    yield "clear", {"radius": 3, "height": 5, "width": 7, "text": 5}, {}


@pytest.mark.parametrize(("name", "statics", "metadata"), list(forced()))
def test_a_bounded_mask_is_the_same_by_bits(name: str, statics: dict[str, int], metadata: dict[str, Any]) -> None:
    by_slots = zoo.load(name, **statics)
    by_bits = cmir.compile(zoo.path(name), statics=statics, test="bits")
    assert by_bits is not by_slots and by_bits.slots == by_slots.slots
    assert by_bits is cmir.compile(zoo.path(name), statics=statics, test="bits")
    assert set(by_bits.tests.values()) == {"bits"} and "bits" not in by_slots.tests.values()
    a, b = (mask.describe(rows=40, tile=(16, 16), **metadata).check() for mask in (by_slots, by_bits))
    assert torch.equal(a.area, b.area)
    for axis in ("row", "col"):
        for field in ("state", "count", "order"):
            assert torch.equal(getattr(a, f"{axis}_{field}"), getattr(b, f"{axis}_{field}")), (axis, field)
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))
    results: list[tuple[torch.Tensor, ...]] = []
    for desc in (a, b):
        out = cmir.attention(q, k, v, desc)
        results.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y)


def crowded_list() -> tuple[cmir.MaskSpec, dict[str, Any]]:
    """Sixteen short spans a row, anywhere."""
    spec = cmir.MaskSpec("crowded")
    lo = spec.table("lo", per="row", entries=16)
    near = spec.exists(0, 15, lambda t: (lo[spec.i, t] <= spec.j) & (spec.j < lo[spec.i, t] + 2))
    spec.region("all", 0, spec.rows, visible=near)
    return spec, {"lo": torch.from_numpy(np.random.default_rng(4).integers(-3, 45, (40, 16)))}


def crowded_window() -> tuple[cmir.MaskSpec, dict[str, Any]]:
    """Fifteen keys before and after a row, every second one: bounded on both axes, and crowded on both."""
    spec = cmir.MaskSpec("dilated")
    gap = spec.i - spec.j
    spec.region("all", 0, spec.rows, visible=(gap >= -15) & (gap <= 15) & (gap % 2 == 0))
    return spec, {}


@pytest.mark.parametrize("make", [crowded_list, crowded_window])
def test_crowded_slots_are_tested_by_bits(make: Callable[[], tuple[cmir.MaskSpec, dict[str, Any]]]) -> None:
    spec, metadata = make()
    mask = cmir.compile(spec)
    assert set(mask.tests.values()) == {"bits"} and mask.slots["rows"] in (15, 16)
    assert any("may meet in one tile, more than 12" in str(remark) for remark in mask.remarks)
    torch.manual_seed(2)
    q, k, v = tensors = [torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3)]
    desc = mask.describe(rows=40, tile=(16, 16), **metadata).check()
    dense = torch.from_numpy(np.array(mask.dense(rows=40, **metadata)))
    assert desc.area.tolist() == [int(dense.sum())]
    out = cmir.attention(q, k, v, desc)
    doubles = [x.detach().double().requires_grad_() for x in tensors]
    want, _ = reference_attention(doubles[0], doubles[1], doubles[2], dense, 16**-0.5)
    got = (out, *torch.autograd.grad(out.square().sum(), tensors))
    for x, y in zip(got, (want, *torch.autograd.grad(want.square().sum(), doubles)), strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


def test_live_slots_are_those_of_the_lists_that_name_them() -> None:
    spec, _ = crowded_window()
    with pytest.raises(
        cmir.SpecError,
        match="@dilated cannot be tested by rows alone: of 15 slots a kernel tests those that its tile list names, and "
        "the lists of each axis name its own; try test=bits",
    ):
        cmir.compile(spec, test="rows")


def test_remarks_speak_the_language_of_the_spec(tmp_path: Path) -> None:
    """Facts and arguments of Python to who wrote Python, those of text to who wrote text: the same mask otherwise."""
    spec = cmir.MaskSpec("evicting")
    evict = spec.table("evict", per="col")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i < evict[spec.j]))
    path = tmp_path / "evicting.mlir"
    path.write_text(str(spec))
    in_python, as_text = cmir.compile(spec), cmir.compile(path)
    (remark,) = in_python.remarks
    assert "remark: mask 'evicting' is unbounded by rows: 'i < evict[j]' bounds no interval" in remark
    assert f"{Path(__file__).name}:" in remark and "@" not in remark
    assert "note: evict.nondecreasing() would bound it: declare that if no entry is below the one before" in remark
    (remark,) = as_text.remarks
    assert f"{path}:" in remark and "mask @evicting is unbounded by rows" in remark
    assert "note: 'maskspec.nondecreasing evict' would bound it" in remark
    assert as_text.ir == in_python.ir and cmir.compile(spec) is in_python and cmir.compile(path) is as_text


def test_a_crowded_mask_says_how_to_test_intervals_all_the_same(tmp_path: Path) -> None:
    spec, _ = crowded_list()
    path = tmp_path / "crowded.mlir"
    path.write_text(str(spec))
    crowded = (
        "up to 16 intervals of a row of mask {} may meet in one tile, more than 12; partial tiles are tested by packed "
        "bits"
    )
    for source, name, test in ((spec, "'crowded'", "cmir.compile(spec, test='rows')"), (path, "@crowded", "test=rows")):
        remarks = cmir.compile(source).remarks
        assert crowded.format(name) in remarks[0]
        assert f"note: {test} tests intervals all the same" in remarks[0]


def test_an_axis_is_forced_as_well() -> None:
    for test in ("rows", "cols"):
        mask = cmir.compile(zoo.path("hstu"), test=test)
        assert set(mask.tests.values()) == {test}
        start = torch.tensor([0, 0, 2, 2, 4, 5])
        desc = mask.describe(rows=6, tile=(16, 16), history=2, start=start).check()
        dense = torch.from_numpy(mask.dense(rows=6, history=2, start=start))
        check_attention(desc, dense[None, None])


def test_remarks_say_why_and_where(masks: Mapping[str, CompiledMask], tmp_path: Path) -> None:
    assert zoo.load("hstu").remarks == []
    first, second = masks["holes"].remarks
    assert "holes.mlir:4:5: remark: mask @holes is unbounded by rows: 'i < evict[j]' bounds no interval" in first
    assert "table 'evict' is nondecreasing; partial tiles are tested by packed bits" in first
    assert "note: 'maskspec.nondecreasing evict' would bound it" in first
    assert "unbounded by cols: 'since[i] <= j'" in second and "'maskspec.nondecreasing since'" in second
    # The same from the cache, for the file that was asked about.
    import cmir.runtime.compiling as runtime

    runtime._masks.clear()  # pyright: ignore[reportPrivateUsage]
    path = tmp_path / "copy.mlir"
    path.write_text("\n\n" + SPECS["holes"])
    assert f"{path}:6:5: remark: mask @holes is unbounded by rows" in cmir.compile(path).remarks[0]
