"""Describing packed sequences: the time and the memory of the descriptor, at lengths of up to a million tokens.

    python -m benchmarks.packed --lengths 65536,262144,1048576 --json out.json

One pack of causal documents, or of HSTU users, is described from `cu_seqlens`: both tables, the tile states and the
schedules of both directions. Documents have random lengths of `--document` tokens on average, the same for every run;
an empty one and a tail of padding are among them. Before it is timed, the facts and the area are checked, and the
schedules of the two directions are compared with each other: as many full and partial tiles, and at small lengths the
tables against the rule. Times are medians of interleaved rounds of CUDA events around back-to-back calls; `graph` is a
replay as a CUDA graph, the GPU's time alone. Exits with 1 if cmir failed or was wrong anywhere.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmarks import timing
from benchmarks.operator import Clock, about, parse_lengths, require_device

if TYPE_CHECKING:
    from cmir import CompiledMask, Descriptor

PADDING = 100
"""Tokens behind the last sequence."""

SMALL = 4096
"""Up to this length the tables are compared with the rule, pair by pair."""


@dataclass(frozen=True)
class Pack:
    """One pack: the mask of one sequence, the arguments of `describe`, the visible pairs in closed form."""

    name: str
    mask: CompiledMask
    tokens: int
    sequences: int
    longest: int
    area: int
    arguments: dict[str, Any] = field(default_factory=dict)

    def described(self) -> Descriptor:
        return self.mask.describe(**self.arguments)


def lengths_of(tokens: int, average: int) -> list[int]:
    """Random lengths, one of them 0, that fill `tokens` but for the padding; the same for every run."""
    generator = torch.Generator().manual_seed(tokens)
    left, lengths = tokens - PADDING, [0]
    while left > 0:
        length = int(torch.randint(1, 2 * average, (), generator=generator))
        lengths.append(min(length, left))
        left -= lengths[-1]
    return lengths


def causal(tokens: int, average: int, device: str) -> Pack:
    from cmir import zoo

    lengths = lengths_of(tokens, average)
    area = sum(n * (n + 1) // 2 for n in lengths)
    return _pack("causal", zoo.load("causal"), tokens, lengths, area, {}, device)


def hstu(tokens: int, average: int, device: str) -> Pack:
    """Three quarters of every sequence are its history, the rest are candidates of one token."""
    from cmir import zoo

    lengths = lengths_of(tokens, average)
    history = [n // 4 * 3 for n in lengths]
    candidates = [n - h for n, h in zip(lengths, history, strict=True)]
    area = sum(h * (h + 1) // 2 + c * (h + 1) for h, c in zip(history, candidates, strict=True))
    start = torch.cat([torch.arange(n) for n in [*lengths, PADDING]])
    return _pack(
        "hstu",
        zoo.load("hstu"),
        tokens,
        lengths,
        area,
        {"history": torch.tensor(history, device=device), "start": start.to(device)},
        device,
    )


MASKS: dict[str, Callable[[int, int, str], Pack]] = {"causal": causal, "hstu": hstu}


def _pack(
    name: str,
    mask: CompiledMask,
    tokens: int,
    lengths: list[int],
    area: int,
    metadata: dict[str, Any],
    device: str,
) -> Pack:
    ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    arguments = {"rows": tokens, "cu_seqlens": ends.to(device), "max_seqlen": max(lengths), **metadata}
    return Pack(name, mask, tokens, len(lengths), max(lengths), area, arguments)


def measure(pack: Pack, options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """One cell. Raises what cmir raises."""
    if options.device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    before = 0 if options.device == "cpu" else torch.cuda.memory_allocated()
    desc = pack.described().check()
    cell: dict[str, Any] = {
        "sequences": pack.sequences, "longest": pack.longest, "area": pack.area, "slots": pack.mask.slots,
        "descriptor_bytes": desc.nbytes, "tile": desc.tile,
    }  # fmt: skip
    if options.device != "cpu":
        cell["peak_bytes"] = torch.cuda.max_memory_allocated() - before
    counts = [desc.row_count.sum(dim=(0, 1)).tolist(), desc.col_count.sum(dim=(0, 1)).tolist()]
    cell["tiles"] = {"partial": counts[0][0], "full": counts[0][1]}
    problems = [] if desc.area.tolist() == [pack.area] else [f"area {desc.area.tolist()}, expected {pack.area}"]
    problems += [] if counts[0] == counts[1] else [f"tiles by row {counts[0]}, by column {counts[1]}"]
    if pack.tokens <= SMALL:
        problems += differences(pack, desc)
    cell["right"] = not problems
    del desc
    if problems:
        clock.say("  WRONG:", "; ".join(problems))
        return cell
    samples = timing.interleaved({"describe": pack.described}, options.rounds, options.device)["describe"]
    cell["samples_ms"], cell["ms"] = samples, statistics.median(samples)
    cell["host_us"] = timing.host_us(pack.described, options.device)
    if options.device != "cpu":
        cell["graph_ms"] = timing.graph_ms(pack.described)
    return cell


def differences(pack: Pack, desc: Descriptor) -> list[str]:
    """Where the tables of both directions differ from the rule of every sequence alone."""
    from cmir.interp.masks import paint

    arguments = {k: v for k, v in pack.arguments.items() if k != "max_seqlen"}
    dense = pack.mask.dense(**arguments)
    sides = {"rows": (desc.row_table, dense), "cols": (desc.col_table, dense.T)}
    return [
        f"the table of {axis} is not the rule"
        for axis, (table, view) in sides.items()
        if table is not None and not (paint(table[0].cpu().numpy(), view.shape[1]) == view).all()
    ]


def run(options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """All cells, in the order of the lengths. The report is written after each."""
    report = about(options)
    report["command"] = report["command"].replace("benchmarks.operator", "benchmarks.packed")
    report["settings"] = {"document": options.document, "rounds": options.rounds, "l2_flushed": False}
    report["cells"] = []
    for tokens in options.lengths:
        for name in options.mask:
            cell: dict[str, Any] = {"mask": name, "tokens": tokens, "failed": {}}
            report["cells"].append(cell)
            try:
                pack = MASKS[name](tokens, options.document, options.device)
                clock.say(f"{name} {tokens}: {pack.sequences} sequences, the longest of {pack.longest} tokens")
                cell.update(measure(pack, options, clock))
            except Exception as error:
                traceback.print_exception(error, limit=-4, file=sys.stderr)
                cell["failed"]["cmir"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
                clock.say("  FAILED")
            write(report, options)
            gc.collect()
            if options.device != "cpu":
                torch.cuda.empty_cache()
    return report


def write(report: dict[str, Any], options: argparse.Namespace) -> None:
    paths = [options.json] if options.json else []
    if "OUT" in os.environ:
        paths.append(Path(os.environ["OUT"]) / (options.json.name if options.json else "packed.json"))
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1))


def table(report: dict[str, Any]) -> str:
    """The report, to read."""
    versions = report["versions"]
    lines = [
        f"{report['device']}, {report['date']}, torch {versions['torch']}, triton {versions['triton']}; documents of "
        f"{report['settings']['document']} tokens on average; L2 not flushed",
        "",
        f"{'describe':12}{'tokens':>9}{'sequences':>10}{'partial':>9}{'full':>9}"
        f" | {'ms':>8} {'graph ms':>9} {'host us':>8} | {'MiB':>8} {'peak MiB':>9}",
    ]
    for cell in report["cells"]:
        head = f"{cell['mask']:12}{cell['tokens']:>9}"
        if "ms" not in cell:
            why = cell["failed"].get("cmir") or "WRONG"
            lines.append(f"{head}  {why}")
            continue
        lines.append(
            f"{head}{cell['sequences']:>10}{cell['tiles']['partial']:>9}{cell['tiles']['full']:>9}"
            f" | {cell['ms']:>8.3f} {cell.get('graph_ms', math.nan):>9.3f} {cell['host_us']:>8.0f}"
            f" | {cell['descriptor_bytes'] / 2**20:>8.1f} {cell.get('peak_bytes', math.nan) / 2**20:>9.1f}"
        )
    return "\n".join(lines)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        for name in text.split(","):
            if name not in MASKS:
                raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(MASKS)}")
        return text.split(",")

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.packed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mask", type=names, default=list(MASKS), help=f"of {', '.join(MASKS)}; all by default")
    parser.add_argument(
        "--lengths", type=parse_lengths, default=[65536, 262144, 1048576], help="tokens, as in 4096,32K"
    )
    parser.add_argument("--document", type=int, default=4096, help="tokens of a document, on average")
    parser.add_argument("--json", type=Path, help="where to write all figures; also in $OUT, if that is set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=480, help="seconds, for the progress lines")
    parser.add_argument(
        "--device", default="cuda", help="'cpu' tries the script out in Triton's interpreter, at tiny sizes"
    )
    options = parser.parse_args(arguments)
    require_device(parser, options.device)
    return options


def main() -> int:
    options = parse()
    # What `about` says of attention runs does not apply.
    for name in ("dtype", "heads", "kv_heads", "dim"):
        setattr(options, name, None)
    report = run(options, Clock(options.budget))
    print(table(report), flush=True)
    return 1 if any(c.get("right") is not True for c in report["cells"]) else 0


if __name__ == "__main__":
    sys.exit(main())
