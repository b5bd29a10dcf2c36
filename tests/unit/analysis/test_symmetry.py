"""Symmetric rules are found, others are not, and a mask that is one shares a table only as far as it is."""

from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo
from cmir.analysis.symmetry import is_symmetric
from cmir.dialects.maskspec import SpecOp
from cmir.passes.dnf_normalize import DnfNormalize
from cmir.tools.registry import Registry

TILE = (16, 32)


def spec(rule: str) -> cmir.MaskSpec:
    """A mask of one Region whose rule is a Python expression."""
    s = cmir.MaskSpec("one")
    i, j, rows, cols = s.i, s.j, s.rows, s.cols
    doc, row, w, column = s.table("doc", "free"), s.table("row", "row"), s.scalar("w"), s.scalar("column")
    s.assume(w >= 0)
    names = {"s": s, "i": i, "j": j, "rows": rows, "cols": cols, "doc": doc, "row": row, "w": w, "column": column}
    s.region("all", 0, rows, visible=eval(rule, names))
    return s


def normal(s: cmir.MaskSpec) -> SpecOp:
    module = s.module()
    DnfNormalize().apply(Registry.installed().context(), module)
    return next(op for op in module.walk() if isinstance(op, SpecOp))


@pytest.mark.parametrize(
    ("rule", "symmetric"),
    [
        ("doc[i] == doc[j]", True),
        ("abs(i - j) <= w", True),
        ("(i - j < w) & (j - i < w)", True),
        ("(i - j < w) & (j - i <= w)", False),
        ("(i < column) | (j < column)", True),
        ("(i < column) & (j >= 0)", False),
        ("(i + j) % 3 == 1", True),
        ("(i - j) % 3 == 1", False),
        ("(i - j) % 3 == 0", True),
        ("j <= i", False),
        ("row[i] <= j", False),
        ("i + j < cols", True),
        ("i + j < rows + cols", True),
        ("i == j", True),
        ("s.exists(-2, 2, lambda d: (j // 4 == i // 4 + d) & (abs(i - j) <= 9))", True),
        ("s.exists(-2, 1, lambda d: (j // 4 == i // 4 + d) & (abs(i - j) <= 9))", False),
        ("(i < 5) & (j < 5) & (j <= i) | (i < 5) & (j < 5) & (i < j)", True),
    ],
)
def test_rules(rule: str, symmetric: bool) -> None:
    s = spec(rule)
    assert is_symmetric(normal(s)) == symmetric
    # And the oracle agrees that it is one, or that it is none.
    mask = cmir.compile(s)
    rng = np.random.default_rng(3)
    differ = False
    for _ in range(20):
        n = int(rng.integers(1, 15))
        given: dict[str, Any] = {"w": int(rng.integers(0, 6)), "column": int(rng.integers(-2, n + 2))}
        given |= {"doc": rng.integers(0, 3, n), "row": rng.integers(0, n, n)}
        dense = mask.dense(rows=n, **given)
        differ |= not np.array_equal(dense, dense.T)
    assert differ != symmetric


def test_regions_are_part_of_the_rule() -> None:
    s = cmir.MaskSpec("two")
    h = s.scalar("h")
    s.assume(h >= 0, h <= s.rows)
    s.region("first", 0, h, visible=s.j < h)
    s.region("second", h, s.rows, visible=s.j >= h)
    assert is_symmetric(normal(s))
    t = cmir.MaskSpec("two")
    h = t.scalar("h")
    t.assume(h >= 0, h <= t.rows)
    t.region("first", 0, h, visible=t.j < h)
    t.region("second", h, t.rows, visible=True)
    assert not is_symmetric(normal(t))


CLEAR = {"radius": 3, "height": 6, "width": 7, "text": 3}


@pytest.mark.parametrize(
    ("name", "statics", "rows"), [("clear", CLEAR, 45), ("window_two_sided", {}, 70), ("full", {}, 33)]
)
def test_a_symmetric_mask_has_one_table(name: str, statics: dict[str, int], rows: int) -> None:
    mask = zoo.load(name, **statics)
    assert "symmetric" in mask.ir
    desc = mask.describe(rows=rows, device="cpu", tile=TILE).check()
    assert desc.row_table is not None and desc.col_table is not None
    assert desc.row_table.data_ptr() == desc.col_table.data_ptr()
    dense = torch.from_numpy(mask.dense(rows=rows))
    assert torch.equal(desc.to_dense()[0, 0], dense)
    assert desc.area.tolist() == [int(dense.sum())]
    q, k, v = (torch.randn(1, 2, rows, 16, requires_grad=True) for _ in range(3))
    out = cmir.attention(q, k, v, desc)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    torch.testing.assert_close(out, want, atol=1e-5, rtol=1e-5)
    gradient = torch.randn_like(out)
    ours, theirs = (torch.autograd.grad(x, (q, k, v), gradient) for x in (out, want))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_other_numbers_of_rows_and_columns_have_two_tables() -> None:
    mask = zoo.load("window_two_sided")
    desc = mask.describe(rows=50, cols=63, device="cpu", tile=TILE).check()
    assert desc.row_table is not None and desc.col_table is not None
    assert desc.row_table.data_ptr() != desc.col_table.data_ptr()
    assert torch.equal(desc.to_dense()[0, 0], torch.from_numpy(mask.dense(rows=50, cols=63)))


def test_a_batch_of_symmetric_masks() -> None:
    mask = cmir.compile(spec("abs(i - j) <= w"))
    given = {"doc": torch.zeros(1, dtype=torch.int32), "row": torch.zeros(40, dtype=torch.int32), "column": 0}
    desc = mask.describe(rows=40, w=torch.tensor([1, 5, 39]), tile=TILE, **given).check()
    assert desc.row_table is not None and desc.col_table is not None
    assert desc.row_table.data_ptr() == desc.col_table.data_ptr()
    i = torch.arange(40)
    for z, w in enumerate((1, 5, 39)):
        assert torch.equal(desc.to_dense()[z, 0], (i[:, None] - i[None, :]).abs() <= w)
