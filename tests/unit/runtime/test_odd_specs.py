"""Odd specs, each with its meaning written out in Python's integers beside it: what is compiled says the same.

Nothing of the compiler is used on the side of the oracle: no parser, no interpreter, no list of operators. Numbers near
the ends of their range, negative strides under floor division, guards at and past the ends of the rows, Regions of no
row, nested quantifiers, alignments, tables of one entry, sequences of no rows or columns.
"""

import re
from collections.abc import Callable, Sequence
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import cmir

SIZES = [(7, 9), (17, 6), (1, 20), (0, 5), (5, 0)]
BIG = 2**31 - 40
Metadata = dict[str, Any]
Rule = Callable[[int, int, int, int, Any], bool]


def at(table: Sequence[int], k: int) -> int:
    """An entry; outside the table, the nearest."""
    return int(table[min(max(k, 0), len(table) - 1)])


def spec(parameters: str, *lines: str) -> str:
    return "\n".join([f"maskspec.spec @odd({parameters}) {{", *lines, "}"]) + "\n"


def region(guard: str, *clauses: str) -> str:
    name = "rows_" + re.sub(r"\W+", "_", guard)
    return "\n".join([f"maskspec.region @{name} rows [{guard}) {{", *(f"maskspec.clause {c}" for c in clauses), "}"])


NESTED = """maskspec.region @all rows [0, rows) (%i, %j) {
  %v = maskspec.exists %a in [0, w] {
    %some = maskspec.exists %b in [0 - w, 1] {
      %ab = arith.muli %a, %b : index
      %x = arith.addi %j, %ab : index
      %k = arith.subi %x, %s : index
      %p = arith.cmpi sgt, %k, %i : index
      %none = maskspec.exists %c in [3, 2] {
        %q = arith.cmpi slt, %i, %c : index
        maskspec.yield %q
      }
      %r = arith.ori %p, %none : i1
      maskspec.yield %r
    }
    %true = arith.constant true
    %all = arith.xori %some, %true : i1
    %d = arith.addi %i, %a : index
    %c3 = arith.constant 3 : index
    %m = maskspec.mod %d, %c3
    %zero = arith.constant 0 : index
    %g = arith.cmpi ne, %m, %zero : index
    %o = arith.andi %all, %g : i1
    maskspec.yield %o
  }
  maskspec.visible %v
}"""

ALIGNED = """maskspec.region @all rows [0, rows) (%i, %j) {
  %p = maskspec.position bottom_right %i
  %q = maskspec.position top_left %i
  %lo = arith.subi %p, %s : index
  %x = arith.cmpi slt, %lo, %j : index
  %y = arith.cmpi sle, %j, %p : index
  %z = arith.cmpi eq, %j, %q : index
  %xy = arith.andi %x, %y : i1
  %v = arith.ori %xy, %z : i1
  maskspec.visible %v
}"""


def ends(i: int, j: int, rows: int, cols: int, m: Any) -> bool:
    return (j < 3) if i < min(2, rows - 1) else i == rows - 1 and j >= cols - 2


def cut(i: int, j: int, rows: int, cols: int, m: Any) -> bool:
    s = m["s"]
    return j <= i if i < s else True if i == s else (i - j) % 3 == 0


def scalars(*values: int) -> list[Callable[[int, int], Metadata]]:
    return [lambda rows, cols, s=s: {"s": s} for s in values]


