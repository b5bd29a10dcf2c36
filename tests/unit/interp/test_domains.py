"""NumPy and z3 give every operator one meaning."""

import numpy as np
import z3
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_specs import STATICS, WIDTHS, terms  # pyright: ignore[reportMissingImports]

from cmir.dialects.expr import Expr, const, first, le, lookup, var
from cmir.interp.domain import NumpyDomain, TableValue
from cmir.interp.evaluate import evaluate
from cmir.interp.z3_domain import Z3Domain

LENGTHS = {"t": "rows", "c": "cols", "f": "f_length", "lo": "rows", "hi": "rows", "pair": "pair_length", "near": "cols"}


@settings(max_examples=80, deadline=None, database=None, derandomize=True)
@given(terms(2), st.integers(0, 10_000))
def test_terms_have_one_value(e: Expr, seed: int):
    rng = np.random.default_rng(seed)
    lengths = {name: int(rng.integers(0, 4)) for name in LENGTHS.values()}
    numbers = {**lengths, **{n: int(rng.integers(-4, 8)) for n in ("i", "j", "s", "g")}}
    shapes = {n: (lengths[length], WIDTHS[n]) if n in WIDTHS else lengths[length] for n, length in LENGTHS.items()}
    tables = {name: rng.integers(-3, 9, shape) for name, shape in shapes.items()}
    drawn = {n: TableValue(v) for n, v in tables.items()}
    value = int(evaluate(e, {**STATICS, **numbers, **drawn}, NumpyDomain()))

    domain = Z3Domain()
    solver = z3.Solver(ctx=domain.context)
    known = {**STATICS, **numbers}
    env = {name: domain.const(n) if isinstance(n, int) else n for name, n in known.items()}
    for name, length in LENGTHS.items():
        env[name] = domain.table(name, domain.const(lengths[length]), WIDTHS.get(name))
        for at, entry in np.ndenumerate(tables[name]):
            solver.add(env[name].entries(*map(domain.const, at)) == domain.const(int(entry)))
    solver.add(evaluate(e, env, domain) != domain.const(value))
    assert solver.check() == z3.unsat


def test_a_look_up_outside_its_table_reads_the_nearest_entry():
    domain, table = NumpyDomain(), TableValue(np.array([5, 6, 7]), base=-1)
    index = np.array([-9, -2, -1, 0, 1, 2, 9])
    assert evaluate(lookup("t", var("i")), {"t": table, "i": index}, domain).tolist() == [5, 5, 5, 6, 7, 7, 7]
    assert evaluate(lookup("t", var("i")), {"t": TableValue(np.zeros(0, int)), "i": index}, domain).tolist() == [0] * 7


def test_an_entry_of_several_integers_is_read_at_the_nearest_of_them():
    domain, table = NumpyDomain(), TableValue(np.array([[5, 6, 7], [8, 9, 10]]))
    e = lookup("t", var("i"), var("k"))
    numbers = {"i": np.array([-1, 0, 1, 2])[:, None], "k": np.array([-1, 0, 2, 3])[None, :]}
    want = [[5, 5, 7, 7], [5, 5, 7, 7], [8, 8, 10, 10], [8, 8, 10, 10]]
    assert evaluate(e, {"t": table, **numbers}, domain).tolist() == want
    empty = TableValue(np.zeros((0, 3), int))
    assert evaluate(e, {"t": empty, **numbers}, domain).tolist() == [[0] * 4] * 4


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.lists(st.integers(0, 3), max_size=6), st.integers(-1, 4), st.integers(-1, 6), st.integers(-1, 7))
def test_first_is_the_least_or_the_upper_end(entries: list[int], bound: int, lo: int, hi: int):
    assume(entries)
    e = first("i", const(lo), const(hi), le(var("s"), lookup("t", var("i"))))
    env = {"t": TableValue(np.array(entries)), "s": bound}
    clamp = lambda k: entries[min(max(k, 0), len(entries) - 1)]  # noqa: E731
    expected = next((k for k in range(lo, hi) if bound <= clamp(k)), hi)
    assert int(evaluate(e, env, NumpyDomain())) == expected
