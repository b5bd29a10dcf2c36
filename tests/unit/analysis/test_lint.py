"""Warnings are proved: none about the zoo, and a mask without the part that one names is the same mask."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_specs import specs  # pyright: ignore[reportMissingImports]

import cmir
from cmir import zoo
from cmir.analysis.facts import facts_of
from cmir.analysis.lint import warnings_of
from cmir.analysis.sampling import sample
from cmir.analysis.unseen import columns_unseen
from cmir.dialects.maskspec import RegionOp, SpecOp
from cmir.interp.masks import spec_mask
from cmir.tools.driver import parse


def spec_in(text: str) -> SpecOp:
    return next(op for op in parse(text, "spec.mlir").walk() if isinstance(op, SpecOp))


@pytest.mark.parametrize("name", zoo.NAMES)
def test_no_warning_about_the_zoo(name: str):
    assert warnings_of(spec_in(zoo.path(name).read_text())) == []


RULES = [
    "maskspec.clause j <= i maskspec.clause j <= i and j < n",
    "maskspec.clause j < n maskspec.clause t[i] <= j and j < n maskspec.clause t[i] <= j and j <= i",
    "maskspec.clause j < n maskspec.clause n <= j and j < t[i] and i < n maskspec.clause i < t[i] and j < 3",
    "maskspec.clause j mod 4 == 0 maskspec.clause j mod 2 == 0 maskspec.clause j mod 8 == 4 and j <= i",
    "maskspec.clause j < i + 2 maskspec.clause j < i maskspec.clause j == i + 1",
    "maskspec.clause i floordiv 4 == j floordiv 4 maskspec.clause i == j maskspec.clause j < t[i] and t[i] <= i",
]


@pytest.mark.parametrize("rule", RULES)
def test_a_part_that_changes_nothing_may_go(rule: str):
    spec = spec_in(
        "maskspec.spec @m(%n: index, %t: !maskspec.table<row>) {\n"
        "maskspec.assume 0 <= n and n <= rows\nmaskspec.assume 0 <= t[i] and t[i] <= i\n"
        f"maskspec.region @all rows [0, rows) {{\n{rule.replace(' maskspec', chr(10) + 'maskspec')}\n}}\n}}\n"
    )
    (region,) = spec.regions_of_rows
    lines = [w.location.line for w in warnings_of(spec) if w.location and "part of the rule" in w.message]
    shorter = spec.clone()
    copy = next(op for op in shorter.walk() if isinstance(op, RegionOp))
    for original, clause in zip(region.clauses, copy.clauses, strict=True):
        match = re.search(r":(\d+):", str(cmir.errors.locate(original)))
        assert match
        if int(match[1]) in lines:
            clause.detach()
    assert lines
    for draw in sample(facts_of(spec), 40, seed=5, size=20):
        assert (spec_mask(spec, draw.env) == spec_mask(shorter, draw.env)).all()


def test_a_mask_says_its_warnings_where_they_were_written():
    spec = cmir.MaskSpec("m")
    i, j = spec.i, spec.j
    causal = j <= i
    spec.region("all", 0, spec.rows, visible=causal | (causal & (j < 5)))
    (warning,) = cmir.compile(spec).warnings
    assert warning.startswith(f"{__file__}:")
    assert "warning: this part of the rule of Region @all changes nothing: the rest of the rule implies it\n" in warning
    assert zoo.load("hstu").warnings == []


def test_a_static_that_counts_slots_is_read():
    """It is not for leaving out, and what is shown with one number of slots says nothing of another number."""
    clauses = "maskspec.clause j < t[i, 0] maskspec.clause j < t[i, 0] and j < t[i, 1]"
    rule = f"maskspec.region @all rows [0, rows) {{ {clauses} }}"
    declared = "%k: index = 2, %t: !maskspec.table<row x {}>, %unused: index"
    by_number, by_static = (
        [w.message for w in warnings_of(spec_in(f"maskspec.spec @m({declared.format(k)}) {{ {rule} }}"))]
        for k in (2, "k")
    )
    assert by_static == ["nothing that @m shows depends on 'unused'; leave it out"]
    assert "nothing that @m shows depends on 'k'; leave it out" in by_number and len(by_number) == 3


LOWER = st.sampled_from(["0", "1", "2", "n", "t[i]", "i - 3", "5"])
UPPER = st.sampled_from(["cols", "cols - 1", "cols - 2", "n", "n - 1", "i", "i + 1", "5", "max(4, cols - 2)"])
KNOWN = ("0 <= n and n <= cols", "rows == cols", "1 <= n", "0 <= t[i] and t[i] <= i", "n < rows")


@st.composite
def nearly_all(draw: st.DrawFn) -> str:
    """Specs whose clauses are ranges of columns, some of which leave out an end of the axis."""
    facts = "".join(f"maskspec.assume {fact}\n" for fact in draw(st.lists(st.sampled_from(KNOWN), unique=True)))
    regions = ""
    for name, guard in draw(st.sampled_from([[("all", "0, rows")], [("a", "0, n"), ("b", "n, rows")]])):
        clauses = draw(st.lists(st.tuples(LOWER, UPPER), min_size=1, max_size=2))
        said = "".join(f"maskspec.clause {lo} <= j and j < {hi}\n" for lo, hi in clauses)
        regions += f"maskspec.region @{name} rows [{guard}) {{\n{said}}}\n"
    return f"maskspec.spec @m(%n: index, %t: !maskspec.table<row>) {{\n{facts}{regions}}}\n"


def test_columns_said_to_be_unseen_are():
    """By no row of any mask that is drawn anew."""
    said = 0

    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(nearly_all() | specs(depth=1))
    def run(text: str):
        nonlocal said
        spec = spec_in(text)
        facts = facts_of(spec)
        for columns, least in columns_unseen(spec, facts):
            said += 1
            for mask in (spec_mask(spec, draw.env) for draw in sample(facts, 60, seed=6, size=50)):
                if min(mask.shape) >= least:
                    end = mask.shape[1] if columns.end is None else columns.end
                    seen = mask[:, ::-1] if columns.last else mask
                    assert not seen[:, columns.first : end].any(), f"{columns} of a mask of {mask.shape}:\n{text}"

    run()
    assert said > 10
