"""The README's tables from recorded runs.

    python -m benchmarks.table [results/*.json]

Of attention: one row for each mask and length; of two runs of one cell the later counts. Times are medians in
milliseconds, ratios are the peer's time over cmir's: above 1, cmir is faster. First cmir's best kernels beside the best
peer; then its portable kernels beside FlexAttention's, the four masks of every run and token orders. Of FlashMask's
masks, a suite of its own: cmir's best kernels beside FlexAttention's Triton kernels. Of packed sequences: what
describing them takes. Of the training examples: tokens a second of a whole step. Last, for benchmarks/NOTES.md: what
was aimed at and reached, and what describing takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PHASES = ("forward", "backward", "forward+backward", "preprocess")


HEADLINE = ("causal", "hstu", "shared_prompt", "clear")
ORDERS = ("clear_wide", "clear_patches", "strided")
HOPPER = (*HEADLINE, "clear_patches", "clear_square", "packed_hstu")

FLEX = ("flex-fa4", "flex-triton")
TARGETS = (
    ("causal", ("fa4", "cudnn"), (1.0, 0.97), (4096, 8192, 32768)),
    ("hstu", ("flex-fa4",), (1.05, 1.05), (8192, 32768)),
    ("shared_prompt", ("flex-fa4",), (1.05, 1.05), (8192, 32768)),
    ("clear_patches", ("flex-fa4-raster",), (3.0, 2.6), (8192, 32768)),
    ("clear_square", ("flex-fa4-raster",), (3.0, 2.6), (8192, 32768)),
    ("packed_hstu", FLEX, (2.0, 2.0), (8192, 32768)),
    *((mask, FLEX, (1.5, 1.5), (1024, 4096)) for mask in HEADLINE),
    ("clear_square", ("flex-fa4-raster", "flex-raster"), (1.5, 1.5), (1024, 4096)),
)
"""What is aimed at: mask, peers, the ratio forward and forward + backward, and at which lengths."""

DESCRIBING = (32768, 10.0, 0.01)
"""And of describing: at which length, the ratio, and the part of a pass."""

PORTABLE = ("cmir-triton", "cmir")
"""What the portable kernels are called: without Hopper's beside them they were just cmir."""

FLASHMASK = "--suite flashmask"
"""Of a command that measures that suite."""

FORMER_NAMES = {"operator": ("operator", "attention")}
"""Of benchmarks: runs say the name of their day."""


def runs(paths: Sequence[Path], benchmark: str) -> list[dict[str, Any]]:
    """The runs of `python -m benchmarks.<benchmark>`, the oldest first."""
    found = [json.loads(path.read_text()) for path in paths]
    names = FORMER_NAMES.get(benchmark, (benchmark,))
    commands = tuple(f"python -m benchmarks.{name} " for name in names)
    return sorted((run for run in found if run["command"].startswith(commands)), key=lambda run: run["date"])


