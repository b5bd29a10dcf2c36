"""The rule of a pair with few comparisons is the same rule: random disjunctions, on every pair of a grid."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cmir
from cmir import layouts, zoo
from cmir.analysis.pairs import any_of
from cmir.dialects.expr import Expr, I, J, add, and_, const, eq, le, lt, make, or_, sub, var, walk
from cmir.interp.domain import NumpyDomain
from cmir.interp.evaluate import evaluate

N = 48
Y_I, Y_J, X_I, X_J = (make(op, e, const(8)) for op in ("floordiv", "mod") for e in (I, J))
NUMBERS = [(I, J), (Y_I, Y_J), (X_I, X_J), (make("mul", I, const(2)), J), (I, add(J, var("s")))]


def literal(rng: random.Random) -> Expr:
    row, column = rng.choice(NUMBERS)
    k = const(rng.randint(-5, 5))
    left, right = (row, add(column, k)) if rng.random() < 0.5 else (add(column, k), row)
    return rng.choice([eq, le, lt])(left, right)


def window(rng: random.Random) -> list[Expr]:
    """`|row - column| <= k`, in two literals."""
    row, column = rng.choice(NUMBERS)
    k = const(rng.randint(0, 5))
    return [le(row, add(column, k)), le(sub(column, k), row)]


def clause(rng: random.Random) -> Expr:
    literals = [literal(rng) for _ in range(rng.randint(0, 2))]
    for _ in range(rng.randint(0, 2)):
        literals += window(rng)
    rng.shuffle(literals)
    return and_(*literals)


def seen(rule: Expr) -> np.ndarray:
    at = np.arange(N)
    env = {"i": at[:, None], "j": at[None, :], "s": 3, "rows": N, "cols": N}
    return np.broadcast_to(evaluate(rule, env, NumpyDomain()), (N, N))


@pytest.mark.parametrize("seed", range(300))
def test_the_same_rule(seed: int) -> None:
    rng = random.Random(seed)
    clauses = [clause(rng) for _ in range(rng.randint(1, 8))]
    np.testing.assert_array_equal(seen(any_of(clauses)), seen(or_(*clauses)))


@pytest.mark.parametrize("seed", range(100))
def test_a_bound_for_every_distance(seed: int) -> None:
    """Windows of x, each where y is at a distance: of a circle, a square, or anything."""
    rng = random.Random(seed)
    both = rng.random() < 0.7  # the distances d and -d have one bound
    clauses: list[Expr] = []
    for d in rng.sample(range(6), rng.randint(1, 6)):
        k = rng.randint(0, 6)
        for c in {d, -d} if both else {d}:
            x = [le(X_I, add(X_J, const(k))), le(sub(X_J, const(k)), X_I)]
            clauses.append(and_(eq(Y_I, add(Y_J, const(c))), *x, *([le(J, I)] if rng.random() < 0.2 else [])))
    clauses += [lt(J, const(3))] * rng.randint(0, 1)
    rng.shuffle(clauses)
    np.testing.assert_array_equal(seen(any_of(clauses)), seen(or_(*clauses)))


def test_a_circle_is_one_comparison_with_a_chosen_bound() -> None:
    clauses: list[Expr] = []
    for d, k in {0: 4, 1: 4, 2: 3, 3: 3, 4: 1}.items():
        for c in {d, -d}:
            clauses.append(and_(eq(Y_I, add(Y_J, const(c))), le(X_I, add(X_J, const(k))), le(sub(X_J, const(k)), X_I)))
    rule = any_of(clauses)
    assert rule.op == "le" and rule.args[0].op == "max"
    assert len({e for e in walk(rule) if e.op == "select"}) == 3
    np.testing.assert_array_equal(seen(rule), seen(or_(*clauses)))


def test_clear_in_patches_asks_few_comparisons() -> None:
    statics = {"radius": 16, "height": 128, "width": 256, "text": 512}
    mask = cmir.compile(zoo.path("clear"), statics=statics, layout=layouts.Patch((128, 256), (8, 16), after=512))
    text = mask.source()
    pair = text[text.index("def pair_visible") : text.index("def eight")]
    assert pair.count("seen_") < 80  # 34 clauses of up to 5 literals
