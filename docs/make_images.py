"""Draws docs/images/hstu.svg: the HSTU mask of a small sequence, coloured by slot, with the intervals of every row.

    python docs/make_images.py

The cells are the rule's (`CompiledMask.dense`), the colours and the text the compiled form's
(`CompiledMask.intervals`); the two are compared before anything is drawn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cmir import zoo
from cmir.interp.masks import paint

HISTORY = 7
CANDIDATES = (2, 3, 2)
CELL = 17
LEFT, TOP = 104, 34
COLOURS = {"history.0": "#4c78a8", "candidate.0": "#72b7b2", "candidate.1": "#f58518"}
"""By Region and slot."""

IMAGE = Path(__file__).parent / "images" / "hstu.svg"


def hstu() -> str:
    """The picture, as SVG text."""
    lengths = np.array(CANDIDATES)
    rows = HISTORY + int(lengths.sum())
    first = HISTORY + np.repeat(np.cumsum(lengths) - lengths, lengths)
    start = np.concatenate([np.zeros(HISTORY, dtype=np.int32), first])
    mask = zoo.load("hstu")
    dense = mask.dense(rows=rows, history=HISTORY, start=start)
    table = mask.intervals("rows", rows=rows, history=HISTORY, start=start)
    assert np.array_equal(paint(table, rows), dense)

    width, height = LEFT + rows * CELL + 190, TOP + rows * CELL + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 14, "column j (key)"),
        _text(LEFT + rows * CELL + 10, 14, "the row's intervals, by slot"),
    ]
    guards = {"history": (0, HISTORY), "candidate": (HISTORY, rows)}
    for region, (lo, hi) in guards.items():
        middle = TOP + (lo + hi) * CELL / 2
        out.append(_text(8, middle - 4, f"@{region}", weight="bold"))
        out.append(_text(8, middle + 10, {"history": "rows [0, history)"}.get(region, "[history, rows)")))
        for i in range(lo, hi):
            y = TOP + i * CELL
            for j in range(rows):
                slot = next((k for k, (a, b) in enumerate(table[:, :, i]) if a <= j < b), None)
                colour = "#f1f1f1" if slot is None else COLOURS[f"{region}.{slot}"]
                out.append(
                    f'<rect x="{LEFT + j * CELL}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{colour}"/>'
                )
            x = LEFT + rows * CELL + 10
            for slot, (a, b) in enumerate(table[:, :, i]):
                if a < b:
                    out.append(_text(x, y + 12, f"[{a}, {b})", fill=COLOURS[f"{region}.{slot}"], weight="bold"))
                x += 62
    y = TOP + HISTORY * CELL - 0.5
    out.append(f'<line x1="8" y1="{y}" x2="{width - 60}" y2="{y}" stroke="#444444" stroke-dasharray="3 3"/>')
    legend = {"history.0": "j <= i", "candidate.0": "j < history", "candidate.1": "start[i] <= j <= i"}
    x = LEFT
    for key, rule in legend.items():
        out.append(f'<rect x="{x}" y="{height - 22}" width="11" height="11" fill="{COLOURS[key]}"/>')
        out.append(_text(x + 16, height - 12, rule))
        x += 90 if key != "candidate.0" else 105
    return "\n".join([*out, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, fill: str = "#222222", weight: str = "normal") -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" font-weight="{weight}">{escaped}</text>'


if __name__ == "__main__":
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    IMAGE.write_text(hstu())
