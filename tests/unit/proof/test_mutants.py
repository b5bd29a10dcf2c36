"""Deliberate faults are caught by the proof of a compile, and nothing is found where there is no fault."""

import pytest
from counts import Counts
from mutants import MUTANTS, Mutant, caught, proofs  # pyright: ignore[reportMissingImports]

MASKS = sorted({m.mask for m in MUTANTS} - {"overlapping"})


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_a_fault_is_caught(mutant: Mutant, counts: Counts) -> None:
    how = caught(mutant)
    print(f"{mutant.name}: {how}")
    counts("mutants caught", int(how is not None), of=1)
    counts("mutants refuted in numbers", int(how is not None and how.endswith(": refuted")))
    assert how is not None


@pytest.mark.parametrize("mask", MASKS)
def test_without_a_fault_all_is_proved(mask: str) -> None:
    assert proofs(mask) == []


def test_overlapping_regions_are_refused_before_they_are_proved_to_overlap() -> None:
    (found,) = proofs("overlapping")
    assert found.startswith("crash: ") and "overlap" in found


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 40 and len({m.name for m in MUTANTS}) == len(MUTANTS)
