"""What the pass means: of the mask before it, the pairs that lie less than `size` apart."""

from pathlib import Path

import pytest

from cmir import zoo
from cmir.testing import check_pass

WINDOW = Path(__file__).parents[1] / "cmir_extra" / "window.py"


@pytest.mark.parametrize("name", ["causal", "hstu", "shared_prompt"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_window_is_cut_out_of_a_mask(name: str, size: int):
    check_pass(
        zoo.path(name).read_text(),
        f"dnf-normalize,window{{size={size}}},lower-intervals",
        want=lambda mask, i, j, env: mask & (i - j < size),
        load=[str(WINDOW)],
    )
