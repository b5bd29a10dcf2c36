# pyright: basic
"""Whatever integers the metadata are, no kernel touches memory that is not its own, waits for ever, or makes a NaN.

Every address of every load, store and atomic is checked (tests/addresses.py)."""

import functools
import re
from typing import Any

import addresses
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from counts import Counts

import cmir
from cmir import zoo
from cmir.runtime.launch import launch

SMALL = {"height": 3, "width": 4, "text": 3, "radius": 2, "half": 1, "window": 5, "chunk": 4, "stride": 3, "context": 2}
SMALL |= {"tokens": 1, "tiles_y": 4, "tiles_x": 3}
LENGTHS = ((20, 20), (17, 33), (33, 1), (15, 15), (12, 12))
TILE = (16, 16)
ENDS = (-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1)


@functools.cache
def load(name: str) -> cmir.CompiledMask:
    """A mask of the zoo, its statics made small."""
    statics = re.findall(r"%(\w+): index = ", zoo.path(name).read_text())
    return zoo.load(name, **{name: value for name, value in SMALL.items() if name in statics})


def garbage(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> torch.Tensor:
    """int32: anything, the ends of the range, what is nearly right, all of one value."""
    kind = rng.integers(4)
    near = rng.integers(-3, n + 4, shape)
    if kind == 0:
        near = rng.integers(-(2**31), 2**31, shape)
    elif kind == 1:
        near = np.where(rng.random(shape) < 0.5, rng.choice(ENDS, shape), near)
    elif kind == 2:
        near = np.full(shape, rng.choice([*ENDS, n, n + 1]))
    return torch.as_tensor(near.astype(np.int32))


def metadata_for(mask: cmir.CompiledMask, rows: int, cols: int, rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for p in mask.signature.parameters:
        length = {"row": rows, "col": cols, "scalar": 0}.get(p.kind, int(rng.integers(1, 2 * max(rows, cols))))
        shape = (() if p.kind == "scalar" else (length,)) + (() if p.entries is None else (p.entries,))
        found[p.name] = garbage(rng, shape, max(rows, cols))
    return found


def check_ends(desc: Any) -> None:
    """Whatever the facts, every interval lies within its axis, and every listed tile exists."""
    for table, length in ((desc.row_table, desc.cols), (desc.col_table, desc.rows)):
        assert table is None or not table.numel() or 0 <= int(table.min()) <= int(table.max()) <= length
    for axis, others in (("row", -(-desc.cols // desc.tile[1])), ("col", -(-desc.rows // desc.tile[0]))):
        count, index = getattr(desc, f"{axis}_count"), getattr(desc, f"{axis}_index")
        for place in np.ndindex(*count.shape[:2]):
            partial, full = count[place].tolist()
            listed = [*index[place][:partial].tolist(), *index[place][index.shape[2] - full :].tolist()]
            assert all(0 <= tile < others for tile in listed) and len(set(listed)) == partial + full <= others


def attend(desc: Any) -> None:
    q, k = torch.randn(1, 1, desc.rows, 16, requires_grad=True), torch.randn(1, 1, desc.cols, 16, requires_grad=True)
    out = cmir.attention(q, k, k, desc)
    gradients = torch.autograd.grad(out.sum(), (q, k))
    assert all(bool(x.isfinite().all()) for x in (out, *gradients))


@pytest.mark.parametrize("name", zoo.NAMES)
def test_any_metadata_keep_within_memory(name: str, counts: Counts) -> None:
    mask, rng = load(name), np.random.default_rng(zoo.NAMES.index(name))
    done = 0
    for rows, cols in LENGTHS if mask.signature.parameters else ((15, 15), (12, 12)):
        given = metadata_for(mask, rows, cols, rng)
        with addresses.checked() as memory:
            try:
                desc = mask.describe(rows=rows, cols=cols, **given, device="cpu", tile=TILE)
            except cmir.MetadataError as refused:
                assert "break the fact" in str(refused)  # one about lengths alone, decided by the host
                continue
            memory.check_gaps(desc)
            check_ends(desc)
            if not done:
                attend(desc)
        done += 1
        counts("addresses checked that kernels touched, given garbage", memory.touched)
        if done == 3:
            break
    assert done


@pytest.mark.parametrize("name", ["causal", "hstu", "document", "topk_blocks", "tree_dfs", "strided"])
def test_any_sequences_keep_within_memory(name: str, counts: Counts) -> None:
    mask, rng, n = load(name), np.random.default_rng(7), 24
    for turn in range(4):
        given = metadata_for(mask, n, n, rng)
        sequences = int(rng.integers(0, 5))
        for p in mask.signature.parameters:
            if p.kind == "scalar":
                given[p.name] = garbage(rng, (sequences,), n)
            elif p.kind == "free" and turn % 2:
                given[p.name] = given[p.name], garbage(rng, (sequences + 1,), n)
        cu = garbage(rng, (sequences + 1,), n)
        other = {"cu_seqlens_k": garbage(rng, (sequences + 1,), n), "cols": n + 3} if turn > 1 else {}
        longest = {"max_seqlen": int(rng.integers(0, n))} if rng.random() < 0.5 else {}
        with addresses.checked() as memory:
            try:
                desc = mask.describe(rows=n, cu_seqlens=cu, **other, **longest, **given, tile=TILE)
            except cmir.MetadataError as refused:
                assert "no two sequences may share it" in str(refused)
                continue
            memory.check_gaps(desc)
            check_ends(desc)
            attend(desc)
        counts("addresses checked that kernels touched, given garbage", memory.touched)


@triton.jit
def _copy(source, target, offset, size):
    at = tl.arange(0, 16)
    tl.store(target + at, tl.load(source + at + offset, mask=at < size), mask=at < size)


@pytest.mark.parametrize(
    ("offset", "size", "what"), [(0, 11, "load"), (1, 10, "load"), (-1, 5, "load"), (2, 9, "load"), (0, 10, "store")]
)
def test_the_check_of_addresses_finds_what_is_outside(offset: int, size: int, what: str) -> None:
    memory = torch.zeros(40, dtype=torch.int32)
    source, target = memory[5:15], memory[20:29]  # within one allocation, which a check of allocations would allow
    with addresses.checked():
        launch(_copy, (1, 1, 1), (source, target, 0, 9), {}, {}, memory.device)
        with pytest.raises(Exception, match=f"OutOfBounds.*{what} of 4 bytes"):
            launch(_copy, (1, 1, 1), (source, target, offset, size), {}, {}, memory.device)
