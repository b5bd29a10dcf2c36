"""A mask as a picture, PNG or SVG, by matplotlib: pairs by slot, tile states, intervals beside rows and columns.

The same scene gives the same file with the same matplotlib; an SVG says in its description what it shows, so that a
picture can be compared with its scene whatever drew it (`description`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cmir.dialects.expr import show
from cmir.errors import CmirError
from cmir.view.colours import FAINT, HIDDEN, INK, TILES, colour, first_numbers
from cmir.view.scene import SLOTS, Interval, Scene

if TYPE_CHECKING:
    import numpy as np

LISTED = 40
"""Most rows (columns) whose intervals are written beside them."""

CELL = 0.24
"""Inches of a cell whose intervals are written."""


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
        inches = [CELL * n if written else 5.2 * n / max(scene.rows, scene.cols) for n in (scene.cols, scene.rows)]
        width, height = (max(x, 1.2) for x in inches)
        rows, cols = scene.intervals("rows"), scene.intervals("cols")
        beside = max((sum(len(_text(x)) for x in line) + 2 * len(line) for line in rows), default=0) * 0.062
        above = max((len(" ".join(map(_text, line))) for line in cols), default=0) * 0.06 + 0.35
        legend = _legend(scene)
        # Inches: [left, mask, intervals of rows, tiles, right] and [legend, mask, columns' intervals, top].
        names = [len(region.sym_name.data) for region in scene.spec.regions_of_rows]
        left, top = max(0.95, 0.55 + 0.075 * (max(names) + 1)), (above if written else 0.3) + 0.55
        side = max(beside + 0.3, 1.6) if written else 0.3
        tiles = 0.0 if tile is None else min(width, 2.0)
        bottom = 0.35 + 0.17 * len(legend)
        size = (left + width + side + tiles + 0.3, bottom + height + top)
        figure: Any = Figure(figsize=size, facecolor="white")
        FigureCanvasAgg(figure)
        box = (left / size[0], bottom / size[1], width / size[0], height / size[1])
        axes: Any = figure.add_axes(box)
        _pairs(axes, scene, tile)
        _guards(axes, scene)
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
        said = {"Creator": f"cmir, matplotlib {matplotlib.__version__}", "Description": description(scene, tile)}
        metadata = {"Date": None, **said} if path.endswith("svg") else None
        try:
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise CmirError(f"cannot write '{path}': {error.strerror}") from None


def description(scene: Scene, tile: tuple[int, int] | None = None) -> str:
    """What a picture of a scene shows, as a digest: pairs, slots, intervals, tile states, words."""
    shown = json.dumps(
        [
            scene.name,
            scene.dense.astype(int).tolist(),
            *(scene.slots(axis)[0].tolist() for axis in ("rows", "cols")),
            [[list(map(_text, line)) for line in scene.intervals(axis)] for axis in ("rows", "cols")],
            None if tile is None else scene.tile_states(tile).tolist(),
            _legend(scene),
        ]
    )
    return f"A mask drawn by cmir, scene {hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def _text(interval: Interval) -> str:
    return f"[{interval.lo}, {interval.hi})"


def _legend(scene: Scene) -> list[tuple[int, str]]:
    """(number of the slot, what it holds) for the row table; of many slots the first few."""
    out: list[tuple[int, str]] = []
    table = scene.tables["rows"]
    for region, first in zip(table.regions_of_table, first_numbers(table), strict=True):
        for k, span in enumerate(region.spans):
            text = f"[{show(span.lo.data)}, {show(span.hi.data)})"
            text += "" if span.residual is None else f" where {show(span.residual.data)}"
            text = text if len(text) <= 60 else text[:57] + "..."
            out.append((first + k, f"@{region.sym_name.data} slot {k}  {text}"))
    return out if len(out) <= 9 else [*out[:8], (out[8][0], f"and {len(out) - 8} more")]


def _image(numbers: np.ndarray, first: Sequence[int]) -> np.ndarray:
    """float [rows, cols, 3]: the colour of every pair."""
    import numpy as np
    from matplotlib.colors import to_rgb

    out = np.empty((*numbers.shape, 3))
    out[:] = to_rgb(HIDDEN)
    for value in np.unique(numbers):
        if value >= 0:
            out[numbers == value] = to_rgb(colour(first[int(value) // SLOTS] + int(value) % SLOTS))
    return out


def _pairs(axes: Any, scene: Scene, tile: tuple[int, int] | None) -> None:
    import numpy as np

    numbers, _ = scene.slots("rows")
    extent = (0, scene.cols, scene.rows, 0)
    if scene.rows and scene.cols:
        image = _image(numbers, first_numbers(scene.tables["rows"]))
        axes.imshow(image, extent=extent, interpolation="nearest", aspect="auto")
    axes.set_xlim(0, max(scene.cols, 1))
    axes.set_ylim(max(scene.rows, 1), 0)
    if max(scene.rows, scene.cols) <= 2 * LISTED:
        axes.vlines(np.arange(1, scene.cols), 0, scene.rows, color="white", linewidth=0.6)
        axes.hlines(np.arange(1, scene.rows), 0, scene.cols, color="white", linewidth=0.6)
    if tile is not None:
        axes.vlines(np.arange(tile[1], scene.cols, tile[1]), 0, scene.rows, color=INK, linewidth=0.6, alpha=0.6)
        axes.hlines(np.arange(tile[0], scene.rows, tile[0]), 0, scene.cols, color=INK, linewidth=0.6, alpha=0.6)
    for axis, length in ((axes.xaxis, scene.cols), (axes.yaxis, scene.rows)):
        step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if length <= 24 * n)
        ticks = range(0, length, step)
        axis.set_ticks([k + 0.5 for k in ticks], [str(k) for k in ticks])
    axes.tick_params(length=0, labelbottom=False, labeltop=True, pad=2, labelsize=7)
    axes.spines[:].set_visible(False)


def _guards(axes: Any, scene: Scene) -> None:
    """The name of every Region beside its rows, and a line where one ends."""
    for region in scene.spec.regions_of_rows:
        lo, hi = scene.guard(region)
        if lo >= hi:
            continue
        axes.annotate(
            f"@{region.sym_name.data}",
            (0, (lo + hi) / 2),
            xytext=(-20, 0),
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
                text = _text(interval)
                if axis == "rows":
                    at, rotation = (scene.cols, k + 0.5), 0
                    place, align = (offset, 0), {"ha": "left", "va": "center"}
                    ink = colour(first[interval.region] + interval.slot)
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
