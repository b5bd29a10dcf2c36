"""The grammar of random specs can say all that the language can, and what is made of its specs is all that there is.

What there is to say is read off the dialects (`constructs.py`), so that nothing new goes without random specs of it.
"""

from constructs import constructs, constructs_in, ops_of
from counts import Counts
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_specs import specs
from test_layout import with_layouts
from test_random import REFUSED, Tokens, layouts

from cmir.dialects.attention import Attention
from cmir.dialects.descriptor import Descriptor
from cmir.dialects.interval import Interval
from cmir.errors import SpecError
from cmir.tools.driver import parse, run_pipeline

SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]  an enumeration, iterated
)


def test_random_specs_say_all_that_the_language_can(counts: Counts):
    found: set[str] = set()

    @seed(0)
    @settings(SETTINGS, max_examples=500)
    @given(specs(), st.none() | layouts())
    def run(text: str, orders: dict[str, Tokens] | None):
        found.update(constructs_in(parse(with_layouts(text, *(orders or ())), "spec.mlir")))

    run()
    # A pack is what a pass makes of a spec, and what random specs are packed into is tested.
    there = constructs() - {"maskspec.spec with packed"}
    assert found >= there, f"never drawn: {sorted(there - found)}"
    assert not found - there, f"not listed: {sorted(found - there)}"
    counts("constructs of the language that random specs are made of", len(found & there), of=len(there))


def test_random_specs_become_all_that_there_is():
    """Of the dialects that specs are lowered to, every op is made of some random spec."""
    found: set[str] = set()

    @seed(0)
    @settings(SETTINGS, max_examples=12)
    @given(specs(depth=1))
    def run(text: str):
        try:
            module = parse(text, "spec.mlir")
            run_pipeline(module, ["lower-intervals", "transpose"])
            packed = module.clone()
            run_pipeline(packed, ["pack"])
            for tables in (module, packed):
                found.update(op.name for op in tables.walk())
                by_bits = tables.clone()
                run_pipeline(by_bits, ["choose-axis{test=bits}", "lower-descriptor", "lower-attention"])
                run_pipeline(tables, ["choose-axis", "lower-descriptor", "lower-attention"])
                found.update(op.name for lowered in (by_bits, tables) for op in lowered.walk())
        except SpecError as error:
            assert any(reason in error.message for reason in REFUSED), error.message

    run()
    assert found >= (there := ops_of(Interval, Descriptor, Attention)), f"never made: {sorted(there - found)}"
