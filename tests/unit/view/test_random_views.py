"""Random specs, looked at: a scene is made of each, pairs are explained as the rule has them, node computes the same.

CMIR_FUZZ=500 tries that many instead of a few."""

import os
import sys
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from viewing import plain, run_node

from cmir.errors import MetadataError, SpecError
from cmir.view.cell import explain
from cmir.view.javascript import literal, program
from cmir.view.load import lower
from cmir.view.provenance import clause_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "passes"))

from random_specs import specs  # pyright: ignore[reportMissingImports]  # of another folder of tests

# What the compiler rightly refuses of what the grammar of random specs can say.
REFUSED = ("clauses in disjunctive normal form", "this fact never holds", "anything could be proved")


@seed(int(os.environ.get("CMIR_FUZZ_SEED", "0")))
@settings(
    max_examples=int(os.environ.get("CMIR_FUZZ", "12")),
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(specs())
def test_random_specs_are_seen_as_they_are(text: str):
    try:
        mask = lower(text, "random.mlir")
        scene = mask.scene(mask.metadata(None, None, {}))  # compares both tables with the rule
    except SpecError as error:
        assume(not any(reason in error.message for reason in REFUSED))
        raise
    except MetadataError as error:  # facts that no draw satisfies
        assume("no metadata that satisfy the facts" not in str(error))
        raise
    assert all(clause_lines(mask.surface, mask.spec).values())
    rng = np.random.default_rng(0)
    for _ in range(10 if scene.dense.size else 0):
        i, j = int(rng.integers(scene.rows)), int(rng.integers(scene.cols))
        said = explain(scene, i, j)
        assert said.visible == any(c.holds for c in said.clauses) == any(s.holds for s in said.row_slots)
        assert said.visible == any(s.holds for s in said.col_slots)
    found = run_node(
        f"const mask = {program(scene.spec, scene.tables)};\nconst $ = environment(mask, {literal(plain(scene))});\n"
        "const pictures = [visiblePairs(mask, $), ...['rows', 'cols'].map((axis) => slotsOfPairs(mask, $, axis))];\n"
        "process.stdout.write(JSON.stringify(pictures.map((x) => [...x])));"
    )
    for pairs in found:
        np.testing.assert_array_equal(np.array(pairs).reshape(scene.dense.shape) >= 0, scene.dense)
