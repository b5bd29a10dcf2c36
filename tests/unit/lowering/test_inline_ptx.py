# pyright: basic
"""The PTX that the Hopper forward kernel has inline, run here by one warp of a small interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

pytest.importorskip("triton.experimental.gluon")

from cmir.lowering.skeletons import gluon_forward

LANES = np.arange(32)
LOWEST = np.float32(gluon_forward.LOWEST.value)
LIMIT = gluon_forward.LIMIT.value
SCALE = np.float32(0.125)
"""A power of two: scores times it are exact."""


def fma(a: np.ndarray, b: np.ndarray | np.float32, c: np.ndarray) -> np.ndarray:
    return (a.astype(np.float64) * b + c).astype(np.float32)


def rounded(x: np.ndarray, kind: str) -> np.ndarray:
    """To 16 bits, as their bits."""
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[kind]
    return torch.from_numpy(x).to(dtype).view(torch.int16).numpy().astype(np.uint16).astype(np.uint32)


def voted(predicate: np.ndarray) -> np.ndarray:
    return np.full(32, predicate.any())


OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "setp.geu.f32": lambda a, b: ~(a < b),
    "setp.neu.f32": lambda a, b: ~(a == b),
    "setp.eq.f32": lambda a, b: a == b,
    "setp.ne.b32": lambda a, b: a != b,
    "or.pred": np.logical_or,
    "vote.sync.any.pred": lambda a, _: voted(a),
    "vote.sync.ballot.b32": lambda a, _: np.full(32, (a.astype(np.uint64) << LANES.astype(np.uint64)).sum(), np.uint32),
    "mov.u32": lambda a: a,
    "mov.f32": lambda a: a,
    "and.b32": np.bitwise_and,
    "shr.b32": np.right_shift,
    "max.f32": np.fmax,
    "mul.f32": np.multiply,
    "add.f32": np.add,
    "neg.f32": np.negative,
    "fma.rn.f32": fma,
    "ex2.approx.ftz.f32": np.exp2,
    "shfl.sync.bfly.b32": lambda a, lane, _clamp, _members: a[LANES ^ lane.astype(np.int64)],
    "cvt.rn.bf16x2.f32": lambda high, low: rounded(high, "bf16") << 16 | rounded(low, "bf16"),
    "cvt.rn.f16x2.f32": lambda high, low: rounded(high, "f16") << 16 | rounded(low, "f16"),
}


def run(code: tuple[str, str], operands: list[np.ndarray]) -> list[np.ndarray]:
    """The results of inline PTX. `operands`: as they are given, [32] each; tied ones begin as a result."""
    text, constraints = code
    kinds = constraints.split(",")
    results = sum(kind.startswith("=") for kind in kinds)
    ties = {int(kind): value for kind, value in zip(kinds[results:], operands, strict=True) if kind.isdigit()}
    assert sorted(ties) == list(range(results)), "every result has a value where a branch skips it"
    registers = {f"${k}": value for k, value in ties.items()}
    registers |= {f"${k}": value for k, value in enumerate(operands, results)}
    registers["%laneid"] = LANES.astype(np.uint32)

    def value(name: str, integer: bool) -> np.ndarray:
        if name in registers:
            return registers[name]
        if name.startswith("0f"):
            return np.full(32, int(name[2:], 16), np.uint32).view(np.float32)
        return np.full(32, int(name, 0), np.uint32) if integer else np.full(32, float(name), np.float32)

    skipped = ""
    for statement in re.sub(r"(\w+):", r"label \1;", text.strip("{} ")).split(";"):
        words = re.findall(r"[@!\w.$%-]+", statement)
        if not words or words[0] == ".reg" or skipped not in ("", words[-1]):
            continue
        skipped = ""
        active = np.full(32, True)
        if words[0].startswith("@"):
            guard = registers[words.pop(0).lstrip("@!")]
            active = ~guard if "@!" in statement else guard
        operation, *names = words
        if operation == "label":
            continue
        if operation == "bra.uni":
            assert active.all() or not active.any(), "a uniform branch"
            skipped = names[0] if active.all() else ""
            continue
        integer = operation.endswith(("b32", "u32")) or operation.startswith("vote")
        with np.errstate(all="ignore"):
            new = OPERATIONS[operation](*(value(name, integer) for name in names[1:]))
        kept = registers.get(names[0], np.zeros_like(new))
        registers[names[0]] = np.where(active, new, kept)
    return [registers[f"${k}"] for k in range(results)]


def by_thread(x: np.ndarray) -> np.ndarray:
    """[16, N] as [pairs, 2, 32]: lane 4 r + c has of the rows r and r + 8, in turn, columns 8 i + 2 c and the next."""
    return x.reshape(2, 8, -1, 4, 2).transpose(2, 0, 4, 1, 3).reshape(-1, 2, 32)


def of_threads(x: np.ndarray) -> np.ndarray:
    """[2, 32], of each thread's two rows, from [16]."""
    return np.repeat(x.reshape(2, 8), 4, 1)


