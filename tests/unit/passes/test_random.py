"""Every stage of random specs means what the surface rule means. CMIR_FUZZ=5000 tries that many instead of a few."""

import os

import pytest
from differential import check, tables_in
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from random_specs import specs

from cmir.errors import SpecError

EXAMPLES = int(os.environ.get("CMIR_FUZZ", "30"))
# What the compiler rightly refuses of what the grammar of random specs can say.
REFUSED = ("clauses in disjunctive normal form", "this fact never holds", "anything could be proved")


@seed(int(os.environ.get("CMIR_FUZZ_SEED", "0")))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(specs())
def test_every_stage_means_the_rule(text: str):
    try:
        check(text, count=12)
    except SpecError as error:
        assume(not any(reason in error.message for reason in REFUSED))
        raise


HEADER = "maskspec.spec @kept(%s: index, %t: !maskspec.table<row>, %f: !maskspec.table<free>, %w: index = 3) {\n"

# Specs that were once compiled wrongly, or that make a pass's hardest step matter: (facts, row guard and clauses ...).
KEPT = {
    # Slots 1 and 2 never meet, but slot 0 may be united with slot 1 and then reach slot 2.
    "fuse is closed": (
        "maskspec.assume 0 <= s and s + 5 <= t[i] and t[i] + 5 <= cols",
        "maskspec.region @a rows [0, rows) { maskspec.clause f[0] <= j and j < f[0] + 9 "
        "maskspec.clause s <= j and j < s + 2 maskspec.clause t[i] <= j and j < t[i] + 2 }",
    ),
    # A fact about rows says nothing of what a look-up past the last row reads.
    "facts end with the rows": (
        "maskspec.assume for i in [0, rows + 4) : t[i] + i <= 2 * rows - 1",
        "maskspec.region @a rows [0, rows) { maskspec.clause j < t[i + 2] + i and i <= j }",
    ),
    "no rule shows anything": ("", "maskspec.region @a rows [0, rows) { }"),
    "a guard past the rows": (
        "maskspec.nondecreasing t",
        "maskspec.region @a rows [s - 3, rows + 4) { maskspec.clause t[i] <= j and j <= i }",
    ),
    "a monotone table read past its ends": (
        "maskspec.nondecreasing t maskspec.nondecreasing f",
        "maskspec.region @a rows [0, rows) { maskspec.clause t[i + 1] <= j and j <= t[i - 1] + 4 "
        "maskspec.clause f[i floordiv 2] == j }",
    ),
    "monotone on its range only": (
        "maskspec.nondecreasing t over [s, rows) maskspec.assume 0 <= s",
        "maskspec.region @a rows [s, rows) { maskspec.clause t[i] <= j } "
        "maskspec.region @b rows [0, s) { maskspec.clause t[i] <= j }",
    ),
    "two pins that disagree": (
        "",
        "maskspec.region @a rows [0, rows) { maskspec.clause j floordiv 3 == i and j floordiv 3 == 2 and j mod 3 < 2 }",
    ),
    "pins that hold each other": (
        "",
        "maskspec.region @a rows [0, rows) { "
        "maskspec.clause j floordiv 6 == i and (j mod 6) floordiv 2 == 1 and j mod 2 == 0 }",
    ),
    "negative divisors of the index": (
        "",
        "maskspec.region @a rows [0, rows) { "
        "maskspec.clause (s - 2 * j) floordiv 3 <= i and i <= (5 - j) floordiv 2 + s }",
    ),
    "when the condition decides": (
        "maskspec.assume rows == cols",
        "maskspec.region @a rows [0, rows) { maskspec.clause s <= i and j < s maskspec.clause i < s and j <= i "
        "maskspec.clause i == s and j == cols - 1 }",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str):
    facts, regions = KEPT[name]
    check(f"{HEADER}{facts}\n{regions}\n}}\n", count=60)


ALIGNED = """
maskspec.spec @aligned(%seg: !maskspec.table<row>, %owner: !maskspec.table<free>, %w: index) {
  maskspec.contiguous seg
  maskspec.assume 0 <= seg[i] and 0 <= w
  maskspec.nondecreasing owner
  maskspec.region @all rows [0, rows) (%i, %j) {
    %p = maskspec.position bottom_right %i
    %q = maskspec.position top_left %i
    %w0 = arith.subi %p, %w : index
    %s = maskspec.lookup %seg[%i]
    %o = maskspec.lookup %owner[%s]
    %a = arith.cmpi sle, %j, %p : index
    %b = arith.cmpi sle, %w0, %j : index
    %c = arith.cmpi sle, %j, %o : index
    %d = maskspec.exists %e in [0, 1] {
      %r = maskspec.position bottom_right %q
      %x = arith.addi %r, %e : index
      %y = arith.cmpi eq, %x, %j : index
      maskspec.yield %y
    }
    %ab = arith.andi %a, %b : i1
    %abc = arith.andi %ab, %c : i1
    %v = arith.ori %abc, %d : i1
    maskspec.visible %v
  }
}
"""


def test_alignment_and_look_ups_by_segment():
    rows, cols = tables_in(check(ALIGNED, count=60))
    # The window of a row, cut at its owner's end, and the two columns at its position; likewise by column.
    assert [t.slots is not None and t.slots.data for t in (rows, cols)] == [2, 2]


def test_a_row_where_slots_meet_in_a_chain():
    facts, regions = KEPT["fuse is closed"]
    rows = tables_in(check(f"{HEADER}{facts}\n{regions}\n}}\n"))[0]
    assert rows.regions_of_table[0].fused == ((0, 1), (0, 2), (1, 2))
