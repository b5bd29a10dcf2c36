"""Numbers of a pair that are kept in 32 bits: rules hold at the last of 2^30 rows and columns as at the first."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.lowering.widths import LENGTH
from cmir.runtime.loader import load
from cmir.runtime.metadata import MAX_LENGTH

INT32, INT64 = 2**31, 2**63

PROBE = """

@triton.jit
def probe(out, rows_at, cols_at, rows, cols{parameters}, N: tl.constexpr):
    z = tl.program_id(0) * 0
    i = tl.load(rows_at + tl.arange(0, N))[None, :, None]
    j = tl.load(cols_at + tl.arange(0, N))[None, None, :]
    own = pair_rows(i, z, rows, cols{arguments})
    seen = (pair_visible(own, i, j, z, rows, cols{arguments}) & (i >= 0) & (j >= 0)).to(tl.int32)
    byte = byte_visible(own, i, j // 8 * 8, z, rows, cols{arguments})
    seen |= ((byte >> (j % 8)) & 1) << 1
    tl.store(out + tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :], seen)
"""


def positions(seed: int = 0) -> np.ndarray:
    """64 rows or columns: the first, the last, and some between."""
    ends = [0, 1, 2, 3, 7, 8, 15, 16, 127, 128, 2**15, 2**16 + 1, 2**29, *(LENGTH - 1 - k for k in range(8))]
    some = np.random.default_rng(seed).integers(0, LENGTH, 64 - len(ends))
    return np.array([*ends, *some], dtype=np.int32)


def asked(mask: cmir.CompiledMask, scalars: list[int], lengths: tuple[int, int] = (LENGTH, LENGTH)) -> np.ndarray:
    """What the generated rule of a pair says at `positions`, of a mask whose metadata are scalars; so do its bytes."""
    names = [f"meta_{k}" for k in range(len(scalars))]
    module: Any = load(
        mask.source()
        + PROBE.format(
            parameters="".join(f", {name}" for name in names),
            arguments="".join(f", {name}, 0, True" for name in names),
        )
    )
    rows = torch.from_numpy(positions())
    out = torch.zeros(64, 64, dtype=torch.int32)
    metadata = [torch.tensor([value], dtype=torch.int64) for value in scalars]
    module.probe[(1,)](out, rows, rows, *lengths, *metadata, N=64)
    seen = out.numpy()
    np.testing.assert_array_equal(seen & 1, seen >> 1, err_msg="a byte is not its pairs")
    return seen & 1 > 0


Rule = Callable[..., Any]


def compiled(rule: Rule, scalars: int = 0) -> cmir.CompiledMask:
    spec = cmir.MaskSpec("rule")
    values = [spec.scalar(f"s{k}") for k in range(scalars)]
    spec.region("all", 0, spec.rows, visible=rule(spec.i, spec.j, *values))
    return cmir.compile(spec, test="bits")


def expected(rule: Rule, *values: int) -> np.ndarray:
    """The rule on Python's integers, which have no width."""
    at = [int(p) for p in positions()]
    return np.array([[bool(rule(i, j, *values)) for j in at] for i in at])


