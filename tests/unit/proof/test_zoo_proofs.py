"""Every pass is proved of every mask of the zoo; what is not is listed.

Masks whose statics make grids or many slots are proved with the small statics of the zoo's tests: the first of each in
`expected.py`. With the statics of the zoo all of them are proved too (`cm-opt --prove`), the slowest in 15 s.
"""

import time

import pytest
from counts import Counts
from expected import STATICS, text  # pyright: ignore[reportMissingImports]

from cmir import zoo
from cmir.tools.driver import parse, run_pipeline
from cmir.tools.proving import Prover

PASSES = ("lower-intervals", "transpose", "choose-axis", "lower-descriptor", "lower-attention")
PACKED = ("pack", "choose-axis", "lower-descriptor", "lower-attention")

SECONDS = 10.0
"""Of processor time, proofs and passes together."""
SLACK = 2.5  # for machines slower than the one that the limit was set on

UNKNOWN: dict[str, set[str]] = {}
"""The passes of a mask that are not proved: there are none."""

LAID_OUT = [
    ("causal", "zigzag(of = 4, rank = 1)"),
    ("window_flash", "zigzag(of = 2)"),
    ("causal", "striped(of = 3)"),
    ("window_two_sided", "residue(of = 3)"),
    ("hstu", "striped(of = 2)"),
    ("natten_2d", "patch(grid = [height, width], size = [2, 3])"),
]


def statuses(source: str, passes: tuple[str, ...], counts: Counts, before: tuple[str, ...] = ()) -> dict[str, str]:
    """What became of every pass; those that left everything as it was are left out, and so are passes `before`."""
    module = parse(source, "spec.mlir")
    run_pipeline(module, before)
    start, prover = time.process_time(), Prover()
    run_pipeline(module, passes, observer=prover)
    assert time.process_time() - start < SECONDS * SLACK
    found = {name: outcome.status for name, outcome in prover.outcomes if outcome.claims}
    counts("passes proved", sum(status == "proved" for status in found.values()), of=len(found))
    counts("questions answered by proof", sum(outcome.questions for _, outcome in prover.outcomes))
    return found


@pytest.mark.parametrize("name", zoo.NAMES)
def test_every_pass_is_proved(name: str, counts: Counts) -> None:
    found = statuses(text(name, STATICS.get(name, [{}])[0]), PASSES, counts)
    unknown = UNKNOWN.get(name, set[str]())
    assert found == {pass_: "unknown" if pass_ in unknown else "proved" for pass_ in found}
    assert {"check-regions", "extract-intervals", "transpose", "lower-descriptor"} <= set(found)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_packing_is_proved(name: str, counts: Counts) -> None:
    """And the kernels of packs."""
    found = statuses(text(name, STATICS.get(name, [{}])[0]), PACKED, counts, ("lower-intervals", "transpose"))
    assert found == dict.fromkeys(found, "proved") and {"pack", "lower-descriptor"} <= set(found)


@pytest.mark.parametrize(("name", "order"), LAID_OUT)
def test_layouts_are_proved(name: str, order: str, counts: Counts) -> None:
    source = text(name, STATICS.get(name, [{}])[0])
    source = source.replace("  maskspec.region", f"  maskspec.layout rows, cols = {order}\n  maskspec.region", 1)
    found = statuses(source, ("lower-intervals",), counts)
    assert set(found.values()) == {"proved"} and "layout" in found
