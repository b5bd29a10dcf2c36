"""What is evaluated at all sampled points at once is what is evaluated draw by draw."""

import numpy as np
from differential import spec_in  # pyright: ignore[reportMissingImports]
from xdsl.context import Context
from xdsl.parser import Parser

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.points import points_of
from cmir.dialects.expr import COLS, ROWS, ZERO, parse_expr
from cmir.interp.domain import NumpyDomain, TableValue
from cmir.interp.evaluate import evaluate
from cmir.tools.driver import parse

SPEC = """maskspec.spec @m(%s: index, %a: !maskspec.table<row>, %f: !maskspec.table<free>) {
  maskspec.assume 0 <= s and s <= rows
  maskspec.nondecreasing a
  maskspec.region @all rows [0, rows) { maskspec.clause j < i + 90 }
}"""


def known() -> Facts:
    return facts_of(spec_in(parse(SPEC, "spec.mlir")))


TERMS = (
    "i + 2 * s",
    "max(a[i], i - s)",
    "a[i + 1] - a[s]",
    "f[i] + f_length",
    "first k in [0, rows) : i <= a[k]",
    "first k in [a[i], rows + s) : i < 2 * k + f[i]",
    "first k in [i, a[i]) : s <= k + first n in [0, rows) : k <= a[n]",
    "select(i < s, first k in [i, rows) : s <= k, f[f[i]])",
)


def test_all_points_at_once() -> None:
    points = points_of(known(), "i", ZERO, ROWS)
    sizes = [max(int(d["rows"]), int(d["cols"])) for d in points.draws]
    assert min(sizes) < 40
    assert max(sizes) > 200
    assert any(not len(v.values) for d in points.draws for v in d.values() if isinstance(v, TableValue))
    for text in TERMS:
        e = parse_expr(Parser(Context(), text), "int")
        got = points.values(e)
        assert got.shape == points.draw.shape
        for k, draw in enumerate(points.draws):
            mine = points.draw == k
            index = points.env["i"][mine]
            want = np.broadcast_to(evaluate(e, {**draw, "i": index}, NumpyDomain()), index.shape)
            np.testing.assert_array_equal(got[mine], want, text)
    claim = parse_expr(Parser(Context(), "i < 5 or f[i] <= s"), "bool")
    kept = len(points.memo)
    point = points.try_out(claim)
    assert point is not None
    assert not evaluate(claim, point, NumpyDomain())
    assert len(points.memo) == kept
    assert points.try_out(parse_expr(Parser(Context(), "0 <= i"), "bool")) is None


def test_without_an_index_there_is_a_point_a_draw() -> None:
    points = points_of(known(), None, ZERO, COLS)
    assert points.draw.tolist() == list(range(len(points.draws)))
    assert points.values(COLS).tolist() == [int(d["cols"]) for d in points.draws]
