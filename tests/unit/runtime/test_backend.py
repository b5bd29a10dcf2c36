"""Which kernels `cmir.attention` runs, and what it says where those that were asked for cannot run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import cmir
from cmir import zoo
from cmir.runtime import hopper

CUDA = torch.device("cuda", 0)


def small() -> tuple[torch.Tensor, Any]:
    return torch.zeros(1, 1, 8, 16), zoo.load("causal").describe(rows=8, tile=(16, 16))


def test_gluon_needs_hopper() -> None:
    q, desc = small()
    with pytest.raises(cmir.CmirError, match=r"backend 'gluon': its kernels need a Hopper GPU, got cpu; leave"):
        cmir.attention(q, q, q, desc, backend="gluon")


def test_the_environment_asks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    q, desc = small()
    monkeypatch.setenv("CMIR_BACKEND", "gluon")
    with pytest.raises(cmir.CmirError, match="need a Hopper GPU"):
        cmir.attention(q, q, q, desc)
    assert cmir.attention(q, q, q, desc, backend="triton").shape == q.shape
    monkeypatch.setenv("CMIR_BACKEND", "")
    assert cmir.attention(q, q, q, desc).shape == q.shape


def test_unknown_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    q, desc = small()
    with pytest.raises(cmir.CmirError, match="backend: expected triton or gluon, got 'cutlass'"):
        cmir.attention(q, q, q, desc, backend="cutlass")  # pyright: ignore[reportCallIssue, reportArgumentType]
    monkeypatch.setenv("CMIR_BACKEND", "fast")
    with pytest.raises(cmir.CmirError, match="CMIR_BACKEND: expected triton or gluon, got 'fast'"):
        cmir.attention(q, q, q, desc)


@pytest.mark.parametrize(
    ("dtype", "dims", "tile", "why_not"),
    [
        (torch.bfloat16, (128, 64), (128, 128), None),
        (torch.float32, (128, 128), (128, 128), "its kernels take bfloat16 and float16, got float32"),
        (torch.float16, (64, 32), (128, 128), "its kernels take head dims from 48 to 256, got 64 and 32"),
        (torch.float16, (64, 64), (128, 64), "its kernels take tiles of 128 x 128, the descriptor has 128 x 64"),
    ],
)
def test_what_hopper_takes(
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype,
    dims: tuple[int, int],
    tile: tuple[int, int],
    why_not: str | None,
) -> None:
    monkeypatch.setattr(hopper, "interpreting", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(hopper, "_why_not", hopper._why_not.__wrapped__)  # pyright: ignore[reportPrivateUsage]
    q, v = (SimpleNamespace(device=CUDA, dtype=dtype, shape=(1, 1, 8, dim)) for dim in dims)
    module = SimpleNamespace(__name__="offered")
    hopper.offer(module, lambda: "")  # pyright: ignore[reportArgumentType]
    desc: Any = SimpleNamespace(tile=tile, module=module)
    assert hopper.choose(None, q, v, desc) == ("triton" if why_not else "gluon")  # pyright: ignore[reportArgumentType]
    if why_not:
        with pytest.raises(cmir.CmirError, match=f"backend 'gluon': {why_not}; leave"):
            hopper.choose("gluon", q, v, desc)  # pyright: ignore[reportArgumentType]


STRIPES = """
maskspec.spec @stripes(%h: index) {
  maskspec.assume 0 <= h and h <= rows
  maskspec.region @all rows [0, h) {
    maskspec.clause j < 5
    maskspec.clause 20 <= j and j < 25
    maskspec.clause 40 <= j and j < 45
    maskspec.clause 60 <= j and j < 65
    maskspec.clause 80 <= j and j < 85
  }
}
"""


def test_descriptors_serve_both_backends(tmp_path: Path) -> None:
    """Portable kernels test the one slot of a column, those of Hopper the live ones of a row: five, of which a tile of
    16 columns has one or two."""
    path = tmp_path / "stripes.mlir"
    path.write_text(STRIPES)
    mask = cmir.compile(path)
    assert mask.slots == {"rows": 5, "cols": 1} and set(mask.tests.values()) == {"cols"}
    assert "live words of 5 slot(s) of rows" in mask.source("gluon")
    desc = mask.describe(rows=40, cols=96, h=30, tile=(16, 16))
    assert hopper.tested(desc, "forward")[3] and not hopper.tested(desc, "backward")[3]
    assert desc.row_count[0, :, 0].tolist() == [6, 6, 0]
    words = desc.row_live[0, 0, :6]
    slots = [(word & 0xFFF, word >> 12 & 0xFFF) for word in words.tolist()]
    assert desc.row_index[0, 0, :6].tolist() == [0, 1, 2, 3, 4, 5]
    assert slots == [(0, 1), (1, 2), (2, 3), (3, 4), (3, 4), (4, 5)]


@pytest.mark.parametrize(
    ("shape", "stride", "readable"),
    [
        ((2, 4, 8, 64), (2048, 512, 64, 1), True),
        ((2, 4, 8, 64), (2048, 64, 256, 1), True),
        ((1, 1, 8, 64), (3, 5, 64, 1), True),
        ((2, 4, 8, 64), (2048, 512, 68, 1), False),
        ((2, 4, 8, 64), (0, 512, 64, 1), False),
        ((2, 4, 8, 64), (4096, 1024, 128, 2), False),
    ],
)
def test_what_tma_reads(shape: tuple[int, ...], stride: tuple[int, ...], readable: bool) -> None:
    assert hopper.is_readable(torch.empty(8192).as_strided(shape, stride)) is readable


def test_tensors_without_values() -> None:
    with pytest.raises(cmir.CmirError) as raised:
        zoo.load("causal").describe(rows=8, device="meta")
    assert str(raised.value) == "tensors on meta have no values to read; give CPU or CUDA tensors"
