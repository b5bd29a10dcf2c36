# pyright: basic
"""The preprocess kernels against a brute-force NumPy reference, on tables that a test hook copies from metadata."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmir.errors import MetadataError
from cmir.lowering.hooks import fill
from cmir.lowering.triton import PREPROCESS, skeleton
from cmir.runtime.descriptor import Descriptor, build
from cmir.runtime.loader import load
from cmir.signature import Fact, Parameter, Signature

sys.path.insert(0, str(Path(__file__).parents[1]))
offline: Any = import_module("offline")

DEVICE = "cuda" if os.environ.get("CMIR_TEST_GPU") == "1" else "cpu"

SKELETON = skeleton(PREPROCESS)

META = ("meta_row", "meta_row_stride", "meta_row_len", "meta_col", "meta_col_stride", "meta_col_len")

STORE = """
# hook: store_{axis}_slots
@triton.jit
def store_{axis}_slots(table, i, mask, z, rows, cols, META):
    for k in range({slots}):
        lo = saturate(table_entry(meta_{axis}, meta_{axis}_stride, (2 * k) * {axis}s + i, z))
        hi = saturate(table_entry(meta_{axis}, meta_{axis}_stride, (2 * k + 1) * {axis}s + i, z))
        tl.store(table + (2 * k) * {axis}s + i, lo, mask=mask)
        tl.store(table + (2 * k + 1) * {axis}s + i, hi, mask=mask)
"""


def table_mask(row_slots: int | None, col_slots: int | None):
    """A module and signature whose tables are its metadata: free tables `row` [K * 2 * M] and `col` [K * 2 * N]."""
    hooks = {
        f"store_{axis}_slots": STORE.format(axis=axis, slots=slots)
        for axis, slots in (("row", row_slots), ("col", col_slots))
        if slots
    }
    parameters = (Parameter("row", "free"), Parameter("col", "free"))
    return load(fill(SKELETON, hooks, META)), Signature("table", parameters, row_slots, col_slots)


def random_visible(rng: np.random.Generator, rows: int, cols: int, slots: int, structured: bool) -> np.ndarray:
    """Bool [rows, cols] with at most `slots` runs a row; structured ones change slowly, so that full tiles occur."""
    visible = np.zeros((rows, cols), bool)
    edges = np.zeros(0, int)
    for i in range(rows):
        if not structured or i % 37 == 0:
            edges = np.sort(rng.integers(0, cols + 1, 2 * int(rng.integers(0, slots + 1))))
        for lo, hi in edges.reshape(-1, 2):
            visible[i, lo:hi] = True
    return visible


def runs(visible: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Int32 [K, 2, lines] of the runs of each line, in shuffled slots; absent slots are empty somewhere."""
    found = []
    for line in visible:
        steps = np.flatnonzero(np.diff(np.concatenate(([0], line.astype(int), [0]))))
        found.append(steps.reshape(-1, 2))
    slots = max([1, *(len(line) for line in found)])
    table = np.zeros((slots, 2, len(visible)), np.int32)
    for n, line in enumerate(found):
        table[:, :, n] = rng.integers(0, visible.shape[1] + 1)
        table[rng.permutation(slots)[: len(line)], :, n] = line
    return table


