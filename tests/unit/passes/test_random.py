"""Every stage of random specs means what the surface rule means, packed, with layouts, and given garbage.

CMIR_FUZZ=2000 tries that many specs instead of a few, CMIR_FUZZ_SEED=1 others. The seed is fixed: a run repeats itself.
Many specs are tried BLOCK at a time, a block a test with a seed of its own: pytest then shows how far a night has come,
its workers share it, and what one block finds is told (and made small) while the others go on.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import addresses
import numpy as np
import pytest
import torch
from counts import Counts
from differential import check, check_garbage, garbage, spec_in, tables_in, words
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from packing import FewDrawsError, check_packs
from random_specs import specs
from test_layout import Tokens, check_layout, patches, read, striped, with_layouts, zigzag

import cmir
from cmir.analysis.facts import facts_of
from cmir.analysis.sampling import sample
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.errors import SpecError
from cmir.interp.domain import TableValue
from cmir.interp.preprocess import kernel_mask, slot_table, status_word
from cmir.tools.driver import parse, run_pipeline
from cmir.tools.proving import Prover

EXAMPLES = int(os.environ.get("CMIR_FUZZ", "30"))
SEED = int(os.environ.get("CMIR_FUZZ_SEED", "0"))
BLOCK = 50
# What the compiler rightly refuses of what the grammar of random specs can say.
REFUSED = ("clauses in disjunctive normal form", "this fact never holds", "anything could be proved")

SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]  an enumeration, iterated
)
PROVED = (
    *("check-regions", "dnf-normalize", "extract-intervals", "canonicalize-intervals", "merge-slots"),
    *("transpose", "choose-axis", "lower-descriptor", "lower-attention"),
)


def blocks(share: int = 1) -> pytest.MarkDecorator:
    """A test of one of `share` examples: the tests that it is made of, each its number of specs and its seed."""
    wanted = max(1, EXAMPLES // share)
    sizes = [min(BLOCK, wanted - done) for done in range(0, wanted, BLOCK)]
    return pytest.mark.parametrize(
        "block", [pytest.param((size, SEED * 1000 + k), id=f"seed{SEED}-{k}") for k, size in enumerate(sizes)]
    )


def fuzzed(block: tuple[int, int]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A hypothesis test that tries the specs of a block."""
    size, number = block
    return lambda run: seed(number)(settings(SETTINGS, max_examples=size)(run))


def refusable(function: Callable[[], object]) -> None:
    """Runs a check; what the compiler rightly refuses, or has facts too hard to satisfy by drawing, is another example;
    any other exception is a find."""
    try:
        function()
    except FewDrawsError:
        assume(False)
    except SpecError as error:
        assume(not any(reason in error.message for reason in REFUSED))
        raise


@blocks()
def test_every_stage_means_the_rule(counts: Counts, block: tuple[int, int]):
    @fuzzed(block)
    @given(specs())
    def run(text: str):
        def both() -> None:
            broken = check_garbage(check(text, count=12))
            counts("specs fuzzed", 1)
            counts("metadata fuzzed that break a fact", broken)

        refusable(both)

    run()


@blocks(5)
def test_packs_of_random_specs(counts: Counts, block: tuple[int, int]):
    @fuzzed(block)
    @given(specs())
    def run(text: str):
        refusable(lambda: check_packs(text, draws=3, shared=False))
        counts("specs fuzzed, packed", 1)

    run()


ORDERS: dict[str, Tokens] = {
    "zigzag(of = 2, rank = 1)": lambda n, _: zigzag(2, 1, 2 * n),
    "zigzag(of = k)": lambda n, _: zigzag(2, None, n),
    "striped(of = 3)": lambda n, _: striped(3, None, n),
    "striped(of = w, rank = w - 2)": lambda n, _: striped(3, 1, 3 * n),
    "residue(of = 3)": lambda n, _: striped(3, None, n),
    "patch(grid = [2, w], size = [k, 2])": lambda n, _: patches((2, 3), (2, 2), 0, n),
    "patch(grid = [4], size = [3], after = 1)": lambda n, _: patches((4,), (3,), 1, n),
    "table(name = order)": lambda n, env: read(env["order"].values, n),
}


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Tokens]:
    """The layouts of a spec, each with the tokens that it puts at the places of its axes."""
    axes = draw(st.sampled_from(["rows", "cols", "rows, cols"]))
    order = draw(st.sampled_from(sorted(ORDERS)))
    out = {f"{axes} = {order}": ORDERS[order]}
    if axes == "rows" and draw(st.booleans()):
        other = draw(st.sampled_from(["striped(of = 3)", "residue(of = 3)"]))
        out[f"cols = {other}"] = ORDERS[other]
    return out


