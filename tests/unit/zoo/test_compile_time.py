"""From text to source in seconds of processor time, in little memory, or an error that names the rule."""

import time

import pytest
from expected import text

import cmir
from cmir.dialects.descriptor import PreprocessOp
from cmir.lowering.triton import lowered, print_module
from cmir.tools import driver
from cmir.tools.registry import Registry

SECONDS = 2.0
SLACK = 2.5  # for machines slower than the one that the limit was set on


@pytest.mark.parametrize(
    ("name", "statics"),
    [
        ("clear", {"radius": 32, "height": 128, "width": 256}),  # 64 slots
        ("hstu_meta", {}),
        ("shared_prompt", {}),
        ("natten_2d", {"half": 4}),
        ("tree_dfs", {}),
        ("vertical_slash", {}),
    ],
)
def test_the_hardest_masks_compile_in_time(name: str, statics: dict[str, int]) -> None:
    source = text(name, statics)
    start = time.process_time()
    module = lowered(Registry.installed().context(), driver.parse(source, name))
    print_module(module, next(op for op in module.walk() if isinstance(op, PreprocessOp)))
    assert time.process_time() - start < SECONDS * SLACK


@pytest.mark.parametrize(
    ("name", "layout"),
    [("hstu", "zigzag(of = 4)"), ("hstu_meta", "striped(of = 4)"), ("dilated_window", "residue(of = 3)")],
)
def test_layouts_of_rules_with_offsets_and_remainders_compile_in_time(name: str, layout: str) -> None:
    """They have more clauses than can be merged pair by pair: a pass has its share of work, and says where it ends."""
    start = time.process_time()
    module = lowered(
        Registry.installed().context(),
        driver.parse(
            text(name, {}).replace(
                "  maskspec.region", f"  maskspec.layout rows, cols = {layout}\n  maskspec.region", 1
            ),
            name,
        ),
    )
    print_module(module, next(op for op in module.walk() if isinstance(op, PreprocessOp)))
    assert time.process_time() - start < 3 * SECONDS * SLACK


def product(factors: int) -> cmir.MaskSpec:
    """(j < f[0] or f[0] < i) and (j < f[1] or f[1] < i) and ...: 2 ** factors clauses, of which hardly any merge."""
    spec = cmir.MaskSpec("product")
    f = spec.table("f", per="free")
    rule = (spec.j < f[0]) | (f[0] < spec.i)
    for k in range(1, factors):
        rule = rule & ((spec.j < f[k]) | (f[k] < spec.i))
    spec.region("all", 0, spec.rows, visible=rule)
    return spec


def test_many_clauses_that_hardly_merge_take_time_in_proportion() -> None:
    start = time.process_time()
    driver.run_pipeline(product(5).module(), ["lower-intervals", "transpose"])
    assert time.process_time() - start < SECONDS * SLACK * 2


def test_a_rule_that_blows_up_is_refused_by_name() -> None:
    start = time.process_time()
    with pytest.raises(cmir.SpecError, match="the rule of Region @all has more than 256 clauses in disjunctive normal"):
        cmir.compile(product(20))
    assert time.process_time() - start < SECONDS
