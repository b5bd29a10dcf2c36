# pyright: basic
"""What cmir computes on a GPU: descriptors against the NumPy oracle, attention against float32, graphs, bad metadata.

CMIR_TEST_GPU=1 python -m pytest tests/gpu -q        (add -n 6 for a third of the time: most of it is compiling)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import BF16, DEVICE, FP16, GPU, Attend, check_attention, deterministic, make_tensors, only_gpu

import cmir
from cmir import zoo

SMALL_DIM, DIM = (64, 128) if GPU else (16, 32)

Metadata = dict[str, Any]


# Masks and their metadata --------------------------------------------------------------------------------------------

SPECS = {
    # Rows [lo, hi) are in no Region: they see nothing.
    "holes": """
maskspec.spec @holes(%lo: index, %hi: index) {
  maskspec.assume 0 <= lo and lo <= hi and hi <= rows
  maskspec.region @before rows [0, lo) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    maskspec.visible %causal
  }
  maskspec.region @after rows [hi, rows) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    maskspec.visible %causal
  }
}""",
    # A column is seen until it is evicted, in any order: no number of intervals says a row.
    "eviction": """
maskspec.spec @eviction(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    %end = maskspec.lookup %evict[%j]
    %kept = arith.cmpi slt, %i, %end : index
    %visible = arith.andi %causal, %kept : i1
    maskspec.visible %visible
  }
}""",
    # A window and every 19th token before it: packed bits.
    "stride": """
maskspec.spec @stride() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j < 19
    maskspec.clause j <= i and (i - j) mod 19 == 0
  }
}""",
    # Whatever two tables say, in one Region of two: packed bits.
    "scattered": """
maskspec.spec @scattered(%a: !maskspec.table<row>, %b: !maskspec.table<col>, %s: index) {
  maskspec.assume 0 <= s and s <= rows
  maskspec.region @first rows [0, s) {
    maskspec.clause a[i] <= j and b[j] <= i
  }
  maskspec.region @second rows [s, rows) {
    maskspec.clause j <= i
  }
}""",
    # A row sees as far as its table says: no number of intervals says a column.
    "reach": """
maskspec.spec @reach(%last: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %end = maskspec.lookup %last[%i]
    %visible = arith.cmpi slt, %j, %end : index
    maskspec.visible %visible
  }
}""",
}


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """A mask of the zoo or of `SPECS`, by name."""
    folder = tmp_path_factory.mktemp("specs")

    def compile_by_name(name: str, **statics: int) -> Any:
        if name in zoo.NAMES:
            return zoo.load(name, **statics)
        path = Path(folder, f"{name}.mlir")
        path.write_text(SPECS[name])
        return cmir.compile(path)

    return compile_by_name


def segments(rng: np.random.Generator, first: int, last: int, mean: int) -> np.ndarray:
    """The first position of the segment of each position of [first, last); segments are of random length."""
    begins = rng.random(last - first) < 1 / mean
    begins[:1] = True
    position = np.arange(first, last)
    return np.maximum.accumulate(np.where(begins, position, first)) if last > first else position


def metadata_of(name: str, n: int, rng: np.random.Generator, statics: dict[str, int] | None = None) -> Metadata:
    """Random metadata that satisfy the facts: ints, and int32 arrays."""
    found: Metadata = {}
    if name == "hstu":
        history = int(rng.integers(0, n + 1))
        found = {"history": history, "start": np.concatenate([np.zeros(history), segments(rng, history, n, 11)])}
    elif name == "hstu_meta":
        found = {"history": int(rng.integers(0, n - (statics or {}).get("context", 6) + 1))}
    elif name == "shared_prompt":
        pack = segments(rng, 0, n, 90)
        prompt, segment = np.zeros(n), np.zeros(n)
        for first in np.unique(pack):
            last = int(np.flatnonzero(pack == first)[-1]) + 1
            end = int(rng.integers(first, last + 1))
            prompt[first:last] = end
            segment[first:end] = first
            segment[end:last] = segments(rng, end, last, 25)
        found = {"pack": pack, "prompt": prompt, "segment": segment}
    elif name == "holes":
        lo, hi = sorted(int(x) for x in rng.integers(0, n + 1, 2))
        found = {"lo": lo, "hi": hi}
    elif name == "eviction":
        found = {"evict": rng.integers(0, n + 20, n)}
    elif name == "scattered":
        found = {"a": rng.integers(-3, n, n), "b": rng.integers(-3, n, n), "s": int(rng.integers(0, n + 1))}
    elif name == "reach":
        found = {"last": rng.integers(-3, n + 20, n)}
    return {key: x if isinstance(x, int) else x.astype(np.int32) for key, x in found.items()}


def on_device(batch: Sequence[Metadata]) -> Metadata:
    """One sequence's metadata as they are, those of several with a batch dimension in front."""
    if len(batch) == 1:
        return {k: v if isinstance(v, int) else torch.tensor(v, device=DEVICE) for k, v in batch[0].items()}
    return {k: torch.tensor(np.stack([x[k] for x in batch]), device=DEVICE, dtype=torch.int32) for k in batch[0]}