# (the spec, its rule, metadata by rows and columns)
ODD: dict[str, tuple[str, Rule, list[Callable[[int, int], Metadata]]]] = {
    "numbers at the ends of int32": (
        spec(
            "%s: index", region("0, rows", f"j + {BIG} <= i + s and {-BIG} <= j - i", f"i * {BIG} < j * {BIG} - {BIG}")
        ),
        lambda i, j, rows, cols, m: (j + BIG <= i + m["s"] and j - i >= -BIG) or i * BIG < j * BIG - BIG,
        scalars(BIG, BIG + 4, 2**60, -(2**60), 2**61),
    ),
    "metadata that are only compared": (
        spec("%s: index, %t: !maskspec.table<row>", region("0, rows", "s <= t[i] and j <= i", "t[i] == s")),
        lambda i, j, rows, cols, m: (m["s"] <= at(m["t"], i) and j <= i) or at(m["t"], i) == m["s"],
        [
            lambda rows, cols, s=s: {"s": s, "t": [(2**63 - 1, -(2**63), 0, s)[k % 4] for k in range(rows)]}
            for s in (2**63 - 1, -(2**63), 2**62)
        ],
    ),
    "negative strides": (
        spec(
            "%s: index",
            region(
                "0, rows",
                "(s - 2 * j) floordiv 3 <= -i and (-i) mod 3 == (5 - 4 * j) mod 3",
                "(-j) floordiv 4 == (-i) floordiv 4",
                "(-3 * j + s) mod 5 < 2 and (i - 2 * j) floordiv 7 == -1",
            ),
        ),
        lambda i, j, rows, cols, m: (
            ((m["s"] - 2 * j) // 3 <= -i and -i % 3 == (5 - 4 * j) % 3)
            or -j // 4 == -i // 4
            or ((-3 * j + m["s"]) % 5 < 2 and (i - 2 * j) // 7 == -1)
        ),
        scalars(0, 5, -11, -(2**31)),
    ),
    "quotients by scalars": (
        spec(
            "%s: index, %g: index",
            "maskspec.assume 1 <= s and 1 <= g",
            region("0, rows", "i floordiv s == j floordiv s and j mod g <= i mod g", "(i + j) floordiv (s + g) == 1"),
        ),
        lambda i, j, rows, cols, m: (
            (i // m["s"] == j // m["s"] and j % m["g"] <= i % m["g"]) or (i + j) // (m["s"] + m["g"]) == 1
        ),
        [lambda rows, cols, s=s, g=g: {"s": s, "g": g} for s, g in ((1, 1), (3, 2), (2**40, 3), (2, 2**62))],
    ),
    "guards at the ends of the rows": (
        spec("", region("-5, min(2, rows - 1)", "j < 3"), region("rows - 1, rows + 9", "cols - 2 <= j")),
        ends,
        [lambda rows, cols: {}],
    ),
    "guards at and past a scalar": (
        spec(
            "%s: index",
            region("0, s", "j <= i"),
            region("s, s + 1", "0 <= j"),
            region("s + 1, rows", "(i - j) mod 3 == 0"),
        ),
        cut,
        [
            lambda rows, cols, k=k: {"s": k(rows)}
            for k in (lambda r: 0, lambda r: r - 1, lambda r: r + 4, lambda r: -(2**40))
        ],
    ),
    "Regions of no row": (
        spec(
            "%s: index",
            "maskspec.assume 0 <= s",
            region("rows, rows + s", "j <= i"),
            region("0 - s, 0", "j <= i"),
            region("0, rows", "j < s"),
        ),
        lambda i, j, rows, cols, m: j < m["s"],
        scalars(0, 3, 100),
    ),
    "nested quantifiers": (
        spec("%s: index, %w: index = 2", NESTED),
        lambda i, j, rows, cols, m: any(
            all(not j + a * b - m["s"] > i for b in range(-2, 2)) and (i + a) % 3 != 0 for a in range(3)
        ),
        scalars(0, 4, -3),
    ),
    "alignments": (
        spec("%s: index", ALIGNED),
        lambda i, j, rows, cols, m: i + cols - rows - m["s"] < j <= i + cols - rows or j == i,
        scalars(0, 1, 3, -2, 2**62),
    ),
    "tables of one entry": (
        spec(
            "%f: !maskspec.table<free>, %p: !maskspec.table<free x 2>",
            region("0, rows", "f[min(i, 0)] <= j and j < f[j mod 1] + 3", "p[-j, 1] == i + p[0, 0]"),
        ),
        lambda i, j, rows, cols, m: m["f"][0] <= j < m["f"][0] + 3 or m["p"][0][1] == i + m["p"][0][0],
        [lambda rows, cols, f=f: {"f": [f], "p": [[-1, f]]} for f in (0, 3, -7)],
    ),
    "a table that jumps": (
        spec(
            "%t: !maskspec.table<row>",
            "maskspec.nondecreasing t",
            region("0, rows", "t[i] <= j and j < t[i + 1] + 2", "3 * j == 2 * t[i] + 1"),
        ),
        lambda i, j, rows, cols, m: at(m["t"], i) <= j < at(m["t"], i + 1) + 2 or 3 * j == 2 * at(m["t"], i) + 1,
        [
            lambda rows, cols: {"t": sorted((k * 7) % 11 - 2 for k in range(rows))},
            lambda rows, cols: {"t": sorted((-(2**60), 1, 4, 2**60)[k % 4] for k in range(rows))},
        ],
    ),
    "constant tables": (
        spec(
            "%r: index = 5",
            "maskspec.constants @half for d in [-5, 6) : isqrt(r * r - d * d)",
            region("0, rows", "abs(i - j) <= 2", "abs(j - half[i - 5]) == abs(i - 9) mod 4"),
        ),
        lambda i, j, rows, cols, m: (
            abs(i - j) <= 2 or abs(j - at([isqrt(25 - d * d) for d in range(-5, 6)], i)) == abs(i - 9) % 4
        ),
        [lambda rows, cols: {}],
    ),
}


def brute(rule: Rule, rows: int, cols: int, metadata: Metadata) -> np.ndarray:
    return np.array([rule(i, j, rows, cols, metadata) for i in range(rows) for j in range(cols)], bool).reshape(
        rows, cols
    )


def tensors(metadata: Metadata) -> dict[str, Any]:
    return {name: torch.tensor(value, dtype=torch.int64) for name, value in metadata.items()}


@pytest.mark.parametrize("test", ["auto", "bits"])
@pytest.mark.parametrize("name", ODD)
def test_what_is_compiled_says_what_python_says(name: str, test: Literal["auto", "bits"], tmp_path: Path) -> None:
    text, rule, metadata = ODD[name]
    (tmp_path / "odd.mlir").write_text(text)
    mask = cmir.compile(tmp_path / "odd.mlir", test=test)
    for number, (rows, cols) in enumerate(SIZES):
        for draw in metadata:
            given = draw(rows, cols)
            want = brute(rule, rows, cols, given)
            desc = mask.describe(rows=rows, cols=cols, **tensors(given), tile=(16, 16)).check()
            where = f"{name}: {rows} x {cols}, {given}"
            np.testing.assert_array_equal(mask.dense(rows=rows, cols=cols, **tensors(given)), want, where)
            np.testing.assert_array_equal(desc.to_dense().numpy().reshape(rows, cols), want, where)
            assert desc.area.tolist() == [want.sum()], where
            for axis, table, shown in (("rows", desc.row_table, want), ("cols", desc.col_table, want.T)):
                if table is not None and mask.slots[axis] is not None:
                    position, (lo, hi) = np.arange(shown.shape[1]), table[0].numpy().transpose(1, 0, 2)[..., None]
                    np.testing.assert_array_equal(((lo <= position) & (position < hi)).any(0), shown, where)
        if number == 0:
            compare_attention(desc, torch.from_numpy(want))


def compare_attention(desc: Any, mask: torch.Tensor) -> None:
    """Outputs and gradients of the last mask with those of a softmax that is written out."""
    torch.manual_seed(0)
    rows, cols = mask.shape
    q, k, v = (torch.randn(1, 1, n, 16, requires_grad=True) for n in (rows, cols, cols))
    out = cmir.attention(q, k, v, desc, scale=0.3)
    weights = torch.exp((q @ k.mT) * 0.3) * mask
    total = weights.sum(-1, keepdim=True)
    want = weights / torch.where(total > 0, total, 1) @ v
    upstream = torch.randn_like(want)
    for a, b in zip(
        (out, *torch.autograd.grad(out, (q, k, v), upstream)),
        (want, *torch.autograd.grad(want, (q, k, v), upstream)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize(
    "name", [name for name, (text, *_) in ODD.items() if text.startswith("maskspec.spec @odd(%s: index) ")]
)
def test_packs_of_odd_specs(name: str, tmp_path: Path) -> None:
    """Sequences of several lengths, none among them, each with its own scalar."""
    text, rule, metadata = ODD[name]
    (tmp_path / "odd.mlir").write_text(text)
    mask = cmir.compile(tmp_path / "odd.mlir")
    lengths = [(7, 9), (0, 3), (4, 0), (0, 0), (12, 5)]
    given = [metadata[n % len(metadata)](*size) for n, size in enumerate(lengths)]
    starts = np.cumsum([(0, 0), *lengths], axis=0)
    want = np.zeros(starts[-1], bool)
    for (row, col), (rows, cols), own in zip(starts, lengths, given, strict=False):
        want[row : row + rows, col : col + cols] = brute(rule, rows, cols, own)
    rows, cols = (int(n) for n in starts[-1])
    cu_rows, cu_cols = (torch.from_numpy(starts[:, axis].astype(np.int32)) for axis in (0, 1))
    own = torch.tensor([g["s"] for g in given])
    desc = mask.describe(rows=rows, cols=cols, cu_seqlens=cu_rows, cu_seqlens_k=cu_cols, s=own, tile=(16, 16)).check()
    np.testing.assert_array_equal(desc.to_dense().numpy().reshape(rows, cols), want, name)
