"""GPU tests run where CMIR_TEST_GPU=1 and there is a GPU; CMIR_TEST_GPU=interpret tries them in an interpreter."""

import os
import sys
from pathlib import Path

import pytest

# The cases of the unit tests run here too.
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "runtime"))

MODE = os.environ.get("CMIR_TEST_GPU", "")


def _missing() -> str | None:
    if MODE == "interpret":
        return None
    if MODE != "1":
        return "set CMIR_TEST_GPU=1 to run GPU tests"
    import torch

    return None if torch.cuda.is_available() else "no CUDA device"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = _missing()
    for item in items:
        if missing is not None and item.path.parent.name == "gpu":
            item.add_marker(pytest.mark.skip(reason=missing))