def cells(
    paths: Sequence[Path], masks: Sequence[str] = HEADLINE + ORDERS, ours: Sequence[str] = PORTABLE
) -> list[dict[str, Any]]:
    """The cells of attention in which one of `ours` was measured, sorted by length; of a mask and length the latest.
    Runs of FlashMask's suite have a table of their own: fewer peers take part."""
    found = [run for run in runs(paths, "operator") if FLASHMASK not in run["command"]]
    done = [cell for run in found for cell in run["cells"] if set(ours) & set(cell.get("ms", {}))]
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
    """Markdown: per cell the portable kernels' time, the peer's time and their ratio, for every phase."""
    lines = [
        "| mask | tokens | visible | " + " | ".join(PHASES) + " |",
        "|---|---|---|" + "---|" * len(PHASES),
    ]
    for cell in cells(paths, masks):
        name = next(name for name in PORTABLE if name in cell["ms"])
        ours, theirs = cell["ms"][name], cell["ms"][peer]
        figures = [f"{ours[p]:.3f} / {theirs[p]:.3f} = **{theirs[p] / ours[p]:.2f}x**" for p in PHASES]
        lines.append(f"| {cell['mask']} | {cell['tokens']} | {cell['visible']:.1%} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def rounds_of(cell: dict[str, Any], peer: str, phase: str) -> str:
    """The least and the largest ratio of the peer's time to that of cmir's Hopper kernels, of one round of a cell."""
    ours, theirs = (cell["samples_ms"][f"{name} {phase}"] for name in ("cmir-gluon", peer))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def hopper_table(paths: Sequence[Path], masks: Sequence[str] = HOPPER) -> str:
    """Markdown: per cell the TFLOP/s of cmir's Hopper kernels and of the best peer, by name, and the ratio: that of the
    medians, and in which range those of single rounds are."""
    phases = ("forward", "forward+backward")
    lines = ["| mask | tokens | visible | " + " | ".join(phases) + " |", "|---|---|---|" + "---|" * len(phases)]
    for cell in cells(paths, masks, ("cmir-gluon",)):
        row = f"| {cell['mask']} | {cell['tokens']} | {cell['visible']:.1%} |"
        for phase in phases:
            ours = cell["tflops"]["cmir-gluon"][phase]
            peer, theirs = max(
                ((name, rates[phase]) for name, rates in cell["tflops"].items() if not name.startswith("cmir")),
                key=lambda pair: pair[1],
            )
            spread = rounds_of(cell, peer, phase)
            row += f" {ours:.0f} / {theirs:.0f} ({peer}) = **{ours / theirs:.2f}x**, {spread} |"
        lines.append(row)
    return "\n".join(lines)


def targets_table(paths: Sequence[Path]) -> str:
    """Markdown: per mask and length the peer's time over cmir's, forward / forward + backward, beside what was aimed
    at; what is missed in italics. A mask that no run has is left out."""
    found = {(cell["mask"], cell["length"]): cell for cell in cells(paths, HOPPER, ("cmir-gluon",))}
    lines = ["| mask | against the best of | target | 1K | 4K | 8K | 32K |", "|---|---|---|---|---|---|---|"]
    for mask, peers, aims, lengths in TARGETS:
        row = f"| {mask} | {', '.join(peers)} | {aims[0]} / {aims[1]} |"
        for length in (1024, 4096, 8192, 32768):
            there = found.get((mask, length), {}).get("ms", {}) if length in lengths else {}
            times = [there[name] for name in peers if name in there]
            reached = [
                (min(time[phase] for time in times) / there["cmir-gluon"][phase], aim)
                for phase, aim in zip(("forward", "forward+backward"), aims, strict=True)
                if times
            ]
            said = " / ".join(f"{x:.2f}" if round(x, 2) >= aim else f"*{x:.2f}*" for x, aim in reached)
            row += f" {said or '-'} |"
        if any((mask, length) in found for length in lengths):
            lines.append(row)
    return "\n".join(lines)


def describing_table(paths: Sequence[Path]) -> str:
    """Markdown: per mask and length the microseconds of a call of `describe`, the host's work included, the time of
    the fastest peer's compiled create_block_mask over it, and its part of a layer's forward and backward pass; what is
    missed of DESCRIBING in italics."""
    every = [cell for run in runs(paths, "operator") for cell in run["cells"] if "cmir-gluon" in cell.get("ms", {})]
    latest: dict[tuple[str, int], dict[str, Any]] = {}
    for cell in every:  # the headline's masks of FlashMask's suite have fewer peers, and are in other runs too
        latest[cell["mask"], cell["length"]] = cell
    lengths = (1024, 4096, 8192, 32768)
    lines = ["| us, ratio, part | 1K | 4K | 8K | 32K |", "|---|---|---|---|---|"]
    for mask in dict.fromkeys(mask for mask, _ in sorted(latest)):
        row = f"| {mask} |"
        for length in lengths:
            ms = latest.get((mask, length), {}).get("ms", {})
            others = [name for name in ms if not name.startswith("cmir") and name != "flex-fa4-raster"]
            peers = [ms[name]["preprocess"] for name in others if "preprocess" in ms[name]]
            if not peers:
                row += " - |"
                continue
            ours = ms["cmir-gluon"]
            ratio, part = min(peers) / ours["preprocess"], ours["preprocess"] / ours["forward+backward"]
            said = f"{ratio:.1f}x", f"{part:.1%}"
            if length == DESCRIBING[0]:
                reached = round(ratio, 1) >= DESCRIBING[1], round(part, 3) <= DESCRIBING[2]
                said = (text if is_so else f"*{text}*" for text, is_so in zip(said, reached, strict=True))
            row += f" {1e3 * ours['preprocess']:.0f}, {', '.join(said)} |"
        lines.append(row)
    return "\n".join(lines)


def flashmask_table(paths: Sequence[Path], peer: str = "flex-triton") -> str:
    """Markdown: per mask of FlashMask's suite and length the TFLOP/s of cmir's Hopper kernels forward, and the peer's
    time over cmir's, forward and forward + backward."""
    found = [cell for run in runs(paths, "operator") if FLASHMASK in run["command"] for cell in run["cells"]]
    latest = {(cell["mask"], cell["length"]): cell for cell in found if "cmir-gluon" in cell.get("ms", {})}
    lengths = sorted({length for _, length in latest})
    lines = [
        "| mask | " + " | ".join(f"{n // 1024}K: visible | forward | forward+backward" for n in lengths) + " |",
        "|---|" + "---|---|---|" * len(lengths),
    ]
    for mask in dict.fromkeys(mask for mask, _ in latest):
        row = f"| {mask} |"
        for cell in (latest[mask, n] for n in lengths):
            ours, theirs = cell["ms"]["cmir-gluon"], cell["ms"][peer]
            rate = cell["tflops"]["cmir-gluon"]["forward"]
            forward, both = (theirs[phase] / ours[phase] for phase in ("forward", "forward+backward"))
            row += f" {cell['visible']:.1%} | {rate:.0f}, **{forward:.2f}x** | **{both:.2f}x** |"
        lines.append(row)
    return "\n".join(lines)


def training_table(paths: Sequence[Path]) -> str:
    """Markdown: per training example tokens a second with cmir and with each peer, and the ratio."""
    found = [json.loads(path.read_text()) for path in paths]
    lines = ["| example | tokens | layers | cmir | FlexAttention's engines |", "|---|---|---|---|---|"]
    for run in sorted((run for run in found if "task" in run), key=lambda run: run["task"]):
        (_, ours), *peers = run["tokens_per_s"].items()
        theirs = ", ".join(f"{name} {rate:.0f} (**{ours / rate:.2f}x**)" for name, rate in peers)
        lines.append(f"| {run['task']} | {run['tokens']} | {run['layers']} | {ours:.0f} | {theirs} |")
    return "\n".join(lines)


def graphs_table(paths: Sequence[Path]) -> str:
    """Markdown: per mask the time of FlexAttention's faster engine over cmir's, both passes as a CUDA graph."""
    lines = ["| forward + backward as a CUDA graph | 1K | 4K |", "|---|---|---|"]
    found = {(cell["mask"], cell["length"]): cell for cell in cells(paths, HOPPER, ("cmir-gluon",))}
    for mask in HOPPER:
        row = f"| {mask} |"
        for length in (1024, 4096):
            graphs = found.get((mask, length), {}).get("graph_ms", {})
            times = {
                name: phases["forward+backward"] for name, phases in graphs.items() if "forward+backward" in phases
            }
            flex = [time for name, time in times.items() if name.startswith("flex")]
            row += f" {min(flex) / times['cmir-gluon']:.2f} |" if flex and "cmir-gluon" in times else " - |"
        if not row.endswith("- | - |"):
            lines.append(row)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="*", help="recorded runs; all of benchmarks/results by default")
    chosen = parser.parse_args().results or sorted(RESULTS.glob("*.json"))
    tables = [
        *(hopper_table(chosen), flashmask_table(chosen), table(chosen), table(chosen, ORDERS)),
        *(packed_table(chosen), training_table(chosen), targets_table(chosen), graphs_table(chosen)),
        describing_table(chosen),
    ]
    print(*tables, sep="\n\n")


if __name__ == "__main__":
    main()