RULES: dict[str, Rule] = {
    "multiples beyond 32 bits": lambda i, j: i * 3 - j * 2 <= 5,
    "a sum of multiples": lambda i, j: (i * 2 + j * 2 - 2**30) % 5 == 3,
    "a sum": lambda i, j: (i + j) // 3 < 715827882,
    "a remainder of a negative number": lambda i, j: (i - j) % 100 < 40,
    "a quotient of a negative number": lambda i, j: (i - j) // 7 < (j - i) // 9,
    "a divisor that leaves no room": lambda i, j: (j - i) // 1500000001 == -1,
    "a power of two of a negative number": lambda i, j: ((i - j) // 16 + (j - i) % 64) % 3 == 1,
    "a power of two of a wide number": lambda i, j: (i * 5 - j * 7) % 1024 < (i * 1000 - j) // 1048576,
    "the greatest constant": lambda i, j: (i + (INT32 - 1)) % 5 == (j + (INT32 - 1)) % 3,
    "the least constant": lambda i, j: (i - (INT32 - 1) - 1 <= j - (INT32 - 1)) & (i * 2 + j > -(INT32 - 1)),
    "narrow beside wide": lambda i, j: (i * 4 <= j) | (j * 1000 - 7 == i),
    "narrow again": lambda i, j: (i * 8) // 8 + (i * 16) % 7 <= j,
    "a stride": lambda i, j: (j <= i) & ((i - j < 128) | ((i - j) % 128 == 0)),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_positions(name: str) -> None:
    rule = RULES[name]
    np.testing.assert_array_equal(asked(compiled(rule), []), expected(rule))


def test_extrema_and_choices() -> None:
    spec, other = cmir.MaskSpec("extrema"), cmir.MaskSpec("choice")
    i, j = spec.i, spec.j
    extrema = (spec.minimum(i * 4, j) + spec.maximum(i, j * 4)) % 5 < 3
    spec.region("all", 0, spec.rows, visible=extrema)
    choice = other.where(other.i * 4 < other.j, other.i * 3, other.j) % 7 < 4
    other.region("all", 0, other.rows, visible=choice)
    for made, rule in (
        (spec, lambda i, j: (min(i * 4, j) + max(i, j * 4)) % 5 < 3),
        (other, lambda i, j: (i * 3 if i * 4 < j else j) % 7 < 4),
    ):
        np.testing.assert_array_equal(asked(cmir.compile(made, test="bits"), []), expected(rule))


SCALARS: dict[str, Rule] = {
    "compared": lambda i, j, s: (s <= i) | (j < s),
    "equal": lambda i, j, s: (s == i) | (s == j),
    "both sides": lambda i, j, s: (i * 4 < s) & (s <= j * 4),
    "reckoned with": lambda i, j, s: (s + i <= j) | (s * 2 - j == i),
}


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize(
    "value", [0, 5, LENGTH - 1, LENGTH, INT32 - 1, INT32, -INT32, -INT32 - 1, 2**32 + 5, 2**60, -(2**60)]
)
def test_scalars(name: str, value: int) -> None:
    rule = SCALARS[name]
    np.testing.assert_array_equal(asked(compiled(rule, 1), [value]), expected(rule, value))


@pytest.mark.parametrize("value", [INT64 - 1, -INT64, INT64 - 2])
def test_what_is_only_compared_is_exact(value: int) -> None:
    for name in ("compared", "equal", "both sides"):
        rule = SCALARS[name]
        np.testing.assert_array_equal(asked(compiled(rule, 1), [value]), expected(rule, value), err_msg=name)


EXTREME = [0, 1, 17, 18, -1, INT32 - 1, INT32 - 2, INT32, -INT32, -INT32 - 1, 2**32 + 3, INT64 - 1, -INT64, -INT64 + 1]


@pytest.mark.parametrize("dtypes", [(np.int64, np.int64), (np.int32, np.int64), (np.int64, np.int32), (np.int32,) * 2])
@pytest.mark.parametrize("seed", range(2))
def test_tables(dtypes: tuple[Any, Any], seed: int) -> None:
    """Entries of any width, compared with one another and with positions."""
    spec = cmir.MaskSpec("tables")
    i, j, t, c = spec.i, spec.j, spec.table("t", per="row"), spec.table("c", per="col")
    f = spec.table("f", per="free")
    same, window = t[i] == c[j], (t[i] <= j) & (i <= c[j])
    spec.region(
        "all", 0, spec.rows, visible=same | window | ((t[i] < c[j]) & (f[i] != f[j]) & (spec.minimum(t[i], j) < 9))
    )
    mask = cmir.compile(spec, test="bits")
    rng = np.random.default_rng(seed)

    def draw(dtype: Any, count: int) -> torch.Tensor:
        most = np.iinfo(dtype).max
        fit = [value for value in EXTREME if -most - 1 <= value <= most]
        return torch.from_numpy(rng.choice(np.array(fit, dtype=dtype), count))

    metadata: dict[str, Any] = {"t": draw(dtypes[0], 50), "c": draw(dtypes[1], 70), "f": draw(np.int64, 70)}
    desc = mask.describe(rows=50, cols=70, **metadata, tile=(16, 16)).check()
    dense = mask.dense(rows=50, cols=70, **metadata)
    np.testing.assert_array_equal(desc.to_dense()[0, 0].numpy(), dense)
    assert desc.area.tolist() == [int(dense.sum())]


@pytest.mark.parametrize("tile", [(16, 16), (32, 16), (16, 64), (64, 32), (128, 128), (32, 128)])
@pytest.mark.parametrize("shape", [(70, 133), (133, 31), (1, 300)])
def test_every_tile_size(tile: tuple[int, int], shape: tuple[int, int]) -> None:
    mask = compiled(lambda i, j: ((i * 5 + j * 3) % 7 < 3) | (j < 20) | ((i > 40) & (j > 90)))
    desc = mask.describe(rows=shape[0], cols=shape[1], tile=tile).check()
    dense = mask.dense(rows=shape[0], cols=shape[1])
    np.testing.assert_array_equal(desc.to_dense()[0, 0].numpy(), dense)
    assert desc.area.tolist() == [int(dense.sum())]


def test_as_long_as_metadata_may_say() -> None:
    assert LENGTH == MAX_LENGTH
