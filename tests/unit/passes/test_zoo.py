"""Every stage of every zoo mask means what the surface rule means, on 200 draws of its metadata."""

import re
from importlib.resources import files

import pytest
from differential import check, tables_in

DRAWS = 200

# (mask, statics small enough to check densely, slots by row and by column)
CASES = [
    ("causal", {}, 1, 1),
    ("hstu", {}, 2, 1),
    ("shared_prompt", {}, 2, 1),
    ("hstu_meta", {"context": 3, "window": 5, "full": 4}, 2, 3),
    ("hstu_meta", {"context": 3, "window": 0, "full": 4}, 2, 2),
    ("hstu_meta", {"context": 0, "window": 0, "full": 0}, 2, 1),
    ("hstu_meta", {"context": 0, "window": 4, "full": 0}, 2, 1),
    ("clear", {"radius": 3, "height": 6, "width": 7, "text": 4}, 6, 6),  # min(2 * radius - 1, height) + 1
    ("clear", {"radius": 3, "height": 4, "width": 9, "text": 2}, 5, 5),
    ("clear", {"radius": 4, "height": 4, "width": 12, "text": 0}, 4, 4),  # no text: one less
    ("clear", {"radius": 4, "height": 9, "width": 3, "text": 0}, 1, 1),  # a circle wider than the image: whole rows
]


def zoo(name: str, statics: dict[str, int]) -> str:
    """The text of a zoo mask with other values of its statics."""
    text = (files("cmir") / "zoo" / f"{name}.mlir").read_text(encoding="utf-8")
    for static, value in statics.items():
        text, count = re.subn(rf"%{static}: index = \d+", f"%{static}: index = {value}", text)
        assert count == 1
    return text


@pytest.mark.parametrize(("name", "statics", "rows", "cols"), CASES)
def test_every_stage_means_the_rule(name: str, statics: dict[str, int], rows: int, cols: int):
    module = check(zoo(name, statics), count=DRAWS, size=24)
    slots = {table.axis.data: table.slots.data if table.slots else None for table in tables_in(module)}
    assert slots == {"rows": rows, "cols": cols}
