"""A mask as text: a letter for every slot, and the intervals of every row and column, `a+b` where two are united,
`a [0, 8)?` where a condition decides which of its positions are visible.

@hstu: 6 rows, 6 columns, 18 of 36 pairs visible
  i  012345  columns that row i sees
  0  a.....  a [0, 1)
...
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from cmir.dialects.expr import show
from cmir.view.colours import first_numbers
from cmir.view.scene import SLOTS, Axis, Interval, Scene

WIDEST = 160
"""Columns of the widest mask that is drawn; wider ones are their intervals alone."""


def drawing(scene: Scene) -> str:
    """The text of a scene, with a final newline."""
    seen, pairs = int(scene.dense.sum()), scene.rows * scene.cols
    out = [f"@{scene.name}: {scene.rows} rows, {scene.cols} columns, {seen} of {pairs} pairs visible", ""]
    out += _rows(scene)
    out += ["", *_legend(scene, "rows"), ""]
    width = len(str(scene.cols))
    out.append(f"{'j':>{width + 2}}  rows that see column j")
    for j, found in enumerate(scene.intervals("cols")):
        out.append(f"{j:>{width + 2}}  {_intervals(scene, 'cols', found)}".rstrip())
    return "\n".join([*out, "", *_legend(scene, "cols")]) + "\n"


def _rows(scene: Scene) -> list[str]:
    width, drawn = len(str(scene.rows)), scene.cols <= WIDEST
    tens = "".join(str(j // 10 % 10) if j and not j % 10 else " " for j in range(scene.cols))
    units = "".join(str(j % 10) for j in range(scene.cols))
    out = [f"{'':{width + 2}}  {tens}".rstrip()] if drawn and scene.cols > 10 else []
    out.append(f"{'i':>{width + 2}}  " + (f"{units}  " if drawn else "") + "columns that row i sees")
    slots, _ = scene.slots("rows")
    first = first_numbers(scene.tables["rows"])
    for i, found in enumerate(scene.intervals("rows")):
        cells = ""
        if drawn:
            cells = "".join("." if k < 0 else _letter(first[k // SLOTS] + k % SLOTS) for k in map(int, slots[i])) + "  "
        out.append(f"{i:>{width + 2}}  {cells}{_intervals(scene, 'rows', found)}".rstrip())
    return out


def _letter(number: int) -> str:
    return ascii_letters[number % len(ascii_letters)]


def _intervals(scene: Scene, axis: Axis, found: Sequence[Interval]) -> str:
    table = scene.tables[axis]
    first = dict(zip((r.sym_name.data for r in table.regions_of_table), first_numbers(table), strict=True))

    def letters(x: Interval) -> str:
        return "+".join(_letter(first[x.region] + part) for part in x.parts)

    return "  ".join(f"{letters(x)} {x}" for x in found)


def _legend(scene: Scene, axis: Axis) -> list[str]:
    out: list[str] = []
    table = scene.tables[axis]
    for region, first in zip(table.regions_of_table, first_numbers(table), strict=True):
        for k, span in enumerate(region.spans):
            text = f"[{show(span.lo.data)}, {show(span.hi.data)})"
            text += "" if span.when is None else f" when {show(span.when.data)}"
            text += "" if span.residual is None else f" where {show(span.residual.data)}"
            out.append(f"  {_letter(first + k)}  @{region.sym_name.data} slot {k}: {scene.words(text)}")
    if any(span.residual is not None for region in table.regions_of_table for span in region.spans):
        out.append("  ?  only where the condition after 'where' holds")
    return out
