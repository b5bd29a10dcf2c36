"""What is proved holds for all metadata; what is refuted comes with numbers; answers depend on nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from differential import spec_in  # pyright: ignore[reportMissingImports]
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_specs import CONSTANTS, FACTS, PARAMETERS, STATICS, comparisons, terms  # pyright: ignore[reportMissingImports]
from xdsl.context import Context
from xdsl.parser import Parser

from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.monotonicity import direction
from cmir.analysis.sampling import sample
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, free_names, parse_expr
from cmir.interp.domain import NumpyDomain
from cmir.interp.evaluate import evaluate
from cmir.tools.driver import parse

ROOT = Path(__file__).parents[3]


def facts(*lines: str) -> Facts:
    text = "\n".join([f"maskspec.spec @m({PARAMETERS}) {{", *CONSTANTS, *lines, "}"])
    return facts_of(spec_in(parse(text, "facts.mlir")))


def cond(text: str) -> Expr:
    return parse_expr(Parser(Context(), text), "bool")


def term(text: str) -> Expr:
    return parse_expr(Parser(Context(), text), "int")


def status(claim: str, *lines: str, index: str | None = "i", lo: str = "0", hi: str = "rows") -> str:
    return Entailment(facts(*lines), index, term(lo), term(hi)).prove(cond(claim)).status


def holds_everywhere(known: Facts, claim: Expr, index: str, lo: Expr, hi: Expr) -> bool:
    """On fresh draws, at every index of the range."""
    domain = NumpyDomain()
    for draw in sample(known, count=40, seed=99, size=9):
        env = {**draw.env, **STATICS}
        length = int(env["rows" if index == "i" else "cols"])
        a, b = max(0, int(evaluate(lo, env, domain))), min(length, int(evaluate(hi, env, domain)))
        if a < b and not np.all(evaluate(claim, {**env, index: np.arange(a, b)}, domain)):
            return False
    return True


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(
    st.lists(st.sampled_from(FACTS), unique=True, max_size=6),
    st.tuples(comparisons(1), comparisons(0)),
    st.sampled_from([("0", "rows"), ("s", "rows"), ("0", "s"), ("2", "rows + 3")]),
)
def test_what_is_proved_holds(lines: list[str], claims: tuple[Expr, Expr], ends: tuple[str, str]):
    known, (lo, hi) = facts(*lines), map(term, ends)
    entailment = Entailment(known, "i", lo, hi)
    for claim in (claims[0], implies(claims[1], claims[0])):
        if not free_names(claim) & {"j", *STATICS} and entailment.prove(claim).proved:
            assert holds_everywhere(known, claim, "i", lo, hi)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(st.lists(st.sampled_from(FACTS), unique=True, max_size=6), terms(2), st.sampled_from(["0", "s"]))
def test_direction_is_how_a_term_moves(lines: list[str], e: Expr, start: str):
    assume(not free_names(e) & {"odd", "root"})  # folded before anybody asks
    known, lo, domain = facts(*lines), term(start), NumpyDomain()
    for index, hi in (("i", ROWS), ("j", COLS)):
        way = direction(e, index, known, lo, hi)
        if way is None:
            continue
        for draw in sample(known, count=12, seed=5, size=9):
            env = {**draw.env, **STATICS, "i": 1, "j": 1}
            a, b = max(0, int(evaluate(lo, env, domain))), int(evaluate(hi, env, domain))
            env[index] = np.arange(a, b)
            values = np.broadcast_to(np.asarray(evaluate(e, env, domain), dtype=np.int64), env[index].shape)
            steps = values[1:] - values[:-1]
            assert np.all({"up": steps >= 0, "down": steps <= 0, "constant": steps == 0}[way])


@pytest.mark.parametrize(
    ("claim", "lines", "expected"),
    [
        ("t[i] <= i", ("maskspec.assume t[i] <= i",), "proved"),
        ("t[i] <= i + 1", ("maskspec.assume t[i] <= i",), "proved"),
        ("t[i] <= i", (), "refuted"),
        # A fact about other rows.
        ("t[i] <= i", ("maskspec.assume for i in [4, rows) : t[i] <= i",), "refuted"),
        # The last row's look-up ahead reads the last row: t[i] <= i says t[i + 1] <= rows - 1 there.
        ("t[i + 1] <= i + 1", ("maskspec.assume t[i] <= i",), "proved"),
        ("t[i + 1] < i + 1", ("maskspec.assume t[i] <= i",), "refuted"),
        # Row -1 reads row 0.
        ("t[i - 1] <= i", ("maskspec.assume t[i] <= i",), "proved"),
        ("t[i - 1] <= i - 1", ("maskspec.assume t[i] <= i",), "refuted"),
        ("t[i - 1] <= t[i]", ("maskspec.nondecreasing t",), "proved"),
        ("t[0] <= t[i]", ("maskspec.nondecreasing t",), "proved"),
        ("t[0] <= t[i]", ("maskspec.nondecreasing t over [1, rows)",), "not proved"),
        # A fact past the last row is about no row.
        ("t[i] <= 0", ("maskspec.assume for i in [rows, rows + 9) : t[i] <= 0",), "refuted"),
        # A free table may be empty, and reads 0 then.
        ("1 <= f[i]", ("maskspec.assume for e in [0, 99) : 1 <= f[e]",), "refuted"),
        ("0 <= f[i]", ("maskspec.assume for e in [0, 99) : 0 <= f[e]",), "not proved"),
        ("i floordiv 8 * 8 <= i and i < i floordiv 8 * 8 + 8", (), "proved"),
        ("0 <= i mod 5 and i mod 5 < 5", (), "proved"),
        ("(first i in [0, rows) : s < t[i]) <= rows", (), "proved"),
        ("i < (first i in [0, rows) : s < t[i]) or s < t[i]", ("maskspec.nondecreasing t",), "proved"),
        ("i < (first i in [0, rows) : s < t[i]) or s < t[i]", (), "refuted"),
    ],
)
def test_verdicts(claim: str, lines: tuple[str, ...], expected: str):
    verdict = status(claim, *lines)
    assert verdict == expected or (expected == "not proved" and verdict != "proved")


def test_an_empty_range_proves_anything():
    assert status("rows < 0", lo="3", hi="3") == "proved"


def test_scalars_alone():
    assert status("0 <= s", "maskspec.assume 0 <= s", index=None) == "proved"
    assert status("s <= 3", "maskspec.assume 0 <= s", index=None) == "refuted"


def test_a_counterexample_is_in_numbers():
    verdict = Entailment(facts("maskspec.assume 0 <= s"), "i", ZERO, ROWS).prove(cond("t[i] <= s"))
    assert verdict.counterexample.startswith("i=")
    assert "s=" in verdict.counterexample and "t[" in verdict.counterexample


def test_a_scalar_named_like_an_index_of_a_fact_is_another_thing():
    text = "maskspec.spec @m(%entry: index, %f: !maskspec.table<free>) {\nmaskspec.nondecreasing f\n}"
    known = facts_of(spec_in(parse(text, "entry.mlir")))
    assert Entailment(known, "i", ZERO, ROWS).prove(cond("f[entry] <= f[entry + 1]")).proved
    assert not Entailment(known, "i", ZERO, ROWS).prove(cond("f[entry + 1] <= f[entry]")).proved


def _python(script: str, seed: str = "0") -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    return subprocess.run([sys.executable, "-c", script], env=env, text=True, capture_output=True, check=True).stdout


LOWER = """
import sys
from importlib.resources import files
from cmir.tools.driver import parse, run_pipeline
for name in {names}:
    module = parse((files("cmir") / "zoo" / (name + ".mlir")).read_text(), name)
    run_pipeline(module, {passes})
    print(module)
"""


def test_easy_masks_need_no_z3():
    script = LOWER.format(names=["causal", "hstu", "shared_prompt"], passes=["lower-intervals"])
    assert _python(script + "print('z3' in sys.modules)").endswith("False\n")


def test_compiling_is_deterministic():
    """Whatever the hash seed, and whatever was compiled before."""
    names, passes = ["hstu", "hstu_meta"], ["lower-intervals", "transpose"]
    both = _python(LOWER.format(names=names, passes=passes), "1")
    assert _python(LOWER.format(names=names[::-1], passes=passes), "2").count("interval.table") == both.count(
        "interval.table"
    )
    assert _python(LOWER.format(names=names[1:], passes=passes), "3") in both
