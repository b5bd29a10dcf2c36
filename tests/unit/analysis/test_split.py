"""Clauses that repeat are split into the fewest that can be proved; min, max and select have closed forms."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import facts_of
from cmir.analysis.sampling import sample
from cmir.analysis.solve import solve
from cmir.analysis.split import solve_all
from cmir.dialects.expr import COLS, ROWS, ZERO, and_, le, lt, or_, var, walk
from cmir.dialects.maskspec import SpecOp
from cmir.interp.domain import NumpyDomain
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import grid
from cmir.tools.driver import parse, run_pipeline


def spec_of_clause(clause: str, facts: str = "") -> SpecOp:
    module: ModuleOp = parse(
        "maskspec.spec @m(%a: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>) {\n"
        f"{facts}\nmaskspec.region @all rows [0, rows) {{ maskspec.clause {clause} }} }}",
        "m.mlir",
    )
    run_pipeline(module, ["dnf-normalize"])
    return next(op for op in module.walk() if isinstance(op, SpecOp))


# (clause, facts, solutions for j, solutions for i); None: a residual is left
REPEATING = [
    ("abs(i - j) <= 6 and (i - j) mod 3 == 0", "", 5, 5),
    ("abs(i - j) <= 7 and (i - j) mod 3 == 1", "", 6, 6),  # what is too far falls to canonicalization
    ("j mod 8 < 3 and i <= j and j < i + 16", "", 3, 1),  # 16 columns touch up to 3 blocks of 8
    ("j mod 8 < 3 and j <= i", "", None, 1),
    ("a <= j and j < a + 4 and j mod 4 == t[i] mod 4", "", 2, None),
    ("j mod 4 == 2 and j < cols", "maskspec.assume cols <= 12", 3, 1),
    ("j mod 4 == 2", "", None, 1),
    # The quotient of i is bounded through a clamp, that of j through a table.
    (
        "abs(min(max(i floordiv 4, 1), 8) - j floordiv 4) <= 1 and j mod 4 <= i mod 4",
        "maskspec.assume rows == 40",
        3,
        4,
    ),
    (
        "abs(min(max(i floordiv 4, 1), 3) - j floordiv 4) <= 1 and j mod 4 <= i mod 4",
        "maskspec.assume rows == 20",
        3,
        5,
    ),
    ("t[i] <= j floordiv 4 and j floordiv 4 < t[i] + 2 and j mod 4 <= 1", "", 2, None),
]


@pytest.mark.parametrize(("clause", "facts", "for_j", "for_i"), REPEATING)
def test_a_clause_that_repeats_is_split_into_the_fewest(clause: str, facts: str, for_j: int | None, for_i: int | None):
    spec = spec_of_clause(clause, facts)
    known = facts_of(spec)
    literals = spec.regions_of_rows[0].clauses[0].literals
    ends = {"j": COLS, "i": ROWS}
    for moving, fixed, want in (("j", "i", for_j), ("i", "j", for_i)):
        solutions = solve_all(literals, moving, ZERO, ends[moving], Entailment(known, fixed, ZERO, ends[fixed]))
        found = None if any(s.residual for s in solutions) else len(solutions)
        position = var(moving)
        union = or_(*(and_(le(s.lo, position), lt(position, s.hi), *s.conditions, *s.residual) for s in solutions))
        for draw in sample(known, count=20, seed=3, size=30):
            points, domain = grid(draw.env), NumpyDomain()
            shape = (int(draw.env["rows"]), int(draw.env["cols"]))
            got, expected = (np.broadcast_to(evaluate(e, points, domain), shape) for e in (union, and_(*literals)))
            assert np.array_equal(got, expected), f"for {moving}"
        assert found == want, f"for {moving}"


@pytest.mark.parametrize(
    "clause",
    [
        "max(i, a) <= j",
        "min(i, a) <= j + 2",
        "j <= max(i floordiv 3, a)",
        "j <= min(max(i, 3), a + 2) - 1",
        "select(a < 3, i, a) <= j",
        "2 * max(i floordiv 4, a) <= j",
        "j <= 3 * min(i, a) + 2",
        "c[j] <= min(max(i, 2), 9)",
    ],
)
def test_min_max_and_select_of_the_index_have_closed_forms(clause: str):
    spec = spec_of_clause(clause)
    known = facts_of(spec)
    literals = spec.regions_of_rows[0].clauses[0].literals
    s = solve(literals, "i", ZERO, ROWS, known)
    assert not s.residual
    assert not any(t.op == "first" for e in (s.lo, s.hi) for t in walk(e)), s
    claim = and_(le(s.lo, var("i")), lt(var("i"), s.hi), *s.conditions)
    for draw in sample(known, count=20, seed=3, size=20):
        points, domain = grid(draw.env), NumpyDomain()
        shape = (int(draw.env["rows"]), int(draw.env["cols"]))
        got, expected = (np.broadcast_to(evaluate(e, points, domain), shape) for e in (claim, and_(*literals)))
        assert np.array_equal(got, expected)