def describe(mask: Any, n: int, batch: Sequence[Metadata], **options: Any) -> Any:
    return mask.describe(rows=n, cols=n, **on_device(batch), **options, **({} if len(batch[0]) else {"device": DEVICE}))


def dense(mask: Any, n: int, batch: Sequence[Metadata]) -> np.ndarray:
    return np.stack([mask.dense(rows=n, cols=n, **metadata) for metadata in batch])


# Descriptors ---------------------------------------------------------------------------------------------------------

CLEAR = {"radius": 5, "height": 9, "width": 40, "text": 100}
META = {"context": 3, "window": 70, "full": 20}

DESCRIBED = [
    *(("causal", {}, n) for n in (1, 2, 127, 128, 129, 385, 777)),
    *(("hstu", {}, n) for n in (1, 129, 300, 512, 1001)),
    *(("hstu_meta", META, n) for n in (3, 130, 601)),
    *(("shared_prompt", {}, n) for n in (1, 127, 640, 999)),
    ("clear", CLEAR, 460),
    ("clear", {"radius": 16, "height": 22, "width": 23, "text": 512}, 1018),
    *((name, {}, n) for name in SPECS for n in (1, 257, 700)),
]


@pytest.mark.parametrize(("name", "statics", "n"), DESCRIBED)
def test_a_descriptor_is_the_rule(load: Any, name: str, statics: dict[str, int], n: int) -> None:
    rng = np.random.default_rng(n)
    mask = load(name, **statics)
    metadata = metadata_of(name, n, rng, statics)
    check_descriptor(mask, n, [metadata], describe(mask, n, [metadata]).check())


@pytest.mark.parametrize("name", ["hstu", "shared_prompt", "holes", "eviction", "reach", "scattered"])
def test_a_batch_has_a_mask_for_each_sequence(load: Any, name: str) -> None:
    rng = np.random.default_rng(1)
    mask = load(name)
    for size, n in ((2, 200), (5, 333)):
        batch = [metadata_of(name, n, rng) for _ in range(size)]
        check_descriptor(mask, n, batch, describe(mask, n, batch).check())


@pytest.mark.parametrize("name", ["shared_prompt", "scattered"])
@pytest.mark.parametrize("tile", [(32, 64), (64, 16), (16, 128)])
def test_other_tiles(load: Any, name: str, tile: tuple[int, int]) -> None:
    mask = load(name)
    metadata = metadata_of(name, 430, np.random.default_rng(2))
    check_descriptor(mask, 430, [metadata], describe(mask, 430, [metadata], tile=tile).check())


@pytest.mark.parametrize("name", ["causal", "stride"])
def test_rows_and_columns_of_different_number(load: Any, name: str) -> None:
    for rows, cols in ((200, 300), (300, 77), (1, 257), (257, 1)):
        mask = load(name)
        desc = mask.describe(rows=rows, cols=cols, device=DEVICE).check()
        check_tiles(desc, mask.dense(rows=rows, cols=cols)[None])


