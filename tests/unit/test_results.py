"""What the README says was measured is what the recorded runs say."""

import json
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.table import (  # noqa: E402
    HEADLINE,
    HOPPER,
    ORDERS,
    RESULTS,
    cells,
    describing_table,
    flashmask_table,
    graphs_table,
    hopper_table,
    packed_table,
    runs,
    table,
    targets_table,
    training_table,
)

RUNS = sorted(RESULTS.glob("*.json"))


def test_the_tables_of_the_readme_are_printed_from_the_runs() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert hopper_table(RUNS) in readme
    assert flashmask_table(RUNS) in readme
    assert table(RUNS, HEADLINE) in readme
    assert table(RUNS, ORDERS) in readme
    assert packed_table(RUNS) in readme
    assert training_table(RUNS) in readme


def test_the_tables_of_the_notes_are_printed_from_the_runs() -> None:
    notes = (REPOSITORY / "benchmarks" / "NOTES.md").read_text()
    assert targets_table(RUNS) in notes
    assert graphs_table(RUNS) in notes
    assert describing_table(RUNS) in notes


def test_every_recorded_cell_was_right() -> None:
    """As exact as 2.5e-3, or as the most exact peer of the cell but for 0.5 %.

    Gradients of short sequences round more, for all. Weights relative to a maximum of some time (`LAG`) round more than
    those of which the largest is 1: out by 2.5 %, gradients by 0.2 %."""
    for cell in [*cells(RUNS), *cells(RUNS, HOPPER, ("cmir-gluon",))]:
        assert cell["right"], cell["mask"]
        whole = {name: [error["whole"] for error in errors.values()] for name, errors in cell["errors"].items()}
        peers = [errors for name, errors in whole.items() if not name.startswith("cmir")]
        for name in (name for name in whole if name.startswith("cmir")):
            for place, error in enumerate(whole[name]):
                bound = max(2.5e-3, 1.005 * min(errors[place] for errors in peers))
                assert error < bound, (cell["mask"], cell["length"], name)


def test_engines_trained_alike() -> None:
    trained = [run for path in RUNS if "task" in (run := json.loads(path.read_text()))]
    assert {run["task"] for run in trained} == {"clear", "hstu", "reward_model"}
    assert all(run["losses_agree"] and not run["failed"] for run in trained)


def test_packed_cells_were_right_and_within_their_bounds() -> None:
    for run in runs(RUNS, "packed"):
        for cell in run["cells"]:
            assert cell["right"], cell["mask"]
            if cell["tokens"] == 2**20:
                assert cell["ms"] < 3
                assert cell["descriptor_bytes"] < 256 * 2**20


def test_runs_name_no_machine() -> None:
    for path in RUNS:
        assert not re.search(r"\"[^\"]*(/root|/home|/tmp|/work)/", path.read_text()), path
