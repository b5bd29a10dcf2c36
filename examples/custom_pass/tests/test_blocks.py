"""What the op means: places of the same block, whatever passes are run."""

from pathlib import Path

import pytest

from cmir.testing import check_pass

BLOCKS = Path(__file__).parents[1] / "cmir_extra" / "blocks.py"
TEXT = (Path(__file__).parent / "blocks.mlir").read_text().replace("of 64", "of 5")  # so that masks of 20 rows show it


@pytest.mark.parametrize("pipeline", ["canonicalize", "dnf-normalize", "lower-intervals,transpose", "lint"])
def test_blocks_are_what_they_are_after_every_pass(pipeline: str):
    check_pass(TEXT, pipeline, want=lambda mask, i, j, env: (i // 5 == j // 5) & (j <= i), load=[str(BLOCKS)])