def check_schedule(descriptor: Descriptor, axis: str, z: int, states: np.ndarray, words: np.ndarray | None) -> None:
    """One axis of mask z against `states` and `live_words`, [tiles, others]."""
    count = getattr(descriptor, f"{axis}_count")[z].cpu().numpy()
    index = getattr(descriptor, f"{axis}_index")[z].cpu().numpy()
    state = getattr(descriptor, f"{axis}_state")[z].cpu().numpy()
    tiles, others = states.shape
    packed = np.zeros((tiles, -(-others // 16)), np.int64)
    for other in range(others):
        packed[:, other // 16] |= states[:, other].astype(np.int64) << (2 * (other % 16))
    np.testing.assert_array_equal(state, packed.astype(np.uint32).view(np.int32))
    np.testing.assert_array_equal(count, np.stack([(states == 1).sum(1), (states == 2).sum(1)], axis=1))
    for tile in range(tiles):
        n_partial, n_full = count[tile]
        partial = index[tile, :n_partial]
        np.testing.assert_array_equal(partial, np.flatnonzero(states[tile] == 1))
        np.testing.assert_array_equal(np.sort(index[tile, others - n_full :]), np.flatnonzero(states[tile] == 2))
        if words is not None:
            live = getattr(descriptor, f"{axis}_live")[z, tile, :n_partial].cpu().numpy()
            np.testing.assert_array_equal(live, words[tile, partial])
    work = count.sum(1)
    np.testing.assert_array_equal(
        getattr(descriptor, f"{axis}_order")[z].cpu().numpy(),
        sorted(range(tiles), key=lambda tile: (-work[tile], tile)),
    )


def live_words(table: np.ndarray, length: int, tile: int, others_tile: int) -> np.ndarray:
    """Int [tiles, others]: first live slot | end << 12 | most a line meets << 24, of a table [K, 2, lines]."""
    slots, _, lines = table.shape
    meets = np.zeros((slots, lines, -(-length // others_tile)), bool)
    for k, n in np.ndindex(slots, lines):
        lo, hi = table[k, :, n]
        if lo < hi:
            meets[k, n, lo // others_tile : (hi - 1) // others_tile + 1] = True
    words = np.zeros((-(-lines // tile), meets.shape[2]), int)
    for t in range(len(words)):
        part = meets[:, t * tile : (t + 1) * tile]
        touched = np.asarray(part.any(1))
        end = slots - touched[::-1].argmax(0)
        words[t] = touched.argmax(0) | end << 12 | np.minimum(part.sum(0).max(0, initial=0), 127) << 24
    return words


def tile_states(visible: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    rows, cols = visible.shape
    states = np.zeros((-(-rows // tile[0]), -(-cols // tile[1])), np.int32)
    for m, n in np.ndindex(*states.shape):
        part = visible[m * tile[0] : (m + 1) * tile[0], n * tile[1] : (n + 1) * tile[1]]
        states[m, n] = 2 if part.all() and part.shape[1] == tile[1] else 1 if part.any() else 0
    return states


def check(
    visible: list[np.ndarray], tile: tuple[int, int], bounded: tuple[bool, bool], rng: np.random.Generator
) -> None:
    """Builds the descriptor of these masks (a batch if more than one) and checks all of it."""
    rows, cols = visible[0].shape
    tables = [runs(np.concatenate(masks), rng) for masks in (visible, [mask.T for mask in visible])]
    # One table over all masks gives them one slot count: cut it back into masks.
    per_mask = [np.stack(np.split(table, len(visible), axis=2)) for table in tables]  # each [Z, K, 2, lines]
    slots = [table.shape[1] if axis else None for table, axis in zip(per_mask, bounded, strict=True)]
    module, signature = table_mask(slots[0], slots[1])
    metadata = {}
    for name, table in zip(("row", "col"), per_mask, strict=True):
        flat = torch.from_numpy(table.reshape(len(visible), -1)).to(DEVICE)
        flat = flat if flat.shape[1] else flat.new_zeros(len(visible), 1)
        metadata[name] = flat if len(visible) > 1 else flat[0].to(torch.int64)
    descriptor = build(module, signature, rows, cols, metadata, tile=tile, live=(True, True)).check()
    for z, mask in enumerate(visible):
        states = tile_states(mask, tile)
        by_row = live_words(per_mask[0][z], cols, tile[0], tile[1])
        by_col = live_words(per_mask[1][z], rows, tile[1], tile[0])
        check_schedule(descriptor, "row", z, states, by_row if bounded[0] else by_col.T)
        check_schedule(descriptor, "col", z, states.T, by_col if bounded[1] else by_row.T)
        assert descriptor.area[z] == mask.sum()
        for name, table, given in zip(("row_table", "col_table"), per_mask, bounded, strict=True):
            stored = getattr(descriptor, name)
            assert (stored is not None) == given
            if given:
                np.testing.assert_array_equal(stored[z].cpu().numpy(), table[z])


@pytest.mark.parametrize("bounded", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize(
    ("rows", "cols", "tile"),
    [
        (99, 100, (16, 16)),
        (70, 333, (16, 32)),
        (333, 70, (32, 16)),
        (130, 5, (128, 128)),
        (5, 130, (128, 64)),
        (1, 1, (16, 16)),
        (300, 290, (128, 16)),
        (64, 1000, (64, 16)),
    ],
)
def test_random_tables(bounded: tuple[bool, bool], rows: int, cols: int, tile: tuple[int, int]) -> None:
    rng = np.random.default_rng(rows * 1000 + cols)
    check([random_visible(rng, rows, cols, 3, structured=True)], tile, bounded, rng)
    if rows * cols < 10_000:  # columns of an unstructured mask have many slots, which the interpreter is slow at
        check([random_visible(rng, rows, cols, 2, structured=False)], tile, bounded, rng)


def test_lists_have_room_for_what_is_reached_and_say_when_it_was_not_enough() -> None:
    """A band of 40 columns reaches at most 4 tiles of 16 from a tile of 16 rows, wherever it starts."""
    visible = np.tril(np.ones((300, 320), bool), 10) & ~np.tril(np.ones((300, 320), bool), -30)
    visible[100:130, 64:128] = visible[100:130].any(1, keepdims=True)  # some full tiles
    rng, names = np.random.default_rng(12), ("row", "col")
    tables = [runs(mask, rng) for mask in (visible, visible.T)]
    for bounded in ((True, True), (True, False), (False, True)):
        slots = [table.shape[0] if axis else None for table, axis in zip(tables, bounded, strict=True)]
        module, signature = table_mask(slots[0], slots[1])
        metadata = {name: torch.from_numpy(t.reshape(-1)).to(DEVICE) for name, t in zip(names, tables, strict=True)}
        states = tile_states(visible, (16, 16))
        most = (int((states > 0).sum(1).max()), int((states > 0).sum(0).max()))
        roomy = build(module, signature, 300, 320, metadata, tile=(16, 16), live=(True, True))
        tight = build(module, signature, 300, 320, metadata, (16, 16), None, (True, True), reach=most).check()
        assert tight.widths == (most[0] if bounded[0] else 20, most[1] if bounded[1] else 19)
        assert tight.nbytes < roomy.nbytes
        for axis, has_room in (("row", states), ("col", states.T)):
            for field in ("state", "count", "order"):
                assert torch.equal(tight.view(f"{axis}_{field}"), roomy.view(f"{axis}_{field}")), (axis, field)
            for line in range(len(has_room)):
                (partial, full), width = tight.view(f"{axis}_count")[0, line].tolist(), tight.widths[axis == "col"]
                for field, of in (("index", roomy), ("live", roomy)):
                    ours, theirs = tight.view(f"{axis}_{field}")[0, line], of.view(f"{axis}_{field}")[0, line]
                    assert torch.equal(ours[:partial], theirs[:partial])
                    if field == "index":
                        assert torch.equal(ours[width - full :], theirs[len(theirs) - full :])
        short = build(module, signature, 300, 320, metadata, (16, 16), None, (True, True), reach=(2, 2))
        for axis in ("row", "col"):
            count, index = short.view(f"{axis}_count"), short.view(f"{axis}_index")
            assert (count.sum(-1) <= short.widths[axis == "col"]).all()
            others = states.shape[axis == "row"]
            for line, (partial, full) in enumerate(count[0].tolist()):
                listed = [*index[0, line, :partial].tolist(), *index[0, line, index.shape[2] - full :].tolist()]
                assert all(0 <= tile < others for tile in listed)
        with pytest.raises(MetadataError, match="touches more tiles than its list has room for"):
            short.check()


@pytest.mark.parametrize("bounded", [(True, True), (True, False), (False, True)])
def test_a_batch_of_masks(bounded: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(7)
    masks = [random_visible(rng, 90, 120, slots, structured=True) for slots in (1, 4, 0)]
    check(masks, (16, 32), bounded, rng)


def test_many_slots() -> None:
    rng = np.random.default_rng(8)
    visible = np.zeros((40, 520), bool)
    visible[:, ::8] = True  # 65 runs a row
    visible[3] = False
    for bounded in ((True, True), (True, False)):
        check([visible], (32, 64), bounded, rng)


def test_more_tiles_than_a_vector_holds() -> None:
    rng = np.random.default_rng(9)
    visible = np.tril(np.ones((2050, 20), bool))
    visible[1000:1100] = False
    for bounded in ((True, False), (False, True)):
        check([visible], (16, 16), bounded, rng)


@pytest.mark.parametrize("left", [0, 7])
@pytest.mark.parametrize("right", [0, 7])
def test_edges_that_move_within_a_tile(left: int, right: int) -> None:
    """Whole chunks of tiles are full between the edges, but not where the edges move."""
    rng = np.random.default_rng(11)
    i, j = np.ogrid[:40, :800]
    visible = (j >= left * i) & (j < 800 - right * i)
    check([visible], (32, 16), (True, True), rng)
    check([np.ascontiguousarray(visible.T)], (16, 32), (True, True), rng)


@pytest.mark.parametrize(("rows", "cols"), [(70, 600), (600, 70), (64, 64)])
def test_empty_and_full(rows: int, cols: int) -> None:
    rng = np.random.default_rng(10)
    check([np.full((rows, cols), value) for value in (False, True)], (32, 32), (True, True), rng)


@pytest.mark.parametrize(("rows", "cols"), [(0, 0), (0, 50), (50, 0)])
@pytest.mark.parametrize("slots", [(1, 1), (1, None), (None, 1)])
def test_no_rows_or_no_columns(rows: int, cols: int, slots: tuple[int | None, int | None]) -> None:
    module = load(fill(SKELETON, {}, []))
    descriptor = build(
        module,
        Signature("causal", (), slots[0], slots[1]),
        rows,
        cols,
        {},
        device=DEVICE,
        tile=(16, 16),
        live=(True, True),
    ).check()
    assert descriptor.area.tolist() == [0]
    assert not descriptor.row_count.any()
    assert not descriptor.col_count.any()


def test_the_skeleton_alone_is_causal() -> None:
    module = load(fill(SKELETON, {}, []))
    descriptor = build(module, Signature("causal", (), 1, 1), 100, None, {}, device=DEVICE, tile=(32, 16)).check()
    visible = np.tril(np.ones((100, 100), bool))
    check_schedule(descriptor, "row", 0, tile_states(visible, (32, 16)), None)
    check_schedule(descriptor, "col", 0, tile_states(visible, (32, 16)).T, None)
    assert repr(descriptor).startswith("Descriptor('causal', rows=100, cols=100, tile=(32, 16), batch=()")
    assert descriptor.nbytes > 0


FACTS = (
    Fact("0 <= length", "scalar"),
    Fact("start[i] <= i", "row"),
    Fact("stop[j] <= j", "col"),
    Fact("extra[e] <= e", "entry"),
)
FACT_META = (
    *("meta_length", "meta_length_stride", "meta_length_ptr: tl.constexpr", "meta_start", "meta_start_stride"),
    *("meta_stop", "meta_stop_stride", "meta_extra", "meta_extra_stride", "meta_extra_len"),
)
FACT_HOOKS = {
    "scalar_facts": """
@triton.jit
def scalar_facts(z, rows, cols, META):
    return tl.where(saturate(scalar_entry(meta_length, meta_length_stride, meta_length_ptr, z)) < 0, 1, 0)
"""
}
for number, (axis, index, name) in enumerate((("row", "i", "start"), ("col", "j", "stop"), ("entry", "e", "extra")), 2):
    FACT_HOOKS[f"{axis}_facts"] = f"""
@triton.jit
def {axis}_facts({index}, z, rows, cols, META):
    return tl.where(saturate(table_entry(meta_{name}, meta_{name}_stride, {index}, z)) > {index}, {number}, 0)
"""
FACT_SIGNATURE = Signature(
    "facts",
    (Parameter("length", "scalar"), Parameter("start", "row"), Parameter("stop", "col"), Parameter("extra", "free")),
    1,
    1,
    FACTS,
)


def fact_metadata(batch: int) -> dict[str, torch.Tensor]:
    return {
        "length": torch.zeros(batch, dtype=torch.int64, device=DEVICE),
        "start": torch.zeros(batch, 50, dtype=torch.int32, device=DEVICE),
        "stop": torch.zeros(batch, 70, dtype=torch.int64, device=DEVICE),
        "extra": torch.zeros(batch, 999, dtype=torch.int32, device=DEVICE),
    }


@pytest.mark.parametrize(
    ("name", "where", "value", "message"),
    [
        ("length", (1,), -1, "the metadata of mask 1 break the declared fact `0 <= length`$"),
        ("length", (1,), -(2**40), "the metadata of mask 1 break the declared fact `0 <= length`$"),
        ("start", (0, 49), 50, r"the metadata of mask 0 break the declared fact `start\[i\] <= i` at row 49$"),
        ("stop", (2, 17), 2**33, r"the metadata of mask 2 break the declared fact `stop\[j\] <= j` at column 17$"),
        ("extra", (1, 998), 5000, r"the metadata of mask 1 break the declared fact `extra\[e\] <= e` at entry 998$"),
    ],
)
@pytest.mark.parametrize("slots", [1, None])
def test_broken_facts(name: str, where: tuple[int, ...], value: int, message: str, slots) -> None:
    module = load(fill(SKELETON, FACT_HOOKS, FACT_META))
    signature = Signature("facts", FACT_SIGNATURE.parameters, slots, 1, FACTS)
    metadata = fact_metadata(3)
    assert build(module, signature, 50, 70, metadata, tile=(32, 32)).check().status.tolist() == [0, 0, 0]
    metadata[name][where] = value
    with pytest.raises(MetadataError, match=message):
        build(module, signature, 50, 70, metadata, tile=(32, 32)).check()


def test_the_first_break_of_the_lowest_fact_wins() -> None:
    module = load(fill(SKELETON, FACT_HOOKS, FACT_META))
    metadata = fact_metadata(1)
    metadata["extra"][0, 0] = 1
    metadata["stop"][0, 20:] = 100
    assert build(module, FACT_SIGNATURE, 50, 70, metadata, tile=(16, 16)).status.tolist() == [3 << 32 | 20]
    metadata["length"][0] = -1
    assert build(module, FACT_SIGNATURE, 50, 70, metadata, tile=(16, 16)).status.tolist() == [1 << 32 | 0xFFFFFFFF]


def test_scalars_as_ints_and_facts_without_rows() -> None:
    module = load(fill(SKELETON, FACT_HOOKS, FACT_META))
    metadata = {
        "length": -5,
        "start": torch.zeros(0, dtype=torch.int32, device=DEVICE),
        "stop": torch.zeros(0, dtype=torch.int32, device=DEVICE),
        "extra": torch.zeros(3, dtype=torch.int32, device=DEVICE),
    }
    with pytest.raises(MetadataError, match=r"mask 'facts': the metadata break the declared fact `0 <= length`$"):
        build(module, FACT_SIGNATURE, 0, 0, metadata).check()
    metadata["length"], metadata["extra"][2] = 5, 3
    with pytest.raises(MetadataError, match=r"at entry 2$"):
        build(module, FACT_SIGNATURE, 0, 0, metadata).check()


def test_a_tile_size_that_the_kernels_are_not_made_for() -> None:
    module = load(fill(SKELETON, {}, []))
    with pytest.raises(MetadataError, match=r"expected a tile of two of \(16, 32, 64, 128\); got \(8, 128\)"):
        build(module, Signature("causal", (), 1, 1), 10, 10, {}, device=DEVICE, tile=(8, 128))


def test_filling_hooks() -> None:
    with pytest.raises(ValueError, match="no hook wrong in this skeleton; it has saturate, store_row_slots"):
        fill(SKELETON, {"wrong": ""}, [])
    filled = fill(SKELETON, {}, ["meta_a", "meta_a_ptr: tl.constexpr"])
    assert '"entries",\n        "meta_a",\n    ]' in filled
    assert "    counters,\n    meta_a,\n    meta_a_ptr: tl.constexpr,\n" in filled
    assert "rows,\n            cols,\n            meta_a,\n            meta_a_ptr,\n        )" in filled
    assert "def row_facts(i, z, rows, cols, meta_a, meta_a_ptr: tl.constexpr):" in filled
    assert not re.search(r"\bMETA\b", fill(SKELETON, {}, []))


COMPILE = """
import torch
from offline import compile_kernel, install, registers_and_spills
install()
import test_preprocess as tests

for slots, tile in ((1, (128, 128)), (4, (16, 64)), (6, (128, 128)), (65, (128, 128))):
    module, _ = tests.table_mask(slots, slots)
    kernel = compile_kernel(
        module.preprocess, torch.int32, 1000, 2000, 16, 8, 0, torch.int32, torch.int64, 5, 6, torch.int32, 7, 8,
        ROW_SLOTS=slots, COL_SLOTS=slots, TILE_M=tile[0], TILE_N=tile[1], ROW_LIVE=slots > 4, COL_LIVE=slots > 4,
    )
    assert ".f32" not in kernel.asm["ptx"] and "atom.global.gpu.acq_rel" in kernel.asm["ptx"]
    print("preprocess", len(kernel.asm["ptx"]), *registers_and_spills(kernel))
for live in (False, True):
    kernel = compile_kernel(module.transpose_schedule, *[torch.int32] * 11, 10, 20, 20, LIVE=live)
    print("transpose", len(kernel.asm["ptx"]), *registers_and_spills(kernel))
"""


def test_compiles_for_hopper() -> None:
    lines = [line.split() for line in offline.run(COMPILE, Path(__file__).parent).splitlines()]
    assert [line[0] for line in lines] == ["preprocess"] * 4 + ["transpose"] * 2
    assert all(int(spilled) < 128 for *_, spilled in lines), lines  # a few scalars, kept across the cold end
    assert int(lines[3][1]) < 1.1 * int(lines[2][1]), "code grows with the number of slots"
