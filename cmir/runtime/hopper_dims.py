"""Which head dims the kernels for Hopper take, and how: one table for each of them, the same for float16 and bfloat16.

A head dim D of q and k, and Dv of v, is rounded up to a *width*, the columns of which a block in shared memory has room
for; those past D are read as zeros and never written. Widths and lengths of steps are what 227 KiB of shared memory and
240 registers a thread allow. What is in no table runs on the portable kernels.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

QK_WIDTHS = (64, 96, 128, 160, 192, 256)
V_WIDTHS = (64, 128, 256)
"""Of v and out, accumulated in registers: powers of two. So are q and k in the backward pass."""

MOST_SHARED = 232448
"""Bytes of shared memory that a program can have."""


class Forward(NamedTuple):
    """How the forward kernel takes a pair of head dims."""

    width: int
    """Columns of a piece of q and k."""
    pieces: int
    value_width: int
    step: int
    """Keys of a step: with values of 256, half a tile, for the registers."""
    stages: int
    """Steps whose keys and values are in shared memory."""
    out_in_q: bool
    """Whether the output leaves from where the queries were, for want of shared memory."""

    @property
    def shared(self) -> int:
        """Bytes of shared memory of the blocks."""
        queries, out = 128 * self.width * self.pieces, 128 * self.value_width
        keys_values = self.step * (self.width * self.pieces + self.value_width)
        return 2 * (queries + (0 if self.out_in_q else out) + self.stages * keys_values)


# (width of q and k, width of v): keys of a step, stages, the output in the place of the queries
_FORWARD: dict[tuple[int, int], tuple[int, int, bool]] = {
    (64, 64): (128, 4, False),
    (64, 128): (128, 3, False),
    (64, 256): (64, 3, False),
    (96, 64): (128, 4, False),
    (96, 128): (128, 3, False),
    (96, 256): (64, 3, False),
    (128, 64): (128, 3, False),
    (128, 128): (128, 2, False),
    (128, 256): (64, 2, False),
    (160, 64): (128, 3, False),
    (160, 128): (128, 2, False),
    (160, 256): (64, 2, False),
    (192, 64): (128, 2, False),
    (192, 128): (128, 2, True),
    (192, 256): (64, 2, False),
    (256, 64): (128, 2, True),
    (256, 128): (64, 3, True),
    (256, 256): (64, 2, True),
}


def width_of(dim: int, widths: tuple[int, ...]) -> int | None:
    """The least of `widths` that has room for a head dim; None for one that is small for the least, or too large."""
    if dim <= widths[0] // 2 or dim > widths[-1]:
        return None
    return widths[bisect_left(widths, dim)]


def forward_dims(dim: int, value_dim: int) -> Forward | None:
    """How the forward kernel takes head dims of q and k, and of v; None: it does not."""
    width, value_width = width_of(dim, QK_WIDTHS), width_of(value_dim, V_WIDTHS)
    if width is None or value_width is None:
        return None
    step, stages, out_in_q = _FORWARD[width, value_width]
    piece = width & -width if width & (width - 1) else width  # the largest power of two that divides it
    return Forward(piece, width // piece, value_width, step, stages, out_in_q)


class Backward(NamedTuple):
    """How the backward kernels take a pair of head dims."""

    width: int
    value_width: int
    wide: bool
    """Whether a program owns half a tile of columns (`backward_wide`), for the registers."""
    leaving: int
    """Of a consumer's dq of a step, the columns that leave at a time."""

    @property
    def keys(self) -> int:
        """Columns of a program."""
        return 64 if self.wide else 128


def backward_dims(dim: int, value_dim: int) -> Backward | None:
    """How the backward kernels take head dims of q and k, and of v; None: they do not."""
    width, value_width = width_of(dim, V_WIDTHS), width_of(value_dim, V_WIDTHS)
    if width is None or value_width is None:
        return None
    leaving = 16 if width == value_width == 256 else width // 2
    return Backward(width, value_width, max(width, value_width) > 128, leaving)
