"""The README's table from recorded runs.

    python -m benchmarks.table [results/*.json]

One row for each mask and length; of two runs of one cell the later counts. Times are medians in milliseconds, ratios
are the peer's time over cmir's: above 1, cmir is faster.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PHASES = ("forward", "backward", "forward+backward", "preprocess")


def cells(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The cells of all runs, sorted by length; of a mask and length only the latest."""
    runs = sorted((json.loads(path.read_text()) for path in paths), key=lambda run: run["date"])
    latest = {(cell["mask"], cell["length"]): cell for run in runs for cell in run["cells"]}
    return sorted(latest.values(), key=lambda cell: cell["length"])


def table(paths: Sequence[Path], peer: str = "flex-triton") -> str:
    """Markdown: per cell cmir's time, the peer's time and their ratio, for every phase."""
    lines = [
        "| mask | tokens | visible | " + " | ".join(PHASES) + " |",
        "|---|---|---|" + "---|" * len(PHASES),
    ]
    for cell in cells(paths):
        ours, theirs = cell["ms"]["cmir"], cell["ms"][peer]
        figures = [f"{ours[p]:.3f} / {theirs[p]:.3f} = **{theirs[p] / ours[p]:.2f}x**" for p in PHASES]
        lines.append(f"| {cell['mask']} | {cell['tokens']} | {cell['visible']:.1%} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([Path(name) for name in sys.argv[1:]] or sorted(RESULTS.glob("*.json"))))