@blocks(10)
def test_layouts_of_random_specs(counts: Counts, block: tuple[int, int]):
    @fuzzed(block)
    @given(specs(depth=1), layouts())
    def run(text: str, orders: dict[str, Tokens]):
        tokens = {axis: of for layout, of in orders.items() for axis in layout.partition(" = ")[0].split(", ")}

        def laid_out() -> None:
            module = parse(with_layouts(text, *orders), "layout.mlir")
            run_pipeline(module, ["layout"])
            assume(sample(facts_of(spec_in(module)), count=3, seed=1, size=14))  # lengths that a grid needs, say
            check_layout(text, list(orders), tokens, count=3)

        refusable(laid_out)
        counts("specs fuzzed, with a layout", 1)

    run()


@blocks(6)
def test_proofs_agree_with_tests(counts: Counts, block: tuple[int, int]):
    """Of a random spec no proof says that a pass is wrong, where every test says that it is right: the two share the
    meaning of operators and nothing else."""

    def prove(text: str) -> None:
        prover = Prover()
        run_pipeline(parse(text, "spec.mlir"), PROVED, observer=prover)
        found = [outcome.status for _, outcome in prover.outcomes if outcome.claims]
        counts("passes proved, of random specs", found.count("proved"), of=len(found))

    @fuzzed(block)
    @given(specs(depth=1))
    def run(text: str):
        refusable(lambda: prove(text))

    run()


@pytest.mark.parametrize("test", ["auto", "bits"])
@blocks(6)
def test_kernels_of_random_specs(counts: Counts, tmp_path: Path, block: tuple[int, int], test: Literal["auto", "bits"]):
    """The printed preprocess kernel, run by Triton's interpreter on good metadata and on garbage: its status, tables,
    bits and area are those of NumPy, and it touches nothing but its memory."""
    path, rng = tmp_path / "spec.mlir", np.random.default_rng(5)

    def run_kernels(text: str) -> None:
        path.write_text(text)
        mask = cmir.compile(path, test=test)
        preprocess = next(op for op in mask.module.walk() if isinstance(op, PreprocessOp))
        kernel = next(op for op in mask.module.walk() if isinstance(op, KernelOp))
        good = sample(mask.facts, count=2, seed=4, size=20)
        for draw in (*good, garbage(mask.facts, rng, 20), garbage(mask.facts, rng, 20)):
            if any(p.kind == "free" and not len(draw.env[p.name].values) for p in mask.facts.parameters):
                continue
            given: dict[str, Any] = {
                k: torch.as_tensor(v.values) if isinstance(v, TableValue) else torch.tensor(int(v))
                for k, v in draw.env.items()
                if k not in ("rows", "cols")
            }
            rows, cols = int(draw.env["rows"]), int(draw.env["cols"])
            where = f"where {words(draw)}:\n{text}"
            with addresses.checked() as memory:
                try:
                    desc = mask.describe(rows=rows, cols=cols, **given, tile=(16, 16))
                except cmir.MetadataError as refused:
                    assert "break the fact" in str(refused)  # one about lengths alone
                    continue
                memory.check_gaps(desc)
            assert desc.status.tolist() == [status_word(preprocess, draw.env)], where
            for axis, table in (("rows", desc.row_table), ("cols", desc.col_table)):
                if table is not None:
                    want = slot_table(preprocess, axis, draw.env)
                    present = want[:, :1] < want[:, 1:]
                    assert np.array_equal(np.where(present, table[0].numpy(), 0), np.where(present, want, 0)), where
            seen = kernel_mask(kernel, preprocess, draw.env, (16, 16))
            assert desc.area.tolist() == [int(seen.sum())] or status_word(preprocess, draw.env), where
            if desc.bits is not None:
                assert np.array_equal(desc.to_dense()[0, 0].numpy(), seen), where
        counts(f"specs fuzzed, their kernels run{', by bits' if test == 'bits' else ''}", 1)

    @fuzzed(block)
    @given(specs(depth=1))
    def run(text: str):
        refusable(lambda: run_kernels(text))

    run()


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
    # Too many choices to be taken apart, one of them by what no clause but only a comparison in it may say.
    "a choice by an inequality": (
        "",
        "maskspec.region @a rows [0, rows) { maskspec.clause "
        "select(i != s or t[i] < 2, t[i], select(i < 3, 1, select(i < 5, 2, select(i < 7, 3, 4)))) <= j }",
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
