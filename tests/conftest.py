"""Settings for every test: kernels run in Triton's interpreter unless CMIR_TEST_GPU=1 asks for the GPU."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Tests share the modules beside this file.
sys.path.insert(0, str(Path(__file__).parent))

from counts import Counts, recorder, summary
from quicker import quicken_interpreter

# Triton reads this when a kernel is defined, so it is set before anything imports triton.
if os.environ.get("CMIR_TEST_GPU") != "1":
    os.environ["TRITON_INTERPRET"] = "1"

# Terms, ops and nodes are many and live as long as a test: to look at them again at every 700th is a tenth of the time.
gc.set_threshold(50_000, 20, 20)

# A cache of their own: what one run left behind must not decide the next, nor fill the user's. Workers inherit it.
if "CMIR_CACHE_DIR" not in os.environ:
    os.environ["CMIR_CACHE_DIR"] = tempfile.mkdtemp(prefix="cmir-tests-")
    atexit.register(shutil.rmtree, os.environ["CMIR_CACHE_DIR"], ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    quicken_interpreter()  # a test may be the first that imports Triton


@pytest.fixture
def counts(record_property: Callable[[str, object], None]) -> Counts:
    """Adds to a figure that is printed at the end of the run, see `counts.py`."""
    return recorder(record_property)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = (report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, []))
    if lines := summary(item for report in reports for item in getattr(report, "user_properties", [])):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(params=["triton", "gluon"] if os.environ.get("CMIR_TEST_GPU") == "1" else ["triton"])
def attend(request: pytest.FixtureRequest) -> Any:
    """`cmir.attention` with each backend; skips those that are not available, by name."""
    from support import attend_with, missing_backend

    if missing := missing_backend(request.param):
        pytest.skip(f"{request.param}: {missing}")
    return attend_with(request.param)