def check_descriptor(mask: Any, n: int, batch: Sequence[Metadata], desc: Any) -> None:
    """Everything in the descriptor: interval tables or bits, states, schedules, area."""
    visible = dense(mask, n, batch)
    check_tiles(desc, visible)
    if desc.bits is not None:  # the mask has a kernel that writes bits, and its intervals are kept by none
        np.testing.assert_array_equal(desc.to_dense()[:, 0].cpu().numpy().reshape(visible.shape), visible)
        assert desc.row_table is desc.col_table is None
        return
    for axis, table in (("rows", desc.row_table), ("cols", desc.col_table)):
        assert (table is None) == (mask.slots[axis] is None)
        for z, metadata in enumerate(batch):
            if table is None:
                continue
            # The columns of a symmetric mask have the table of its rows.
            source = "rows" if mask.signature.symmetric else axis
            got, want = table[z].cpu().numpy(), mask.intervals(source, rows=n, cols=n, **metadata)
            present = want[:, :1] < want[:, 1:]
            np.testing.assert_array_equal(np.where(got[:, :1] < got[:, 1:], got, 0), np.where(present, want, 0))
            held = paint(got, n)
            np.testing.assert_array_equal(held, visible[z] if axis == "rows" else visible[z].T)


def paint(table: np.ndarray, length: int) -> np.ndarray:
    """How often the intervals [K, 2, lines] hold each position: bool only where they are disjoint."""
    times = np.zeros((table.shape[2], length), dtype=np.int32)
    position = np.arange(length)[None, :]
    for lo, hi in table:
        times += (lo[:, None] <= position) & (position < hi[:, None])
    assert times.max(initial=0) <= 1, "intervals of one line overlap"
    return times == 1


def check_tiles(desc: Any, visible: np.ndarray) -> None:
    assert desc.area.tolist() == [int(mask.sum()) for mask in visible]
    for z, mask in enumerate(visible):
        states = tile_states(mask, desc.tile)
        check_schedule(desc, "row", z, states)
        check_schedule(desc, "col", z, states.T)


