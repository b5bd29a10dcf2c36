"""Every stage of every mask of the zoo means the rule: specs, tables, tile states and what the kernels compute with."""

import pytest
from differential import check  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
from expected import IDS, SMALL, text

DRAWS = 12


@pytest.mark.parametrize(("name", "statics"), SMALL, ids=IDS)
def test_every_stage_means_the_rule(name: str, statics: dict[str, int]) -> None:
    check(text(name, statics), count=DRAWS, size=20, tile=(4, 3))
