"""A large mask as a picture of fewer cells: each is a square of pairs, and shaded by how many of them are visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cmir.view.colours import HIDDEN, colour
from cmir.view.scene import SLOTS

if TYPE_CHECKING:
    import numpy as np

CELLS = 1100
"""Most cells of a picture's side."""

PALEST = 0.3
"""How strong the colour of a cell is of which next to nothing is visible: a line of single pairs must be seen."""


def pairs_of_cell(length: int) -> int:
    """Rows and columns of pairs in a cell, a power of two, so that tiles are made of whole cells."""
    size = 1
    while -(-length // size) > CELLS:
        size *= 2
    return size


def image(numbers: np.ndarray, first: Sequence[int], size: int = 1) -> np.ndarray:
    """float [row cells, column cells, 3]: of every cell the mean colour of its visible pairs, exactly, the paler the
    fewer they are.

    Args:
        numbers: int64 [rows, cols], as of `Scene.slots`: -1 where a pair is hidden.
        first: the number of the first slot of every region of the table.
        size: rows and columns of a cell; those at the far edges are what is left.
    """
    import numpy as np
    from matplotlib.colors import to_rgb

    height, width = (np.arange(0, n, size, dtype=np.int64) for n in numbers.shape)

    def count(pairs: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.add.reduceat(pairs.astype(np.int64), height, 0), width, 1)

    seen = count(numbers >= 0)[:, :, None]
    ink = np.zeros((len(height), len(width), 3))
    for value in np.unique(numbers[numbers >= 0]):
        own = to_rgb(colour(first[int(value) // SLOTS] + int(value) % SLOTS))
        ink += count(numbers == value)[:, :, None] * np.array(own)
    share = seen / count(np.ones(numbers.shape, dtype=bool))[:, :, None]
    strength = np.where(seen > 0, PALEST + (1 - PALEST) * share, 0)
    return strength * ink / np.maximum(seen, 1) + (1 - strength) * np.array(to_rgb(HIDDEN))