def weigh(scores: np.ndarray, peak: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the kernel has after `raising`: weights of pairs, [pairs, 32] of their bits; sums and peaks, [2, 32]."""
    with np.errstate(all="ignore"):
        weight = by_thread(np.exp2(fma(scores, SCALE, -peak[:, None])))
        # In no order that a kernel could have: to see where sums are left as they are.
        sums = np.stack([weight[row::2].sum((0, 1), dtype=np.float64) for row in range(2)]).astype(np.float32)
    pairs = rounded(weight[:, 1], kind) << 16 | rounded(weight[:, 0], kind)
    count = len(pairs)
    first, second = by_thread(scores).transpose(1, 0, 2)
    twice = [np.resize(of, (count, 32)) for of in (of_threads(peak), sums)]  # one of each row in turn
    operands = [*first, *second, *np.full((count, 32), SCALE), *pairs, *twice[0], *twice[1]]
    results = np.array(run(gluon_forward.raising(count, kind), operands), dtype=object)
    weights, peaks, totals = results.reshape(3, count, 32)
    return weights.astype(np.uint32), totals[:2].astype(np.float32), peaks[:2].astype(np.float32)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("columns", [64, 128])
def test_rows_that_reach_the_limit_follow_their_maximum_and_no_others(columns: int, kind: str) -> None:
    """Rows in all states at once: as before, hidden, unseen till now, a little and far above their peak, NaN."""
    scores = np.random.default_rng(columns).normal(size=(16, columns)).astype(np.float32) * 8
    peak = np.full(16, 2, np.float32)
    scores[1] = -np.inf
    scores[2], peak[2] = -np.inf, LOWEST
    peak[3] = LOWEST
    scores[3, columns // 2 :] = -np.inf
    scores[4, 7] = 60  # 5 above, below the limit
    scores[9, 11] = 120  # 13 above
    scores[12] += 9e5
    scores[14], peak[14] = -(2.0**100), LOWEST
    scores[15, 3] = np.nan
    raised = [3, 9, 12, 14]
    weights, sums, peaks = weigh(scores, peak, kind)

    highest = np.fmax(peak, np.nanmax(scores, 1) * SCALE)
    want = np.where(np.isin(np.arange(16), [*raised, 15]), highest, peak)
    assert np.array_equal(peaks, of_threads(want))
    with np.errstate(all="ignore"):
        exact = by_thread(np.exp2(fma(scores, SCALE, -want[:, None])))
    bits = rounded(exact[:, 1], kind) << 16 | rounded(exact[:, 0], kind)
    known = ~np.isnan(exact).any(1)  # of a NaN any bits will do
    assert np.array_equal(weights[known], bits[known])
    total = np.stack([exact[row::2].sum((0, 1)) for row in range(2)])
    np.testing.assert_allclose(sums, total, rtol=1e-5)
    for row in (9, 12, 14):  # some weight is 1, and none is more
        assert exact.transpose(0, 2, 1)[row // 8 :: 2, 4 * (row % 8) : 4 * (row % 8) + 4].max() == 1

    # What the others have is what they would have among rows of which none is raised, to the bit.
    calm = scores.copy()
    calm[[*raised, 15]] = 0
    alone = weigh(calm, np.where(np.isin(np.arange(16), [*raised, 15]), 0, peak).astype(np.float32), kind)
    others = [of_threads(~np.isin(np.arange(16), [*raised, 15]))[row] for row in range(2)]
    for row, lanes in enumerate(others):
        assert np.array_equal(weights[row::2][:, lanes], alone[0][row::2][:, lanes])
        assert np.array_equal(sums[row][lanes], alone[1][row][lanes])
        assert np.array_equal(peaks[row][lanes], alone[2][row][lanes])


@pytest.mark.parametrize("lane", [0, 5, 31])
def test_the_limit_of_one_thread_raises_its_whole_row(lane: int) -> None:
    scores, peak = np.zeros((16, 64), np.float32), np.zeros(16, np.float32)
    row = lane // 4
    scores[row, 2 * (lane % 4) + 1] = np.log2(LIMIT) / SCALE + 1e-3
    _, _, peaks = weigh(scores, peak, "bf16")
    assert np.flatnonzero(peaks[0]).tolist() == list(range(4 * row, 4 * row + 4))
    assert not peaks[1].any()
    scores[row, 2 * (lane % 4) + 1] = (np.log2(LIMIT) - 0.1) / SCALE
    assert not weigh(scores, peak, "bf16")[2].any()


@pytest.mark.parametrize("count", [32, 64])
def test_accumulators_are_scaled_by_row(count: int) -> None:
    acc = np.arange(count * 32, dtype=np.float32).reshape(count, 32)
    upper, lower = np.linspace(0.5, 1, 32, dtype=np.float32), np.linspace(1, 0.25, 32, dtype=np.float32)
    factors = [lower if k % 4 >= 2 else upper for k in range(count)]
    assert np.array_equal(run(gluon_forward.scaling(count), [*acc, *factors]), acc * factors)
    ones = list(np.ones((count, 32), np.float32))
    assert np.array_equal(run(gluon_forward.scaling(count), [*acc, *ones]), acc)


@pytest.mark.parametrize("count", [32, 64])
def test_hidden_rows_become_zero_whatever_they_hold(count: int) -> None:
    acc = np.random.default_rng(0).normal(size=(count, 32)).astype(np.float32)
    acc[0], acc[2] = np.nan, np.inf
    upper, lower = np.ones(32, np.float32), np.ones(32, np.float32)
    upper[4:8] = lower[20:24] = 0
    factors = np.stack([lower if k % 4 >= 2 else upper for k in range(count)])
    found = np.array(run(gluon_forward.clearing(count), [*acc, *factors]))
    assert np.array_equal(found, np.where(factors == 0, 0, acc), equal_nan=True)
    ones = list(np.ones((count, 32), np.float32))
    assert np.array_equal(run(gluon_forward.clearing(count), [*acc, *ones]), acc, equal_nan=True)
