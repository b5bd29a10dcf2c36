"""The cases that broke other systems, on a GPU: the tests of tests/unit/runtime/test_cases.py."""

from test_cases import *  # noqa: F403  # pyright: ignore[reportMissingImports]
