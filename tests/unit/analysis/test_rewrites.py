"""Simplifying, negating and normalising change how an expression reads, not what it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_specs import STATICS, rules, terms  # pyright: ignore[reportMissingImports]
from xdsl.context import Context
from xdsl.parser import Parser

from cmir.analysis.dnf import TooManyClauses, clauses_of
from cmir.analysis.linear import linear, negate, simplify
from cmir.dialects.expr import (
    Expr,
    ExprParser,
    and_,
    boolean,
    const,
    map_bottom_up,
    or_,
    parse_expr,
    show,
    substitute,
    var,
)
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

EXAMPLES = settings(max_examples=150, deadline=None, database=None, derandomize=True)


def expr(text: str) -> Expr:
    return ExprParser(Parser(Context(), text)).parse()


def grids(seed: int) -> dict[str, Value]:
    """`i` and `j` as grids that reach past all tables, random metadata, `f` empty now and then."""
    rng = np.random.default_rng(seed)
    rows, cols = map(int, rng.integers(0, 8, 2))
    table = lambda n: TableValue(rng.integers(-3, 9, n))  # noqa: E731
    return {
        "i": np.arange(-3, rows + 3)[:, None],
        "j": np.arange(-3, cols + 3)[None, :],
        "rows": rows,
        "cols": cols,
        "s": int(rng.integers(-3, 9)),
        "g": int(rng.integers(1, 5)),
        **STATICS,
        "t": table(rows),
        "c": table(cols),
        "f": table(int(rng.integers(0, 5))),
        "lo": table((rows, 2)),
        "hi": table((rows, 2)),
        "pair": table((int(rng.integers(0, 5)), 3)),
        "near": table((cols, 2)),
    }


def values(e: Expr, seed: int) -> np.ndarray:
    env = grids(seed)
    shape = env["i"].shape[0], env["j"].shape[1]
    return np.broadcast_to(evaluate(e, env, NumpyDomain()), shape)


@EXAMPLES
@given(terms(3), st.integers(0, 1000))
def test_a_simpler_term_has_the_same_value(e: Expr, seed: int):
    assert np.array_equal(values(simplify(e), seed), values(e, seed))
    assert simplify(simplify(e)) == simplify(e)


@EXAMPLES
@given(rules(2), st.integers(0, 1000))
def test_a_simpler_condition_has_the_same_value(e: Expr, seed: int):
    assert np.array_equal(values(simplify(e), seed), values(e, seed))
    assert np.array_equal(values(negate(simplify(e)), seed), ~values(e, seed))


@EXAMPLES
@given(rules(2), st.integers(0, 1000))
def test_clauses_are_the_condition(e: Expr, seed: int):
    expanded = map_bottom_up(e, _expand)
    try:
        clauses = clauses_of(expanded, 200)
    except TooManyClauses:
        return
    again = or_(*(and_(*c) for c in clauses))
    assert np.array_equal(values(again, seed), values(e, seed))
    assert all(literal.op in ("lt", "le", "eq") for c in clauses for literal in c)


def _expand(e: Expr) -> Expr:
    if e.op != "exists":
        return e
    statics = {var(name): const(value) for name, value in STATICS.items() if isinstance(value, int)}
    lo, hi = (simplify(substitute(end, statics)).value for end in e.args[:2])
    return or_(boolean(False), *(substitute(e.args[2], {var(e.name): const(d)}) for d in range(lo, hi + 1)))


@EXAMPLES
@given(rules(2))
def test_text_is_read_back(e: Expr):
    assert show(parse_expr(Parser(Context(), show(e)), "bool")) == show(e)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("(i + 4 * n + 3) floordiv 4", "n + (i + 3) floordiv 4"),
        ("4 * (i floordiv 4) + i mod 4", "i"),
        ("max(0, i, i + 1)", "max(0, i + 1)"),
        ("512 + 64 * 64 - 0 * n", "4608"),
        ("isqrt(16 * 16 - 3 * 3 - 1)", "15"),
        ("abs(-7)", "7"),
        ("select(3 < 4, i, j)", "i"),
        ("(i mod 8) mod 8", "i mod 8"),
        ("(i mod 8) mod 4 + (i mod 4) mod 8 + (i mod 4) floordiv 8", "i mod 4 * 2"),
        ("(i floordiv 3 + 8) floordiv 4", "i floordiv 12 + 2"),
        ("0 < i - 5", "5 < i"),
        ("i - 5 <= 128", "i <= 133"),
        ("j < i + 1", "j <= i"),
        ("j + 1 <= i", "j < i"),
        ("2 * j <= 5", "j <= 2"),
        ("2 * j < 5", "j < 3"),
        ("2 * j == 5", "false"),
        ("4 * j == 2 * i + 6", "j * 2 == i + 3"),
        ("-3 * j < -6 * i", "i * 2 < j"),
        ("i < j or j <= i", "true"),
        ("i < j and j <= i", "false"),
        ("i == j and i == j", "i == j"),
    ],
)
def test_reads_well(text: str, simple: str):
    assert show(simplify(expr(text))) == simple


def test_linear_forms_tell_terms_apart():
    assert linear(expr("2 * i + 3 - i")) == linear(expr("3 + i"))
    assert (linear(expr("i * n")) - linear(expr("i * n"))).is_constant
