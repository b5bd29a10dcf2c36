"""Every mask of the zoo over packed sequences: each is the mask of its own sequence."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "passes"))

from expected import IDS, SMALL, text
from packing import check_packs  # pyright: ignore[reportMissingImports]


@pytest.mark.parametrize(("name", "statics"), SMALL, ids=IDS)
def test_a_pack_is_its_sequences(name: str, statics: dict[str, int]) -> None:
    check_packs(text(name, statics), draws=8, size=12)
