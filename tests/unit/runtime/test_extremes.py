"""Metadata at the ends of their range: ends are computed in int64, so that "no limit" is no trap."""

from typing import Any

import numpy as np
import pytest
import torch

import cmir

MOST = 2**31 - 1


def window() -> cmir.CompiledMask:
    spec = cmir.MaskSpec("window")
    left, right = spec.scalar("left"), spec.scalar("right")
    spec.region("all", 0, spec.rows, visible=(spec.i - left <= spec.j) & (spec.j <= spec.i + right))
    return cmir.compile(spec)


def guarded() -> cmir.CompiledMask:
    spec = cmir.MaskSpec("guarded")
    left, right = spec.scalar("left"), spec.scalar("right")
    spec.region("late", 2 * left, spec.rows, visible=spec.j <= spec.i * 70000 + right + 100)
    return cmir.compile(spec)


@pytest.mark.parametrize("mask", [window, guarded])
@pytest.mark.parametrize("left", [0, 3, MOST, -MOST - 1])
@pytest.mark.parametrize("right", [0, MOST, -MOST - 1])
def test_scalars_that_stand_for_no_limit(mask: Any, left: int, right: int) -> None:
    compiled = mask()
    metadata: dict[str, Any] = {"rows": 20, "cols": 23, "left": left, "right": right}
    dense = compiled.dense(**metadata)
    desc = compiled.describe(**metadata, tile=(16, 16)).check()
    assert desc.area.tolist() == [int(dense.sum())]
    for table, wanted in ((desc.row_table, dense), (desc.col_table, dense.T)):
        assert table is not None
        position = np.arange(wanted.shape[1])
        ends = table[0].numpy()[:, :, :, None]
        np.testing.assert_array_equal(((ends[:, 0] <= position) & (position < ends[:, 1])).any(0), wanted)


@pytest.mark.parametrize("left", [0, 3, MOST, -MOST - 1])
@pytest.mark.parametrize("right", [0, MOST, -MOST - 1])
def test_bits_of_scalars_that_stand_for_no_limit(left: int, right: int) -> None:
    spec = cmir.MaskSpec("window_by_bits")
    i, j, a, b = spec.i, spec.j, spec.scalar("left"), spec.scalar("right")
    spec.region("all", 0, spec.rows, visible=(i - a <= j) & (j <= i + b) & ((i * 70000 + j + b) % 3 != 1))
    compiled = cmir.compile(spec)
    assert compiled.slots == {"rows": None, "cols": None}
    metadata: dict[str, Any] = {"rows": 20, "cols": 23, "left": left, "right": right}
    desc = compiled.describe(**metadata, tile=(16, 16)).check()
    assert desc.area.tolist() == [int(compiled.dense(**metadata).sum())]


def test_bits_of_entries_beyond_int32() -> None:
    spec = cmir.MaskSpec("anything")
    a, b = spec.table("a", per="row"), spec.table("b", per="col")
    spec.region("all", 0, spec.rows, visible=(a[spec.i] + b[spec.j]) % 5 == 2)
    mask = cmir.compile(spec)
    rng = np.random.default_rng(5)
    metadata: dict[str, Any] = {n: torch.from_numpy(rng.integers(-(2**39), 2**39, 30)) for n in ("a", "b")}
    desc = mask.describe(rows=30, **metadata, tile=(16, 16)).check()
    assert desc.area.tolist() == [int(mask.dense(rows=30, **metadata).sum())]


def test_identifiers_beyond_int32_stay_apart() -> None:
    spec = cmir.MaskSpec("documents")
    q, k = spec.table("q", per="row"), spec.table("k", per="col")
    spec.assume(q.nondecreasing(), k.nondecreasing())
    spec.region("all", 0, spec.rows, visible=q[spec.i] == k[spec.j])
    mask = cmir.compile(spec)
    ids = torch.tensor([2**31 - 1, 2**31, 2**31 + 1, 2**33, 2**33, 2**33 + 5])
    desc = mask.describe(rows=6, q=ids, k=ids, tile=(16, 16)).check()
    assert desc.area.tolist() == [4 + 2 * 2]


def test_numpy_integers_are_integers() -> None:
    desc = window().describe(rows=np.int64(5), left=np.int32(1), right=np.int64(0), tile=[16, 16])  # pyright: ignore[reportArgumentType]
    assert desc.area.tolist() == [9]


@pytest.mark.parametrize("tile", [16, (16,), (16, 16, 16)])
def test_a_tile_is_two_numbers(tile: Any) -> None:
    with pytest.raises(cmir.MetadataError, match="argument 'tile': expected two ints"):
        window().describe(rows=5, left=1, right=0, tile=tile)


def test_nothing_to_see_reads_nothing_and_has_gradients() -> None:
    desc = window().describe(rows=5, cols=0, left=1, right=0, tile=(16, 16))
    q = torch.full((1, 1, 5, 16), float("inf"), requires_grad=True)
    k, v = (torch.zeros(1, 1, 0, 16, requires_grad=True) for _ in range(2))
    out, lse = cmir.attention(q, k, v, desc, return_lse=True)
    assert not out.any() and torch.isneginf(lse).all()
    for gradient in torch.autograd.grad(out.sum(), (q, k, v)):
        assert not gradient.any()


def test_facts_that_bound_a_length_from_below() -> None:
    """`h <= rows` with nothing said of h >= 0: a length is never negative for that."""
    for name in ("abc", "hstu2", "m"):
        spec = cmir.MaskSpec(name)
        i, j, h, t = spec.i, spec.j, spec.scalar("h"), spec.table("t", per="row")
        spec.assume(h <= spec.rows, t[i] <= i)
        spec.region("all", 0, spec.rows, visible=(j < h) | ((t[i] <= j) & (j <= i)))
        assert cmir.compile(spec).slots["rows"] == 2