def tile_states(visible: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """0 empty, 1 partial, 2 full; a tile that reaches past the last column is not full."""
    rows, cols = visible.shape
    states = np.zeros((-(-rows // tile[0]), -(-cols // tile[1])), np.int64)
    for m, n in np.ndindex(*states.shape):
        part = visible[m * tile[0] : (m + 1) * tile[0], n * tile[1] : (n + 1) * tile[1]]
        states[m, n] = 2 if part.all() and part.shape[1] == tile[1] else 1 if part.any() else 0
    return states


def check_schedule(desc: Any, axis: str, z: int, states: np.ndarray) -> None:
    words, count, index, order = (
        getattr(desc, f"{axis}_{field}")[z].cpu().numpy() for field in ("state", "count", "index", "order")
    )
    tiles, others = states.shape
    packed = np.zeros((tiles, -(-others // 16)), np.int64)
    for other in range(others):
        packed[:, other // 16] |= states[:, other] << (2 * (other % 16))
    np.testing.assert_array_equal(words, packed.astype(np.uint32).view(np.int32))
    np.testing.assert_array_equal(count, np.stack([(states == 1).sum(1), (states == 2).sum(1)], axis=1))
    for tile, (n_partial, n_full) in enumerate(count):
        np.testing.assert_array_equal(index[tile, :n_partial], np.flatnonzero(states[tile] == 1))
        np.testing.assert_array_equal(np.sort(index[tile, others - n_full :]), np.flatnonzero(states[tile] == 2))
    work = count.sum(1)
    np.testing.assert_array_equal(order, sorted(range(tiles), key=lambda tile: (-work[tile], tile)))


# Attention -----------------------------------------------------------------------------------------------------------


ATTENDED = [
    ("causal", {}, 300, BF16, DIM),
    ("causal", {}, 256, BF16, DIM),
    ("hstu", {}, 300, BF16, DIM),
    ("hstu_meta", META, 345, BF16, DIM),
    ("shared_prompt", {}, 300, BF16, SMALL_DIM),
    ("shared_prompt", {}, 256, FP16, DIM),
    ("clear", CLEAR, 460, BF16, DIM),
    ("clear", CLEAR, 460, FP16, SMALL_DIM),
    ("holes", {}, 300, BF16, SMALL_DIM),
    ("eviction", {}, 300, BF16, SMALL_DIM),
    ("reach", {}, 300, FP16, SMALL_DIM),
    ("stride", {}, 300, BF16, DIM),
    ("stride", {}, 256, FP16, SMALL_DIM),
    ("scattered", {}, 300, BF16, DIM),
    ("scattered", {}, 300, BF16, SMALL_DIM),
]


@pytest.mark.parametrize(("name", "statics", "n", "dtype", "dim"), ATTENDED)
def test_attention(
    load: Any, attend: Attend, name: str, statics: dict[str, int], n: int, dtype: torch.dtype, dim: int
) -> None:
    rng = np.random.default_rng(n)
    mask = load(name, **statics)
    for heads in ((4, 2), (4, 1), (3, 3)) if GPU else ((2, 1),):
        metadata = metadata_of(name, n, rng, statics)
        desc = describe(mask, n, [metadata]).check()
        tensors = make_tensors(2, heads, n, n, dim, dtype)
        check_attention(attend, desc, dense(mask, n, [metadata])[:, None], tensors)


@pytest.mark.parametrize("name", ["hstu", "shared_prompt"])
def test_lengths(load: Any, attend: Attend, name: str) -> None:
    rng = np.random.default_rng(3)
    mask = load(name)
    for n in (1, 2, 3, 31, 127, 128, 129, 256, *rng.integers(4, 301, 12).tolist()) if GPU else (1, 2, 33):
        metadata = metadata_of(name, n, rng)
        desc = describe(mask, n, [metadata]).check()
        check_attention(
            attend, desc, dense(mask, n, [metadata])[:, None], make_tensors(1, (4, 2), n, n, SMALL_DIM, FP16)
        )


@pytest.mark.parametrize(
    ("name", "dtype", "dim"), [("hstu", BF16, DIM), ("holes", BF16, SMALL_DIM), ("scattered", BF16, DIM)]
)
def test_batches_with_metadata_of_their_own(load: Any, attend: Attend, name: str, dtype: torch.dtype, dim: int) -> None:
    rng = np.random.default_rng(4)
    mask = load(name)
    for size, n in ((3, 300), (5, 211)) if GPU else ((3, 50),):
        batch = [metadata_of(name, n, rng) for _ in range(size)]
        desc = describe(mask, n, batch).check()
        check_attention(attend, desc, dense(mask, n, batch)[:, None], make_tensors(size, (4, 2), n, n, dim, dtype))


@pytest.mark.parametrize("name", ["causal", "stride"])
def test_rows_and_columns_differ(load: Any, attend: Attend, name: str) -> None:
    mask = load(name)
    for rows, cols in ((200, 300), (300, 77), (257, 256), (1, 300)) if GPU else ((20, 45), (45, 20)):
        desc = mask.describe(rows=rows, cols=cols, device=DEVICE).check()
        visible = mask.dense(rows=rows, cols=cols)[None, None]
        check_attention(attend, desc, visible, make_tensors(2, (4, 2), rows, cols, DIM, BF16))


@pytest.mark.parametrize(("lo", "hi"), [(0, 200), (37, 38), (100, 200), (0, 1)])
def test_rows_that_see_nothing(load: Any, attend: Attend, lo: int, hi: int) -> None:
    mask, n = load("holes"), 200
    visible = mask.dense(rows=n, cols=n, lo=lo, hi=hi)[None, None]
    desc = mask.describe(rows=n, lo=lo, hi=hi, device=DEVICE).check()
    check_attention(attend, desc, visible, make_tensors(1, (2, 1), n, n, SMALL_DIM, BF16), with_lse=True)


def test_a_head_that_sees_nothing(load: Any, attend: Attend) -> None:
    mask, n, heads = load("holes"), 150, 4
    lo = torch.tensor([[0, 20, 150, 60]], device=DEVICE)  # head 0 sees nothing, head 2 all that causal shows
    hi = torch.tensor([[150, 40, 150, 100]], device=DEVICE)
    visible = np.stack([
        mask.dense(rows=n, cols=n, lo=int(a), hi=int(b)) for a, b in zip(lo[0], hi[0], strict=True)
    ])[None]  # fmt: skip
    desc = mask.describe(rows=n, lo=lo, hi=hi).check()
    assert desc.batch == (1, heads)
    check_attention(attend, desc, visible, make_tensors(1, (heads, 2), n, n, SMALL_DIM, BF16))


def test_the_gradient_of_lse(load: Any, attend: Attend) -> None:
    mask, n = load("causal"), 300 if GPU else 60
    visible = mask.dense(rows=n, cols=n)[None, None]
    desc = mask.describe(rows=n, device=DEVICE).check()
    check_attention(attend, desc, visible, make_tensors(2, (4, 2), n, n, DIM, BF16), with_lse=True)


def test_tensors_with_heads_after_the_length(load: Any, attend: Attend) -> None:
    mask, n = load("causal"), 300 if GPU else 60
    *tensors, dlse = make_tensors(2, (4, 2), n, n, DIM, BF16)
    views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors]
    desc = mask.describe(rows=n, device=DEVICE).check()
    out, *_ = check_attention(attend, desc, mask.dense(rows=n, cols=n)[None, None], (*views, dlse))
    assert out.transpose(1, 2).is_contiguous()


def test_results_are_the_same_bits_every_time(load: Any, attend: Attend) -> None:
    mask, n, attend = load("hstu"), 300 if GPU else 60, deterministic(attend)
    metadata = metadata_of("hstu", n, np.random.default_rng(5))
    desc, visible = describe(mask, n, [metadata]).check(), dense(mask, n, [metadata])[:, None]
    tensors = make_tensors(2, (4, 2), n, n, DIM, BF16)
    first = check_attention(attend, desc, visible, tensors)
    for _ in range(5 if GPU else 1):
        again = check_attention(attend, describe(mask, n, [metadata]), visible, tensors)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_pack_does_not_see_another(load: Any, attend: Attend) -> None:
    mask, n, split = load("shared_prompt"), 300, 141
    rng = np.random.default_rng(6)
    first, second = metadata_of("shared_prompt", split, rng), metadata_of("shared_prompt", n - split, rng)
    metadata = {key: np.concatenate([first[key], second[key] + split]).astype(np.int32) for key in first}
    desc = describe(mask, n, [metadata]).check()
    q, k, v, *_ = make_tensors(1, (2, 1), n, n, SMALL_DIM, BF16)
    before = attend(q, k, v, desc)
    k[:, :, :split] *= 3
    v[:, :, :split] += 100
    after = attend(q, k, v, desc)
    assert not torch.equal(before[:, :, :split], after[:, :, :split])
    assert torch.equal(before[:, :, split:], after[:, :, split:])


# Launches ------------------------------------------------------------------------------------------------------------


@only_gpu
def test_a_graph_replays_with_new_metadata(load: Any, attend: Attend) -> None:
    mask, n, attend = load("hstu"), 300, deterministic(attend)
    rng = np.random.default_rng(7)
    batch = [metadata_of("hstu", n, rng) for _ in range(2)]
    static = on_device(batch)
    tensors = make_tensors(2, (4, 2), n, n, DIM, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]

    def step() -> tuple[Any, ...]:
        desc = mask.describe(rows=n, cols=n, **static)
        out, lse = attend(inputs[0], inputs[1], inputs[2], desc, return_lse=True)
        return desc, out, lse, *torch.autograd.grad(out, inputs, tensors[3])

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        desc, *results = step()
    for _ in range(4):
        batch = [metadata_of("hstu", n, rng) for _ in range(2)]
        with torch.no_grad():
            for key, value in on_device(batch).items():
                static[key].copy_(value)
            for x in inputs:
                x.copy_(torch.randn_like(x))
            for x in results:
                x.fill_(math.nan)
        graph.replay()
        torch.cuda.synchronize()
        check_descriptor(mask, n, batch, desc.check())
        tensors = (*(x.detach() for x in inputs), *tensors[3:])
        want = check_attention(attend, desc, dense(mask, n, batch)[:, None], tensors)
        assert all(torch.equal(a, b) for a, b in zip(results, want, strict=True))


@only_gpu
def test_a_graph_replays_with_broken_metadata(load: Any) -> None:
    mask, n = load("hstu"), 300
    static = on_device([metadata_of("hstu", n, np.random.default_rng(8))] * 2)
    mask.describe(rows=n, **static)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        desc = mask.describe(rows=n, **static)
    graph.replay()
    desc.check()
    static["history"][1] = n + 1
    graph.replay()
    with pytest.raises(cmir.MetadataError, match="of mask 1 break"):
        desc.check()


@only_gpu
def test_lengths_and_metadata_do_not_recompile(load: Any, attend: Attend) -> None:
    from triton import knobs

    mask, rng = load("hstu"), np.random.default_rng(9)
    compiled: list[str] = []

    def run(n: int, batch: int) -> None:
        desc = describe(mask, n, [metadata_of("hstu", n, rng) for _ in range(batch)])
        q, k, v, dout, _ = make_tensors(batch, (4, 2), n, n, DIM, BF16)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        torch.autograd.grad(attend(inputs[0], inputs[1], inputs[2], desc), inputs, dout)

    run(1000, 2)
    hooks: Any = knobs.runtime
    hooks.jit_post_compile_hook = lambda **what: compiled.append(str(what.get("repr")))
    try:
        for n in range(1000, 1011):
            run(n, 2)
        for batch in (3, 5):
            run(777, batch)
    finally:
        hooks.jit_post_compile_hook = None
    torch.cuda.synchronize()
    assert compiled == []


@only_gpu
def test_the_hook_that_counts_compilations_counts(load: Any) -> None:
    from triton import knobs

    compiled: list[str] = []
    hooks: Any = knobs.runtime
    hooks.jit_post_compile_hook = lambda **what: compiled.append(str(what.get("repr")))
    try:
        load("causal").describe(rows=100, tile=(16, 128), device=DEVICE)
    finally:
        hooks.jit_post_compile_hook = None
    assert any("preprocess" in what for what in compiled)


# Bad metadata --------------------------------------------------------------------------------------------------------


def test_a_broken_fact_is_named_with_its_row(load: Any) -> None:
    mask, n = load("hstu"), 300
    batch = [metadata_of("hstu", n, np.random.default_rng(seed)) for seed in range(3)]
    for metadata in batch:
        metadata["history"] = 50
        metadata["start"] = np.concatenate([np.zeros(50), segments(np.random.default_rng(0), 50, n, 9)]).astype(
            np.int32
        )
    good = on_device(batch)
    mask.describe(rows=n, **good).check()
    bad = {key: value.clone() for key, value in good.items()}
    bad["start"][1, 77] = 78
    with pytest.raises(cmir.MetadataError, match=r"of mask 1 break the declared fact .*start.* at row 77"):
        mask.describe(rows=n, **bad).check()
    bad = {key: value.clone() for key, value in good.items()}
    bad["history"][2] = n + 1
    with pytest.raises(cmir.MetadataError, match=r"of mask 2 break the declared fact .*history"):
        mask.describe(rows=n, **bad).check()


@pytest.mark.parametrize("name", ["hstu", "shared_prompt", "hstu_meta", "holes", "eviction", "reach", "scattered"])
def test_any_integers_are_safe(load: Any, attend: Attend, name: str) -> None:
    """Whatever the metadata are, nothing reads or writes out of bounds: intervals stay inside, attention ends."""
    rng = np.random.default_rng(10)
    statics = META if name == "hstu_meta" else {}
    mask, n = load(name, **statics), 300 if GPU else 40
    for _ in range(5 if GPU else 2):
        good = on_device([metadata_of(name, n, rng, statics) for _ in range(2)])
        wild = {}
        for key, value in good.items():
            anything = rng.integers(-(2**31), 2**31, tuple(value.shape))
            changed = rng.random(tuple(value.shape)) < 0.5
            wild[key] = torch.where(
                torch.tensor(changed, device=DEVICE), torch.tensor(anything, device=DEVICE), value
            ).int()
        desc = mask.describe(rows=n, **wild)
        for table in (desc.row_table, desc.col_table):
            if table is not None:
                assert 0 <= table.min() <= table.max() <= n
        q, k, v, dout, _ = make_tensors(2, (2, 1), n, n, SMALL_DIM, FP16)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        out = attend(inputs[0], inputs[1], inputs[2], desc)
        results = (out, *torch.autograd.grad(out, inputs, dout))
        assert all(bool(x.isfinite().all()) for x in results)
        if desc.signature.facts and bool(desc.status.any()):
            with pytest.raises(cmir.MetadataError):
                desc.check()
