"""The examples run, and the out-of-tree pass of CONTRIBUTING.md is right: its lit test, and the masks it makes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cmir import zoo
from cmir.analysis.facts import facts_of
from cmir.analysis.sampling import draw
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.interp.masks import spec_mask, table_mask
from cmir.tools import driver
from cmir.tools.pipeline import parse_passes
from cmir.tools.registry import Registry

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"


def run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(path: Path):
    assert "equal" in run(str(path))


def test_the_custom_pass_passes_its_own_lit_test():
    pytest.importorskip("lit")
    run("-m", "lit.main", "-v", "examples/custom_pass")


@pytest.mark.parametrize("name", ["causal", "hstu", "shared_prompt"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_custom_pass_cuts_a_window_out_of_a_mask(name: str, size: int):
    registry = Registry.installed()
    registry.load_file(str(EXAMPLES / "custom_pass" / "window.py"))
    module = driver.parse(zoo.path(name).read_text(), name)
    before = next(op for op in module.clone().walk() if isinstance(op, SpecOp))
    text = f"dnf-normalize,window{{size={size}}},lower-intervals"
    driver.run_pipeline(module, parse_passes(text, registry.passes))
    after = next(op for op in module.walk() if isinstance(op, SpecOp))
    table = next(op for op in module.walk() if isinstance(op, TableOp))

    rng = np.random.default_rng(size)
    checked = 0
    while checked < 20:
        env = draw(facts_of(after), rng, 20)
        if env is None:
            continue
        i, j = np.ogrid[: int(env["rows"]), : int(env["cols"])]
        want = spec_mask(before, env) & (i - j < size)
        assert np.array_equal(spec_mask(after, env), want)
        assert np.array_equal(table_mask(table, env), want)
        checked += 1
