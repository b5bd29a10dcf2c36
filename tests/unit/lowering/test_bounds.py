"""Tiles that the ranges of a rule decide: never wrongly, and nearly all of those that are empty or full."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo
from cmir.layouts import Patch, Residue, Table
from cmir.runtime.loader import load
from cmir.runtime.mask import CompiledMask

TILE_M, TILE_N = 8, 16


PROBE = """

@triton.jit
def probe(out, rows, cols, width, height{parameters}):
    z = tl.program_id(0) * 0
    tile, chunk = tl.program_id(0), tl.program_id(1)
    i = tl.minimum(tile * 8 + tl.arange(0, 8), rows - 1)
    t = chunk * 16 + tl.arange(0, 16)
    j = tl.minimum(t[None, :] * 16 + tl.arange(0, 16)[:, None], cols - 1)
    own = tile_rows(i, z, rows, cols{arguments})
    may, may_not = tiles_visible(own, j, z, rows, cols{arguments})
    tl.store(out + tile * width + t, may.to(tl.int32))
    tl.store(out + (height + tile) * width + t, may_not.to(tl.int32))
"""


def decided(mask: CompiledMask, rows: int, cols: int, *metadata: Any) -> tuple[np.ndarray, np.ndarray]:
    """(may see, may not see) of every tile, as the generated function says."""
    # Flags are known at compile time.
    words = [str(value) if isinstance(value, bool) else f"meta_{k}" for k, value in enumerate(metadata)]
    metadata = tuple(value for value in metadata if not isinstance(value, bool))
    parameters = "".join(f", {word}" for word in words if word.startswith("meta"))
    arguments = "".join(f", {word}" for word in words)
    module: Any = load(mask.source() + PROBE.format(parameters=parameters, arguments=arguments))
    tiles = -(-cols // TILE_N)
    out = torch.zeros(2, -(-rows // TILE_M), -(-tiles // 16) * 16, dtype=torch.int32)
    module.probe[out.shape[1], out.shape[2] // 16](out, rows, cols, out.shape[2], out.shape[1], *metadata)
    may, may_not = out.numpy()[:, :, :tiles] > 0
    return may, may_not


def states(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(some pair is visible, some is not) of every tile."""
    rows, cols = (range(0, n, size) for n, size in zip(dense.shape, (TILE_M, TILE_N), strict=True))
    tiles = [[dense[r : r + TILE_M, c : c + TILE_N] for c in cols] for r in rows]
    return np.array([[t.any() for t in row] for row in tiles]), np.array([[not t.all() for t in row] for row in tiles])


def check(mask: CompiledMask, rows: int, cols: int, arguments: tuple[Any, ...], **metadata: Any) -> tuple[int, int]:
    """How many tiles are asked pair by pair, and how many are partial. No tile is decided wrongly."""
    some, some_not = states(mask.dense(rows=rows, cols=cols, **metadata))
    may, may_not = decided(mask, rows, cols, *arguments)
    assert not (some & ~may).any(), "a tile with a visible pair is passed over"
    assert not (some_not & ~may_not).any(), "a tile with a hidden pair is taken for full"
    return int((may & may_not).sum()), int((some & some_not).sum())


def test_patches_of_clear():
    statics = {"radius": 5, "height": 24, "width": 32, "text": 16}
    layout = Patch(("height", "width"), (2, 8), after="text")  # a patch is one column tile, half of them a row tile
    mask = cmir.compile(zoo.path("clear"), statics=statics, layout=layout)
    asked, partial = check(mask, 784, 784, ())
    assert partial <= asked <= 1.25 * partial


def test_a_stride_is_asked_where_it_may_be_seen(tmp_path: Path):
    (tmp_path / "stride.mlir").write_text(
        "maskspec.spec @stride() {\n  maskspec.region @all rows [0, rows) {\n"
        "    maskspec.clause j <= i and (i - j) mod 5 == 0\n    maskspec.clause j <= i and i < j + 9\n  }\n}\n"
    )
    mask = cmir.compile(tmp_path / "stride.mlir")
    asked, partial = check(mask, 90, 130, ())
    assert asked == partial  # what lies behind the diagonal is not asked


@pytest.mark.parametrize("seed", range(2))
def test_tables_and_selects(tmp_path: Path, seed: int):
    (tmp_path / "tables.mlir").write_text(
        "maskspec.spec @tables(%s: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>) {\n"
        "  maskspec.region @head rows [0, s) {\n    maskspec.clause t[i] * 2 <= c[j] and (i + j) floordiv 3 < 20\n"
        "    maskspec.clause max(i, c[j]) - min(t[i], j) < 4 and (t[i] + j) mod 2 == 1\n  }\n"
        "  maskspec.region @tail rows [s, rows) {\n    maskspec.clause select(j < c[j], i, j) == select(i < s, j, i)\n"
        "    maskspec.clause c[j] < t[i] - j and i * 3 - j * 2 <= 5\n  }\n}\n"
    )
    mask = cmir.compile(tmp_path / "tables.mlir")
    rng = np.random.default_rng(seed)
    t, c = (rng.integers(-3, 60, n).astype(np.int32) for n in (75, 110))
    arguments = (30, 0, False, torch.from_numpy(t), 0, torch.from_numpy(c), 0)
    asked, _ = check(mask, 75, 110, arguments, s=30, t=t, c=c)
    assert asked < 10 * 7


def test_a_permutation_that_is_metadata():
    mask = cmir.compile(zoo.path("causal"), layout=Table("order"))
    order = np.arange(96).reshape(4, 24)[::-1].ravel().astype(np.int32)
    asked, partial = check(mask, 96, 96, (torch.from_numpy(order), 0, 96), order=order)
    assert asked == partial


def test_residues_of_a_stride():
    spec = cmir.MaskSpec("strided")
    i, j = spec.i, spec.j
    spec.assume(spec.rows == spec.cols)
    spec.region("all", 0, spec.rows, visible=(j <= i) & ((i - j < 4) | ((i - j) % 4 == 0)))
    mask = cmir.compile(spec, layout=Residue(of=4))
    assert mask.slots["rows"] is not None  # intervals say it: nothing is asked at all


def test_a_search_of_no_index_is_one_number():
    """Where `d[j] >= 5` begins is searched once for all rows."""
    spec = cmir.MaskSpec("after")
    d, i, j = spec.table("d", per="free"), spec.i, spec.j
    spec.assume(d.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(d[j] >= 5) & ((i + j) % 3 == 0) | (d[j] >= 9))
    mask = cmir.compile(spec, test="bits")
    entries = torch.tensor([0] * 20 + [5] * 30 + [7] * 20 + [9] * 20)
    asked, partial = check(mask, 50, 90, (entries, 0, 90), d=entries)
    assert asked < 50 // TILE_M * 90 // TILE_N and partial <= asked
    desc = mask.describe(rows=50, cols=90, d=entries, tile=(32, 32))
    np.testing.assert_array_equal(desc.to_dense()[0, 0].numpy(), mask.dense(rows=50, cols=90, d=entries))
