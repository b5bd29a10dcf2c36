"""How many intervals of a line one tile may touch: at least as many as are counted, and not many more."""

import numpy as np
import pytest

from cmir import zoo
from cmir.analysis.crowding import most_at_once
from cmir.analysis.sampling import sample
from cmir.interp.masks import table_intervals


def most_counted(intervals: np.ndarray, width: int) -> int:
    """Of intervals [slots, 2, lines] the most of one line that touch the same tile of `width` positions."""
    live = intervals[:, 0] < intervals[:, 1]
    first, last = intervals[:, 0] // width, (intervals[:, 1] - 1) // width  # of the tiles that it touches
    # In the first tile that as many touch, one of them begins.
    return max((int((live & (first <= t) & (t <= last)).sum(axis=0).max(initial=0)) for t in first), default=0)


@pytest.mark.parametrize("width", [1, 8, 32])
@pytest.mark.parametrize("name", zoo.NAMES)
def test_no_tile_touches_more(name: str, width: int) -> None:
    mask = zoo.load(name)
    for table in mask._tables.values():
        if table.slots is None or table.residual_span is not None:
            continue
        bound = most_at_once(table, width)
        for draw in sample(mask.facts, count=4, seed=1, size=24):
            assert most_counted(table_intervals(table, draw.env), width) <= bound


def test_a_slot_that_holds_one_of_two_intervals_counts_as_both() -> None:
    """A disc wider than the image: intervals of rows far apart are never both there, and share a slot."""
    mask = zoo.load("clear", radius=16, height=22, width=23, text=512)
    rows = mask._tables["rows"]
    n = 512 + 22 * 23
    assert mask.slots == {"rows": 23, "cols": 23}
    assert most_counted(mask.intervals(rows=n, cols=n), 128) == 7
    assert most_at_once(rows, 128) == 8  # that of the text and seven of rows of the image, wherever the tile begins
    assert not mask.signature.bits
