"""Figures that a test run prints at its end: `12 passes proved, 45/45 mutants caught`.

    def test_something(counts):
        counts("passes proved", 12)
        counts("mutants caught", 1, of=1)      # printed as 1/1, summed over all tests

A figure travels as a property of its test's report, so it arrives from the workers of pytest-xdist too.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

KEY = "cmir-count"


class Counts(Protocol):
    """Adds `number` (out of `of`) to the figure of that name."""

    def __call__(self, name: str, number: int, of: int | None = None) -> None: ...


def recorder(record_property: Callable[[str, object], None]) -> Counts:
    """What the `counts` fixture gives a test."""

    def count(name: str, number: int, of: int | None = None) -> None:
        record_property(KEY, [name, number, of])

    return count


def summary(properties: Iterable[tuple[str, object]]) -> list[str]:
    """One line a figure, in the order of their names."""
    sums: dict[str, tuple[int, int | None]] = {}
    for key, value in properties:
        if key == KEY and isinstance(value, list):
            name, number, of = value
            known, whole = sums.get(name, (0, None))
            sums[name] = known + number, whole if of is None else (whole or 0) + of
    return [f"{name}: {n}" if of is None else f"{name}: {n}/{of}" for name, (n, of) in sorted(sums.items())]