def test_names_that_end_alike_do_not_meet() -> None:
    spec = cmir.MaskSpec("names")
    x, stride, pointer, own = (spec.scalar(n) for n in ("x", "x_stride", "x_ptr", "self"))
    free = spec.table("f", per="free")
    length = spec.scalar("f_len")
    spec.region("all", 0, spec.rows, visible=spec.j < x + stride + pointer + own + length + free[0])
    mask = cmir.compile(spec)
    metadata: dict[str, Any] = {"x": 1, "x_stride": 1, "x_ptr": 0, "self": 1, "f_len": 1, "f": torch.tensor([2])}
    assert mask.describe(rows=10, **metadata, tile=(16, 16)).check().area.tolist() == [60]
    assert mask.dense(rows=10, **metadata).sum() == 60


def test_what_is_too_deep_or_too_wide_is_refused() -> None:
    for depth in (150, 2000):
        spec = cmir.MaskSpec("deep")
        x = spec.i
        with pytest.raises(cmir.SpecError, match="too deeply"):
            for k in range(depth):
                x = abs(x - (k + 1))
            spec.region("all", 0, spec.rows, visible=spec.j <= x)
            cmir.compile(spec)
    spec = cmir.MaskSpec("wide")
    with pytest.raises(cmir.SpecError, match="'exists' tries 1000000001 values; at most 4096 can be expanded"):
        spec.region("all", 0, spec.rows, visible=spec.exists(0, 10**9, lambda d: spec.j == spec.i + d))
        cmir.compile(spec)


@pytest.mark.parametrize("fact", ["nondecreasing t over [0, u[0])", "assume for i in [u[0], rows) : t[i] <= i"])
def test_the_range_of_a_fact_reads_no_table(fact: str, tmp_path: Any) -> None:
    path = tmp_path / "spec.mlir"
    path.write_text(
        f"maskspec.spec @s(%t: !maskspec.table<row>, %u: !maskspec.table<free>) {{\n  maskspec.{fact}\n"
        "  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= t[i]\n  }\n}\n"
    )
    with pytest.raises(cmir.SpecError, match="the range of a fact reads no table: give 'u"):
        cmir.compile(path)


@pytest.mark.parametrize("base", [2**31, 2**40, 2**41, 2**62, 2**63 - 2, -(2**63)])
@pytest.mark.parametrize("facts", [["ids"], []])
def test_documents_named_by_64_bits_stay_apart(base: int, facts: list[str]) -> None:
    ids = torch.tensor([base] * 8 + [base + 1] * 8)

    def same(b: Any, h: Any, q: Any, k: Any) -> Any:
        return ids[q] == ids[k]

    mask = cmir.compile(cmir.from_mask_mod(same, nondecreasing=facts))
    desc = mask.describe(rows=16, tile=(16, 16), ids=ids).check()
    assert desc.area.tolist() == [128]
    assert int(desc.to_sdpa().sum()) == 128
    pack = mask.describe(
        rows=16, cu_seqlens=torch.tensor([0, 12, 16]), tile=(16, 16), ids=(ids, torch.tensor([0, 12, 16]))
    )
    assert pack.check().area.tolist() == [8 * 8 + 4 * 4 + 4 * 4]


def test_scalars_of_64_bits_are_compared_as_they_are() -> None:
    spec = cmir.MaskSpec("scalars")
    a, b = spec.scalar("a"), spec.scalar("b")
    spec.region("all", 0, spec.rows, visible=(spec.i >= 0) & (a == b))
    mask = cmir.compile(spec)
    for x, y in ((2**41, 2**41 + 1), (2**62, 2**62), (-(2**63), 2**63 - 1)):
        desc = mask.describe(rows=4, tile=(16, 16), a=torch.tensor([x]), b=torch.tensor([y]))
        assert desc.check().area.tolist() == [16 * (x == y)]


@pytest.mark.parametrize("start", [0, 1_764_000_000_000_000_000, 2**61 - 10**14])
def test_nanoseconds_may_be_subtracted(start: int) -> None:
    spec = cmir.MaskSpec("within_an_hour")
    time = spec.table("time", per="free")
    hour = spec.table("hour", per="free")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=(time[i] - time[j] >= 0) & (time[i] - time[j] < hour[0]))
    times = start + torch.arange(20) * 1_000_000_000_001
    desc = cmir.compile(spec).describe(rows=20, tile=(16, 16), time=times, hour=torch.tensor([3_600_000_000_000]))
    assert desc.check().area.tolist() == [sum(min(i + 1, 4) for i in range(20))]


def test_the_largest_number_still_means_no_limit() -> None:
    spec = cmir.MaskSpec("window")
    left = spec.scalar("left")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i - left <= spec.j))
    mask = cmir.compile(spec)
    for limit, area in ((2**63 - 1, 210), (-(2**63), 0), (2**62, 210), (1, 39)):
        assert mask.describe(rows=20, tile=(16, 16), left=torch.tensor([limit])).check().area.tolist() == [area]


@pytest.mark.parametrize("weight", [1, 3, 100, 2**30])
def test_no_sum_wraps(weight: int) -> None:
    from cmir.dialects.descriptor import PreprocessOp
    from cmir.lowering.saturation import limit

    spec = cmir.MaskSpec("weighted")
    w = spec.table("w", per="free")
    spec.region("all", 0, spec.rows, visible=weight * w[spec.i] + w[spec.i + 1] > w[spec.j])
    module = cmir.compile(spec).module
    found = limit(next(op for op in module.walk() if isinstance(op, PreprocessOp)))
    assert 2**60 <= found * (weight + 1) <= 2**62
