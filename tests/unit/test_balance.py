"""What the benchmarks count about schedules, and the turns their processes take."""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.balance import dealt, drawn, utilization, visited
from benchmarks.masks import SUITES
from benchmarks.turns import Prepared


def test_whoever_is_free_takes_the_next() -> None:
    assert drawn([5, 1, 1, 1, 1, 1], 2) == 5
    assert drawn([1, 1, 1, 1, 1, 5], 2) == 7
    assert dealt(np.array([5, 1, 1, 1, 1, 1]), 2) == 7


def test_tiles_of_causal_are_a_triangle_and_longest_first_is_best() -> None:
    case = SUITES["headline"]["causal"](1000, "cpu")
    assert visited(case).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    found = utilization(case, 132, 2.0)
    assert max(found.values()) <= 1
    assert found["longest first"] >= max(found["by rows"], found["dealt"])


WAITING = "from benchmarks.turns import wait_for_turn; wait_for_turn(); open({!r}, 'w').write('timed')"


def test_processes_wait_for_their_turn(tmp_path: Path) -> None:
    path = tmp_path / "report"
    process = Prepared(["-c", WAITING.format(str(path))])
    assert process.said.wait(60)
    time.sleep(0.1)
    assert not path.exists()
    assert process.turn(60)
    assert path.read_text() == "timed"


def test_a_process_that_ends_early_or_never_holds_up_nobody() -> None:
    early = Prepared(["-c", "raise SystemExit(1)"])
    assert early.said.wait(60)
    assert early.turn(60)
    endless = Prepared(["-c", "import time; time.sleep(600)"])
    assert not endless.said.is_set()
    assert not endless.turn(0.1)
    endless.kill()
    assert endless.said.wait(60)
