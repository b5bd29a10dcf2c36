"""The README's tables from recorded runs.

    python -m benchmarks.table [results/*.json]

Of attention: one row for each mask and length; of two runs of one cell the later counts. Times are medians in
milliseconds, ratios are the peer's time over cmir's: above 1, cmir is faster. First the four masks of every run, then
token orders. Of packed sequences: what describing them takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PHASES = ("forward", "backward", "forward+backward", "preprocess")


HEADLINE = ("causal", "hstu", "shared_prompt", "clear")
ORDERS = ("clear_wide", "clear_patches", "strided")


def runs(paths: Sequence[Path], benchmark: str) -> list[dict[str, Any]]:
    """The runs of `python -m benchmarks.<benchmark>`, the oldest first."""
    found = [json.loads(path.read_text()) for path in paths]
    command = f"python -m benchmarks.{benchmark} "
    return sorted((run for run in found if run["command"].startswith(command)), key=lambda run: run["date"])


def cells(paths: Sequence[Path], masks: Sequence[str] = HEADLINE + ORDERS) -> list[dict[str, Any]]:
    """The cells of attention that were measured, sorted by length; of a mask and length only the latest."""
    done = [cell for run in runs(paths, "attention") for cell in run["cells"] if "ms" in cell]
    latest = {(cell["mask"], cell["length"]): cell for cell in done if cell["mask"] in masks}
    return sorted(latest.values(), key=lambda cell: cell["length"])


def packed_table(paths: Sequence[Path]) -> str:
    """Markdown: per pack the time of describing it, the GPU's part of it, and the descriptor's size."""
    lines = ["| packed | tokens | sequences | describe ms | GPU ms | descriptor MiB |", "|---|---|---|---|---|---|"]
    latest = {(c["mask"], c["tokens"]): c for run in runs(paths, "packed") for c in run["cells"] if "ms" in c}
    for cell in sorted(latest.values(), key=lambda cell: (cell["tokens"], cell["mask"])):
        lines.append(
            f"| {cell['mask']} | {cell['tokens']} | {cell['sequences']} | {cell['ms']:.3f} | {cell['graph_ms']:.3f} | "
            f"{cell['descriptor_bytes'] / 2**20:.1f} |"
        )
    return "\n".join(lines)


def table(paths: Sequence[Path], masks: Sequence[str] = HEADLINE, peer: str = "flex-triton") -> str:
    """Markdown: per cell cmir's time, the peer's time and their ratio, for every phase."""
    lines = [
        "| mask | tokens | visible | " + " | ".join(PHASES) + " |",
        "|---|---|---|" + "---|" * len(PHASES),
    ]
    for cell in cells(paths, masks):
        ours, theirs = cell["ms"]["cmir"], cell["ms"][peer]
        figures = [f"{ours[p]:.3f} / {theirs[p]:.3f} = **{theirs[p] / ours[p]:.2f}x**" for p in PHASES]
        lines.append(f"| {cell['mask']} | {cell['tokens']} | {cell['visible']:.1%} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    chosen = [Path(name) for name in sys.argv[1:]] or sorted(RESULTS.glob("*.json"))
    print(table(chosen), table(chosen, ORDERS), packed_table(chosen), sep="\n\n")
