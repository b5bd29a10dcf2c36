"""A plot of what `benchmarks.operator --json` wrote: exact-area TFLOP/s over the length, one panel a mask.

python -m benchmarks.plot out.json [more.json ...] plot.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

PHASES = ("forward", "backward", "forward+backward")
COLUMNS = 3
"""Panels side by side."""


def series(cells: list[dict[str, Any]], mask: str, phase: str) -> dict[str, list[tuple[int, float]]]:
    """For each contender its (tokens, TFLOP/s), by tokens."""
    found: dict[str, list[tuple[int, float]]] = {}
    for cell in sorted((c for c in cells if c["mask"] == mask and "tflops" in c), key=lambda c: c["tokens"]):
        for name, rates in cell["tflops"].items():
            found.setdefault(name, []).append((cell["tokens"], rates[phase]))
    return found


def plot(reports: list[dict[str, Any]], phase: str, path: Path) -> None:
    from matplotlib.figure import Figure

    cells = [cell for report in reports for cell in report["cells"]]
    masks = list(dict.fromkeys(cell["mask"] for cell in cells if "tflops" in cell))
    down, across = -(-max(1, len(masks)) // COLUMNS), min(COLUMNS, max(1, len(masks)))
    figure = Figure(figsize=(3.6 * across, 3.2 * down), layout="constrained")
    axes = figure.subplots(down, across, sharey=True, squeeze=False).flat
    names = sorted(
        {name for cell in cells for name in cell.get("tflops", {})},
        key=lambda name: (not name.startswith("cmir"), name),
    )
    for axis, mask in zip(axes, masks, strict=False):
        for name, points in series(cells, mask, phase).items():
            axis.plot(*zip(*points, strict=True), marker="o", label=name, color=f"C{names.index(name)}")
        axis.set_title(mask)
        tokens = sorted({cell["tokens"] for cell in cells if cell["mask"] == mask and "tflops" in cell})
        axis.set_xscale("log", base=2)
        axis.set_xticks(tokens, [f"{n / 1024:.3g}K" for n in tokens])
        axis.set_xlabel("tokens")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    for axis in axes[len(masks) :]:
        axis.set_visible(False)
    axes[0].set_ylim(bottom=0)  # after all lines: the panels share it
    figure.supylabel(f"{phase}, TFLOP/s (visible pairs)", fontsize="medium")
    first = reports[0]
    settings = first["settings"]
    figure.suptitle(
        f"{first['device']}, {first['date'][:10]}, {settings['dtype']}, "
        f"{settings['heads']}/{settings['kv_heads']} heads, D={settings['dim']}",
        fontsize="small",
    )
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__)
    parser.add_argument("reports", type=Path, nargs="+", help="what benchmarks.operator wrote; cells of all are drawn")
    parser.add_argument("picture", type=Path, help="a .png, .svg or .pdf to write")
    parser.add_argument("--phase", choices=PHASES, default="forward+backward")
    options = parser.parse_args()
    plot([json.loads(path.read_text()) for path in options.reports], options.phase, options.picture)


if __name__ == "__main__":
    main()
