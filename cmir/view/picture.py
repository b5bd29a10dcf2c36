"""A mask as a picture, PNG or SVG, by matplotlib: pairs by slot, tile states, intervals beside rows and columns.

The same scene gives the same file with the same matplotlib; an SVG says in its description what it shows, so that a
picture can be compared with its scene whatever drew it (`description`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from cmir.dialects.expr import show
from cmir.errors import CmirError
from cmir.view.colours import FAINT, INK, TILES, colour, first_numbers
from cmir.view.coverage import image, pairs_of_cell
from cmir.view.scene import Interval, Scene

LISTED = 40
"""Most rows (columns) whose intervals are written beside them."""

CELL = 0.24
"""Inches of a cell whose intervals are written."""

DPI = 150
"""Pixels of an inch of a PNG."""

WIDTH = 780
"""Pixels of the longer side of a mask, about: of every cell there are as many."""


def save(scene: Scene, path: str, tile: tuple[int, int] | None = None) -> None:
    """Draw a scene.

    Args:
        scene: what to draw.
        path: the file to write, .png or .svg.
        tile: rows and columns of a tile, whose states are drawn beside the mask; None: no tiles.

    Raises:
        CmirError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CmirError(f"pictures need matplotlib: pip install 'cmir[view]' ({error})") from None
    written = max(scene.rows, scene.cols) <= LISTED
    style: Any = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "cmir",
        "font.family": "sans-serif",
        "font.size": 8,
        "text.color": INK,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with matplotlib.rc_context(style):  # pyright: ignore[reportUnknownMemberType]
        size_of_cell = max(map(pairs_of_cell, (scene.rows, scene.cols)))
        if written:
            width, height = (max(CELL * n, 1.2) for n in (scene.cols, scene.rows))
        else:  # whole pixels for every cell, so that none is drawn wider than the next
            cells = [-(-n // size_of_cell) for n in (scene.cols, scene.rows)]
            pixels = max(1, WIDTH // max(cells))
            width, height = (max(pixels * n / DPI, 1.2) for n in cells)
        rows, cols = (scene.intervals("rows"), scene.intervals("cols")) if written else ([], [])
        beside = max((sum(_letters(x) for x in line) + 2 * len(line) for line in rows), default=0) * 0.062
        above = max((len(" ".join(map(str, line))) for line in cols), default=0) * 0.06 + 0.35
        legend = _legend(scene)
        # Inches: [left, mask, intervals of rows, tiles, right] and [legend, mask, columns' intervals, top].
        names = max((len(name) for name, _, _ in scene.sections()), default=0)
        digits = len(str(max(scene.rows - 1, 0)))
        left, top = max(0.95, 0.35 + 0.075 * (names + 1) + 0.1 * digits), (above if written else 0.3) + 0.55
        side = max(beside + 0.3, 1.6) if written else 0.3
        tiles = 0.0 if tile is None else min(width, 2.0)
        notes = ["■ before an interval: a slot that is united in it"] * any(
            len(x.parts) > 1 for line in rows for x in line
        )
        if any(x.partly for line in (*rows, *cols) for x in line):
            notes.append("? after an interval: the rule decides pair by pair what is visible in it")
        if size_of_cell > 1:
            notes.append(f"a cell is {size_of_cell} x {size_of_cell} pairs, the paler the fewer are visible")
        bottom = 0.35 + 0.17 * (len(legend) + len(notes))
        left, side, bottom, top = (round(x * DPI) / DPI for x in (left, side, bottom, top))
        size = (left + width + side + tiles + 0.3, bottom + height + top)
        figure: Any = Figure(figsize=size, facecolor="white")
        FigureCanvasAgg(figure)
        box = (left / size[0], bottom / size[1], width / size[0], height / size[1])
        axes: Any = figure.add_axes(box)
        _pairs(axes, scene, tile, size_of_cell)
        _sections(axes, scene)
        if written:
            _written(axes, scene, rows, cols)
        if tile is not None:
            high = tiles * height / width if height <= width else min(height, tiles * height / width)
            right: Any = figure.add_axes(
                ((left + width + side) / size[0], (bottom + height - high) / size[1], tiles / size[0], high / size[1])
            )
            _tiles(right, scene, tile)
        seen, total = int(scene.dense.sum()), scene.rows * scene.cols
        share = f"{100 * seen / total:.1f} %" if total else "none"
        figure.text(0.12 / size[0], 1 - 0.24 / size[1], f"@{scene.name}", fontsize=11, fontweight="bold", va="center")
        figure.text(
            0.12 / size[0],
            1 - 0.44 / size[1],
            f"{scene.rows} rows, {scene.cols} columns; {share} of pairs visible",
            color=FAINT,
            va="center",
        )
        for k, (number, text) in enumerate(legend):
            y = bottom - 0.30 - 0.17 * k
            figure.text(left / size[0], y / size[1], "■", color=colour(number), fontsize=10, va="center")
            figure.text((left + 0.18) / size[0], y / size[1], text, va="center")
        for k, text in enumerate(notes, len(legend)):
            figure.text(left / size[0], (bottom - 0.30 - 0.17 * k) / size[1], text, color=FAINT, va="center")
        metadata = None
        if path.endswith("svg"):
            said = {"Creator": f"cmir, matplotlib {matplotlib.__version__}", "Description": description(scene, tile)}
            metadata = {"Date": None, **said}
        try:
            figure.savefig(path, dpi=DPI, metadata=metadata)
        except OSError as error:
            raise CmirError(f"cannot write '{path}': {error.strerror}") from None


def description(scene: Scene, tile: tuple[int, int] | None = None) -> str:
    """What a picture of a scene shows, as a digest: pairs, slots, intervals, tile states, words."""
    shown = json.dumps(
        [
            scene.name,
            scene.dense.astype(int).tolist(),
            *(scene.slots(axis)[0].tolist() for axis in ("rows", "cols")),
            [[[_said(x) for x in line] for line in scene.intervals(axis)] for axis in ("rows", "cols")],
            None if tile is None else scene.tile_states(tile).tolist(),
            _legend(scene),
        ]
    )
    return f"A mask drawn by cmir, scene {hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def _said(interval: Interval) -> str:
    parts = interval.parts[:-1]
    return str(interval) + (f" with {' and '.join(map(str, parts))}" if parts else "")


def _letters(interval: Interval) -> int:
    """How wide it is written: with a mark of two letters for every slot beside its own that it unites."""
    return len(str(interval)) + 2 * (len(interval.parts) - 1)


def _legend(scene: Scene) -> list[tuple[int, str]]:
    """(number of the slot, what it holds) for the row table; of many slots the first few."""
    out: list[tuple[int, str]] = []
    table = scene.tables["rows"]
    for region, first in zip(table.regions_of_table, first_numbers(table), strict=True):
        for k, span in enumerate(region.spans):
            text = f"[{show(span.lo.data)}, {show(span.hi.data)})"
            text += "" if span.residual is None else f" where {show(span.residual.data)}"
            text = scene.words(text)
            text = text if len(text) <= 60 else text[:57] + "..."
            out.append((first + k, f"@{region.sym_name.data} slot {k}  {text}"))
    return out if len(out) <= 9 else [*out[:8], (out[8][0], f"and {len(out) - 8} more")]


def _pairs(axes: Any, scene: Scene, tile: tuple[int, int] | None, size_of_cell: int) -> None:
    import numpy as np

    numbers, _ = scene.slots("rows")
    if scene.rows and scene.cols:
        shown = image(numbers, first_numbers(scene.tables["rows"]), size_of_cell)
        # The cells at the edges may reach past the last row and column.
        reach = [size_of_cell * n for n in shown.shape[:2]]
        axes.imshow(shown, extent=(0, reach[1], reach[0], 0), interpolation="nearest", aspect="auto")
    axes.set_xlim(0, max(scene.cols, 1))
    axes.set_ylim(max(scene.rows, 1), 0)
    if max(scene.rows, scene.cols) <= 2 * LISTED:
        axes.vlines(np.arange(1, scene.cols), 0, scene.rows, color="white", linewidth=0.6)
        axes.hlines(np.arange(1, scene.rows), 0, scene.cols, color="white", linewidth=0.6)
    if tile is not None:
        many = max(scene.cols // tile[1], scene.rows // tile[0]) > 16
        style: Any = {"color": INK, "linewidth": 0.3 if many else 0.6, "alpha": 0.35 if many else 0.6}
        axes.vlines(np.arange(tile[1], scene.cols, tile[1]), 0, scene.rows, **style)
        axes.hlines(np.arange(tile[0], scene.rows, tile[0]), 0, scene.cols, **style)
    for axis, length in ((axes.xaxis, scene.cols), (axes.yaxis, scene.rows)):
        most = 24 if length <= 100 else 16 if length <= 1000 else 10  # long numbers are wide
        step = next(n for d in range(10) for n in (10**d, 2 * 10**d, 5 * 10**d) if length <= most * n)
        ticks = range(0, length, step)
        axis.set_ticks([k + 0.5 for k in ticks], [str(k) for k in ticks])
    axes.tick_params(length=0, labelbottom=False, labeltop=True, pad=2, labelsize=7)
    axes.spines[:].set_visible(False)


def _sections(axes: Any, scene: Scene) -> None:
    """The name of every Region, or sequence of a pack, beside its rows, and a line where one ends."""
    digits, last = len(str(max(scene.rows - 1, 0))), -1.0
    for name, lo, hi in scene.sections():
        if lo >= hi:
            continue
        middle = (lo + hi) / 2
        if last < 0 or middle - last >= scene.rows / 40:  # as many names as can be read
            last = middle
            axes.annotate(
                name,
                (0, middle),
                xytext=(-10 - 5 * digits, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontweight="bold",
                annotation_clip=False,
            )
        if lo > 0:
            axes.plot([0, scene.cols], [lo, lo], color=INK, linewidth=0.8, linestyle=(0, (3, 3)), clip_on=False)


def _written(axes: Any, scene: Scene, rows: Sequence[Sequence[Interval]], cols: Sequence[Sequence[Interval]]) -> None:
    """The intervals of every row at its right, of every column above it, in the colours of their slots."""
    for axis, lines in (("rows", rows), ("cols", cols)):
        table = scene.tables[axis]
        first = dict(zip((r.sym_name.data for r in table.regions_of_table), first_numbers(table), strict=True))
        for k, line in enumerate(lines):
            # Columns share colours with rows only by chance, so theirs are written in ink.
            offset = 6.0 if axis == "rows" else 14.0
            for interval in line:
                text = str(interval)
                if axis == "rows":
                    at, rotation = (scene.cols, k + 0.5), 0
                    place, align = (offset, 0), {"ha": "left", "va": "center"}
                    ink = colour(first[interval.region] + interval.slot)
                    for part in interval.parts[:-1]:  # what else it is made of
                        mark: Any = {"color": colour(first[interval.region] + part), "fontsize": 7.5, "va": "center"}
                        where: Any = {"xytext": (offset, 0), "textcoords": "offset points", "annotation_clip": False}
                        axes.annotate("■", at, **where, **mark)
                        offset += 9
                        place = (offset, 0)
                else:
                    at, rotation = (k + 0.5, 0), 90
                    place, align = (0, offset), {"ha": "center", "va": "bottom"}
                    ink = INK
                axes.annotate(
                    text,
                    at,
                    xytext=place,
                    textcoords="offset points",
                    rotation=rotation,
                    annotation_clip=False,
                    color=_dark(ink),
                    fontsize=7.5,
                    fontweight="bold" if axis == "rows" else "normal",
                    **align,
                )
                offset += 4.6 * len(text) + 4
    right = {"ha": "left", "va": "bottom", "color": FAINT, "annotation_clip": False, "textcoords": "offset points"}
    axes.annotate("sees columns", (scene.cols, 0), xytext=(6, 4), **right)
    axes.annotate("column\nseen by rows", (0, 0), xytext=(-8, 4), **{**right, "ha": "right"})


def _dark(ink: str) -> str:
    """A colour dark enough to read as text on white: three quarters of its brightness."""
    from matplotlib.colors import to_hex, to_rgb

    return ink if ink == INK else to_hex(tuple(0.72 * part for part in to_rgb(ink)))  # pyright: ignore[reportArgumentType]


def _tiles(axes: Any, scene: Scene, tile: tuple[int, int]) -> None:
    """The state of every tile of `tile` rows and columns."""
    import numpy as np
    from matplotlib.colors import ListedColormap

    states = scene.tile_states(tile)
    m, n = states.shape
    if m and n:
        colours = ListedColormap(list(TILES))
        axes.imshow(states, cmap=colours, vmin=0, vmax=2, extent=(0, n, m, 0), interpolation="nearest", aspect="auto")
        if max(m, n) <= 64:
            axes.vlines(np.arange(0, n + 1), 0, m, color="#c9ced4", linewidth=0.5)
            axes.hlines(np.arange(0, m + 1), 0, n, color="#c9ced4", linewidth=0.5)
    axes.set_xlim(0, max(n, 1))
    axes.set_ylim(max(m, 1), 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#c9ced4")
    axes.set_title(f"tiles of {tile[0]} x {tile[1]}", fontsize=8, loc="left", pad=5)
    counts = [int((states == k).sum()) for k in range(3)]
    for k, word in ((2, "full"), (1, "partial"), (0, "empty")):
        down = -10 - 12 * (2 - k)
        where = {"textcoords": "offset points", "annotation_clip": False, "va": "center"}
        box = {"boxstyle": "square,pad=0.25", "facecolor": TILES[k], "edgecolor": "#8c959f", "linewidth": 0.5}
        axes.annotate("  ", (0, m or 1), xytext=(4, down), fontsize=4, bbox=box, **where)
        axes.annotate(f"{counts[k]} {word}", (0, m or 1), xytext=(14, down), **where)
