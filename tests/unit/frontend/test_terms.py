"""Random terms built by Python's operators give what plain Python integers give, as SSA and as expressions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import cmir
from cmir.dialects.expr import free_names
from cmir.errors import SpecError
from cmir.frontend.spec import ConstantTable, Table, Term
from cmir.interp.domain import NumpyDomain, TableValue
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import spec_mask
from cmir.tools.driver import parse

ROWS, COLS = 4, 5
N, WIDTH = 3, 2
BY_ROW, BY_COL, FREE, CONSTANTS, BASE = (2, 0, 1, 3), (4, 1, 1, 0, -2), (5, -1, 2), (7, 0, -3), -1


@dataclass
class Terms:
    """What an expression reads, as terms or, with the same operators, as numbers."""

    i: Term
    j: Term
    rows: Term
    cols: Term
    n: Term
    width: Term
    by_row: Table
    by_col: Table
    free: Table
    constants: ConstantTable
    minimum: Callable[..., Term]
    maximum: Callable[..., Term]
    where: Callable[..., Term]
    exists: Callable[..., Term]


@dataclass(frozen=True)
class Entries:
    values: tuple[int, ...]
    base: int = 0

    def __getitem__(self, index: int) -> int:
        return self.values[min(max(index - self.base, 0), len(self.values) - 1)]


class Truth(int):
    """A bool whose operators are those of conditions."""

    def __and__(self, other: int) -> "Truth":
        return Truth(bool(self) and bool(other))

    def __or__(self, other: int) -> "Truth":
        return Truth(bool(self) or bool(other))

    def __invert__(self) -> "Truth":
        return Truth(not self)


def numbers(i: int, j: int) -> Terms:
    namespace = dict(i=i, j=j, rows=ROWS, cols=COLS, n=N, width=WIDTH, minimum=min, maximum=max)
    tables = dict(
        by_row=Entries(BY_ROW), by_col=Entries(BY_COL), free=Entries(FREE), constants=Entries(CONSTANTS, BASE)
    )
    where = lambda c, a, b: a if c else b  # noqa: E731
    exists = lambda lo, hi, body: Truth(any(body(d) for d in range(lo, hi + 1)))  # noqa: E731
    return Terms(**namespace, **tables, where=where, exists=exists)  # pyright: ignore


def terms(spec: cmir.MaskSpec) -> Terms:
    return Terms(
        *(spec.i, spec.j, spec.rows, spec.cols, spec.scalar("n"), spec.static("width", WIDTH)),
        *(spec.table("by_row", per="row"), spec.table("by_col", per="col"), spec.table("free", per="free")),
        spec.constants("constants", CONSTANTS, base=BASE),
        *(spec.minimum, spec.maximum, spec.where, spec.exists),
    )


# An expression is Python source over `t` (the terms), bound indices, and `truth`, which marks conditions.
ints = st.deferred(lambda: leaves | compound)
leaves = st.sampled_from(
    ["t.i", "t.j", "t.rows", "t.cols", "t.n", "t.width", "t.free[1]", "t.constants[-1]"]
) | st.integers(-4, 9).map(lambda k: f"(t.n - {N} + ({k}))")
row = st.sampled_from(["t.i", "(t.i - 1)", "(t.n + t.i)", "t.rows", "t.n"])
col = st.sampled_from(["t.j", "(2 * t.j)", "t.cols", "(t.j // 2)"])
compound = st.one_of(
    st.tuples(ints, st.sampled_from("+-"), ints).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
    st.tuples(ints, st.integers(-3, 3)).map(lambda x: f"({x[1]} * {x[0]})"),
    st.tuples(ints, st.sampled_from(["//", "%"]), st.sampled_from(["3", "t.width", "(2 * t.width + 1)"])).map(
        lambda x: f"({x[0]} {x[1]} {x[2]})"
    ),
    st.tuples(ints, ints).map(lambda x: f"t.minimum({x[0]}, {x[1]}, 6)"),
    st.tuples(ints, ints).map(lambda x: f"t.maximum({x[0]}, {x[1]})"),
    ints.map(lambda x: f"abs({x})"),
    ints.map(lambda x: f"(-{x})"),
    row.map(lambda x: f"t.by_row[{x}]"),
    col.map(lambda x: f"t.by_col[{x}]"),
    ints.map(lambda x: f"t.free[{x}]" if not x.startswith("(t.n") else f"t.constants[{x}]"),
    st.tuples(st.deferred(lambda: conditions), ints, ints).map(lambda x: f"t.where({', '.join(x)})"),
)
comparisons = st.tuples(ints, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), ints).map(
    lambda x: f"truth({x[0]} {x[1]} {x[2]})"
)
conditions = st.deferred(
    lambda: st.one_of(
        comparisons,
        st.tuples(conditions, st.sampled_from("&|"), conditions).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        st.tuples(conditions, st.sampled_from("&|"), st.booleans()).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        conditions.map(lambda p: f"(~{p})"),
        st.tuples(ints, ints, conditions).map(
            lambda x: f"t.exists(-1, t.width, lambda d: truth({x[0]} <= {x[1]} + d * t.width) & {x[2]})"
        ),
        st.tuples(conditions, conditions, st.booleans()).map(lambda x: f"truth(t.where({x[0]}, {x[1]}, {x[2]}))"),
    )
)


@settings(max_examples=100, deadline=None)
@given(conditions)
def test_terms_mean_what_python_says(source: str):
    want = [[bool(eval(source, {"t": numbers(i, j), "truth": Truth})) for j in range(COLS)] for i in range(ROWS)]
    spec = cmir.MaskSpec("random")
    try:
        term = eval(source, {"t": terms(spec), "truth": lambda term: term})
    except SpecError as error:
        assert "is before the table: entries count from 0" in error.message  # a constant below 0, written as an index
        reject()
    spec.region("all", 0, spec.rows, visible=term)

    tables = {"by_row": BY_ROW, "by_col": BY_COL, "free": FREE}
    env = {"rows": ROWS, "cols": COLS, "n": N, **{name: TableValue(np.array(v)) for name, v in tables.items()}}
    assert np.array_equal(spec_mask(spec.build(), env), want)

    # The expression that a guard or a fact would carry says the same, and is read back from its text.
    grid = {"i": np.arange(ROWS)[:, None], "j": np.arange(COLS)[None, :], "width": WIDTH}
    constants = {"constants": TableValue(np.array(CONSTANTS))}
    value = evaluate(term.expr, {**env, **grid, **constants}, NumpyDomain())
    assert np.array_equal(np.broadcast_to(value, (ROWS, COLS)), want)
    if term.op != "bool" and not {"i", "j"} <= free_names(term.expr):
        spec.assume(term)
    assert parse(str(spec)).is_structurally_equivalent(spec.module())
