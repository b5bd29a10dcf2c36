"""What the README says was measured is what the recorded runs say."""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.table import HEADLINE, HOPPER, ORDERS, RESULTS, cells, hopper_table, packed_table, runs, table  # noqa: E402

RUNS = sorted(RESULTS.glob("*.json"))


def test_the_tables_of_the_readme_are_printed_from_the_runs() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert hopper_table(RUNS) in readme
    assert table(RUNS, HEADLINE) in readme
    assert table(RUNS, ORDERS) in readme
    assert packed_table(RUNS) in readme


def test_every_recorded_cell_was_right() -> None:
    for cell in [*cells(RUNS), *cells(RUNS, HOPPER, ("cmir-gluon",))]:
        assert cell["right"], cell["mask"]
        for name, errors in cell["errors"].items():
            if name.startswith("cmir"):
                bound = 2.6e-3 if name == "cmir-gluon" else 2.5e-3
                assert max(error["whole"] for error in errors.values()) < bound, (cell["mask"], name)


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
