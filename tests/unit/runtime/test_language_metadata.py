# pyright: basic
"""Metadata of every form, a mask per sequence and per head: the kernels against the rule, run as it was written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.runtime.reference import reference_attention

ROWS, COLS = 37, 45
Metadata = dict[str, Any]


def dense(mask: cmir.CompiledMask, metadata: Metadata, dims: dict[str, int], batch: tuple[int, ...]) -> torch.Tensor:
    """bool [B, H, ROWS, COLS] of the rule; `dims` gives each metadatum's dimensions without the batch."""
    out = torch.zeros(*(*batch, 1, 1)[:2], ROWS, COLS, dtype=torch.bool)
    for b, h in np.ndindex(*out.shape[:2]):
        mine: Metadata = {}
        for name, value in metadata.items():
            at = (b, h)[: value.dim() - dims[name]] if isinstance(value, torch.Tensor) else ()
            at = tuple(min(k, size - 1) for k, size in zip(at, value.shape if at else (), strict=False))
            mine[name] = value[at].numpy() if isinstance(value, torch.Tensor) else value
            mine[name] = int(mine[name]) if dims[name] == 0 else mine[name]
        out[b, h] = torch.from_numpy(mask.dense(rows=ROWS, cols=COLS, **mine))
    return out


def check(mask: cmir.CompiledMask, metadata: Metadata, dims: dict[str, int], batch: tuple[int, ...]) -> None:
    """Area, and attention forward and backward, against the rule."""
    want = dense(mask, metadata, dims, batch)
    desc = mask.describe(rows=ROWS, cols=COLS, tile=(16, 16), **metadata)
    desc.check()
    np.testing.assert_array_equal(desc.area.reshape(-1).numpy(), want.sum((-2, -1)).reshape(-1).numpy())
    torch.manual_seed(0)
    heads = 2
    q = torch.randn(want.shape[0], heads, ROWS, 16, requires_grad=True)
    k, v = (torch.randn(want.shape[0], heads, COLS, 16, requires_grad=True) for _ in range(2))
    grad = torch.randn(want.shape[0], heads, ROWS, 16)
    out = cmir.attention(q, k, v, desc)
    got = [out, *torch.autograd.grad(out, (q, k, v), grad)]
    ref, _ = reference_attention(q, k, v, want.expand(-1, heads, -1, -1) if want.shape[1] == 1 else want)
    for a, b in zip(got, [ref, *torch.autograd.grad(ref, (q, k, v), grad)], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def ints(rng: np.random.Generator, lo: int, hi: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(lo, hi, shape).astype(np.int32))


@pytest.mark.parametrize("batch", [(), (2,), (2, 2)])
def test_segments_and_their_owners(batch: tuple[int, ...]) -> None:
    """Ids per row and per column, look-ups by id, scalars that differ by head, rows aligned with the last columns."""
    spec = cmir.MaskSpec("segments")
    i, j = spec.i, spec.j
    mine, theirs = spec.table("mine", per="row"), spec.table("theirs", per="col")
    limit, chunk, sink = spec.table("limit", per="free"), spec.scalar("chunk"), spec.scalar("sink")
    spec.assume(mine.contiguous(), theirs.contiguous(), chunk >= 1, sink >= 0)
    spec.assume(lambda k: limit[k] >= 0, entries=(0, 99))
    same = (mine[i] == theirs[j]) & (j <= spec.position("bottom_right"))
    chunks = (i // chunk == j // chunk) & (j < limit[mine[i]])
    spec.region("all", 0, spec.rows, visible=same | chunks | (j < sink))
    mask = cmir.compile(spec)
    assert mask.slots["rows"] == 3
    rng = np.random.default_rng(7)

    def ids(length: int) -> torch.Tensor:
        return (torch.from_numpy(rng.random((*batch, length)) < 0.2)).cumsum(-1).to(torch.int32)

    metadata: Metadata = {
        "mine": ids(ROWS),
        "theirs": ids(COLS),
        "limit": ints(rng, 0, COLS, *batch[:1], 9),
        "chunk": ints(rng, 1, 9, *batch),
        "sink": 2,
    }
    check(mask, metadata, {"mine": 1, "theirs": 1, "limit": 1, "chunk": 0, "sink": 0}, batch)
    broken: Metadata = metadata | {"chunk": torch.zeros_like(metadata["chunk"])}
    with pytest.raises(cmir.CmirError, match="0 < chunk"):
        mask.describe(rows=ROWS, cols=COLS, tile=(16, 16), **broken).check()


@pytest.mark.parametrize("batch", [(), (2,), (2, 2), (1, 2)])
def test_slot_lists(batch: tuple[int, ...]) -> None:
    spec = cmir.MaskSpec("slot_list")
    i, j = spec.i, spec.j
    lo, hi = spec.table("lo", per="row", entries=3), spec.table("hi", per="row", entries=3)
    width = spec.table("width", per="free", entries=2)
    slots = spec.exists(0, 2, lambda t: (lo[i, t] <= j) & (j < hi[i, t]))
    spec.region("all", 0, spec.rows, visible=slots | ((j < width[i // 8, 1]) & (width[i // 8, 0] <= j)))
    mask = cmir.compile(spec)
    assert mask.slots == {"rows": 4, "cols": None}
    rng = np.random.default_rng(len(batch))
    start = ints(rng, -3, COLS, *batch, ROWS, 3)
    metadata = {
        "lo": start,
        "hi": start + ints(rng, 0, 9, *batch, ROWS, 3),
        "width": ints(rng, 0, 9, *batch[:1], 6, 2),  # shared by heads
    }
    check(mask, metadata, {"lo": 2, "hi": 2, "width": 2}, batch)


def counted() -> cmir.MaskSpec:
    """A slot list with as many slots as a static says."""
    spec = cmir.MaskSpec("counted")
    i, j = spec.i, spec.j
    slots = spec.static("slots", 3)
    lo, hi = (spec.table(name, per="row", entries=slots) for name in ("lo", "hi"))
    assert lo.entries == 3
    spec.region("all", 0, spec.rows, visible=spec.exists(0, slots - 1, lambda t: (lo[i, t] <= j) & (j < hi[i, t])))
    return spec


@pytest.mark.parametrize("slots", [None, 2, 5])
def test_a_static_counts_the_slots(slots: int | None, tmp_path: Path) -> None:
    spec, k = counted(), slots or 3
    text = tmp_path / "counted.mlir"
    text.write_text(str(spec))
    assert "%lo: !maskspec.table<row x slots>" in text.read_text()
    rng = np.random.default_rng(k)
    start = ints(rng, -3, COLS, ROWS, k)
    metadata: Metadata = {"lo": start, "hi": start + ints(rng, 0, 9, ROWS, k)}
    for source in (spec, text):
        mask = cmir.compile(source, statics=None if slots is None else {"slots": slots})
        assert mask.slots == {"rows": k, "cols": None}
        check(mask, metadata, {"lo": 2, "hi": 2}, ())
        wrong = metadata | {"hi": metadata["hi"][:, 1:]}
        with pytest.raises(cmir.CmirError, match=rf"that is {k} integers in each entry"):
            mask.describe(rows=ROWS, cols=COLS, tile=(16, 16), **wrong)
        with pytest.raises(cmir.CmirError, match=rf"{ROWS} lists, one per row, of {k} ints, got int32 of shape"):
            mask.dense(rows=ROWS, cols=COLS, **wrong)


def test_a_static_that_counts_slots_is_checked_when_it_is_overridden() -> None:
    for slots, message in ((0, "got slots = 0"), (4097, "got slots = 4097"), (2**40, "does not fit 32 bits")):
        with pytest.raises(cmir.SpecError, match=message):
            cmir.compile(counted(), statics={"slots": slots})
    last = cmir.MaskSpec("last")
    slots = last.static("slots", 3)
    sel = last.table("sel", per="row", entries=slots)
    last.region("all", 0, last.rows, visible=(last.j == sel[last.i, slots - 1]) | (last.j == sel[last.i, 2]))
    metadata: Metadata = {"sel": [[4, 1], [0, 2], [3, 3]]}  # the third number of two is the second
    assert cmir.compile(last, statics={"slots": 2}).dense(rows=3, cols=4, **metadata).argmax(1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("batch", [(), (2, 2)])
def test_what_no_interval_says_of_lists_and_divisors(batch: tuple[int, ...]) -> None:
    """A stride of each head's own, and a number of an entry that depends on the column: packed bits."""
    spec = cmir.MaskSpec("strided")
    i, j = spec.i, spec.j
    stride, sel = spec.scalar("stride"), spec.table("sel", per="row", entries=3)
    spec.assume(stride >= 1)
    spec.region("all", 0, spec.rows, visible=(j <= i) & (((i - j) % stride == 0) | (sel[i, j % 3] == j // 4)))
    mask = cmir.compile(spec)
    assert mask.slots == {"rows": None, "cols": None}
    rng = np.random.default_rng(3)
    metadata: Metadata = {"stride": ints(rng, 1, 7, *batch), "sel": ints(rng, 0, 9, *batch, ROWS, 3)}
    check(mask, metadata, {"stride": 0, "sel": 2}, batch)
