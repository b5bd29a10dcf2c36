"""One colour for every slot of every Region: Okabe and Ito's palette, which colour-blind readers tell apart."""

from __future__ import annotations

from typing import Final

from cmir.dialects.interval import TableOp

PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c6bb1")
HIDDEN: Final = "#f1f1ef"
INK: Final = "#1f2328"
FAINT: Final = "#6e7781"
TILES: Final = ("#ffffff", "#f3c969", "#3f7fb5")
"""Of empty, partial and full tiles."""


def first_numbers(table: TableOp) -> list[int]:
    """For every region of a table the number of its first slot, slots counted through all regions."""
    out, count = list[int](), 0
    for region in table.regions_of_table:
        out.append(count)
        count += len(region.spans)
    return out


def colour(number: int) -> str:
    """The colour of a slot by its number."""
    return PALETTE[number % len(PALETTE)]
