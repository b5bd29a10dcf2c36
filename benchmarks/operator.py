"""Attention and preprocessing of cmir beside its peers, on one GPU.

    python -m benchmarks.operator --mask causal,hstu --lengths 4096,32768 \\
        --peers flex-triton,flex-fa4,fa4,cudnn,cmir-triton,cmir-gluon --json out.json

bf16, B=1, 32 query heads, 8 key/value heads, D=128 unless told otherwise. Each cell is one mask at one length. Before
it is timed, the descriptor's facts and its area are checked, and out, dq, dk and dv of every contender are compared
with float32, all of them. Then forward, backward, both, and preprocessing are timed in interleaved rounds in this
process: CUDA events around back-to-back calls, medians, the L2 cache not flushed; with --graphs also a replay of both
as a CUDA graph, for every contender that can be captured and is not long. FlashAttention-4 compiles for most of a
minute a cell: --processes 14 prepares 14 cells at a time, each in its own process, and then times them in turn.

Rates count visible pairs: 4 * pairs * heads * D operations forward, 2.5 times that backward. A peer that this machine
lacks is left out by name; a cell or a peer that fails is reported, and the rest goes on. Exits with 1 if cmir failed or
was wrong anywhere.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import gc
import importlib.metadata
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from benchmarks import exact, timing
from benchmarks.contenders import PEERS, Contender, Tensors, Unavailable
from benchmarks.masks import MASKS, SUITES, Case
from benchmarks.turns import Prepared, wait_for_turn

START = time.monotonic()

OPERATIONS = {"forward": 1.0, "backward": 2.5, "forward+backward": 3.5}
"""Of each phase, in units of the forward pass."""

EVERY = {name: make for suite in SUITES.values() for name, make in suite.items()}

LONG_MS = 10.0
"""Of a forward and backward pass, from where on no host is seen, and a CUDA graph would say nothing new."""

TO_PREPARE = 0.5
"""Of the time that is left, the part that cells may take to be prepared, so that one cannot hold up the others."""

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Clock:
    """Progress on stderr, with the time used and the time left."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.longest = 0.0

    @property
    def left(self) -> float:
        return self.budget - (time.monotonic() - START)

    def say(self, *words: object) -> None:
        print(f"[{time.monotonic() - START:4.0f} s, {self.left:4.0f} left]", *words, file=sys.stderr, flush=True)


def make_tensors(case: Case, options: argparse.Namespace) -> Tensors:
    generator = torch.Generator(options.device).manual_seed(case.tokens)
    dtype = DTYPES[options.dtype]
    q, k, v, dout = (
        torch.randn(1, heads, case.tokens, options.dim, generator=generator, device=options.device).to(dtype)
        for heads in (options.heads, options.kv_heads, options.kv_heads, options.heads)
    )
    return q, k, v, dout


def poison(tensors: Tensors) -> None:
    """Fills memory that the next allocations will get with NaN, so that what is not written shows."""
    _ = [torch.full_like(x, math.nan) for _ in range(2) for x in tensors]


def measure(case: Case, options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """One cell. What a contender raises is reported; a wrong area, or no contender of ours that is right, ends it."""
    begin = time.monotonic()
    mask = case.compiled
    cell: dict[str, Any] = {
        "mask": case.name, "length": case.length, "tokens": case.tokens, "area": case.area,
        "visible": case.area / case.tokens**2, "slots": mask.slots, "statics": dict(case.statics),
        "compile_s": time.monotonic() - begin, "errors": {}, "failed": {}, "ours": [],
    }  # fmt: skip
    tensors = make_tensors(case, options)
    with torch.no_grad():
        want = exact.exact_attention(*tensors, case.mask_mod)
    timing.synchronize(options.device)
    clock.say(f"  compiled in {cell['compile_s']:.1f} s, exact attention known")

    desc = case.describe(options.device).check()
    areas = desc.area.tolist()
    cell["descriptor_bytes"] = desc.nbytes
    cell["right"] = areas == [case.area]
    if not cell["right"]:
        clock.say(f"  cmir: WRONG area {areas}, expected {case.area}")
        return cell
    del desc
    cell["failed"] |= dict.fromkeys(options.given_up, f"not prepared in {options.patience:.0f} s")
    running: list[tuple[Contender, Any]] = []
    for name in options.peers:
        mine = name.startswith("cmir")
        try:
            with contextlib.nullcontext() if mine else Patience(name, options, clock):
                contender = PEERS[name](case, tensors, options.device)
                described = contender.described()
                right = compare(contender, described, want, tensors, cell, clock)
        except Unavailable as error:
            cell["failed"][name] = str(error)
            clock.say(f"  {name}: left out, {error}")
            continue
        except Exception as error:
            cell["right"] = cell["right"] and not mine
            report_failure(name, error, cell, clock)
            continue
        if mine:
            cell["right"] = cell["right"] and right
            cell["ours"].append(name)
        if right or not mine:
            running.append((contender, described))
    del want
    if options.wait:
        free(options.device)
        timing.synchronize(options.device)
        wait_for_turn()
    timed = {(c.name, phase): f for c, described in running for phase, f in c.phases(described).items()}
    samples = timing.interleaved({" ".join(key): f for key, f in timed.items()}, options.rounds, options.device)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    operations = 4.0 * case.area * options.heads * options.dim
    cell["ms"], cell["samples_ms"], cell["tflops"], cell["host_us"], cell["graph_ms"] = {}, samples, {}, {}, {}
    for (name, phase), function in timed.items():
        milliseconds = medians[f"{name} {phase}"]
        cell["ms"].setdefault(name, {})[phase] = milliseconds
        if phase in OPERATIONS:
            cell["tflops"].setdefault(name, {})[phase] = OPERATIONS[phase] * operations / milliseconds / 1e9
        cell["host_us"].setdefault(name, {})[phase] = timing.host_us(
            function, options.device, milliseconds=milliseconds
        )
    for contender, described in running if options.device != "cpu" else ():
        graphs: dict[str, Any] = {}
        if options.graphs and cell["ms"][contender.name]["forward+backward"] < LONG_MS:
            graphs["forward+backward"] = functools.partial(contender.captured, described)
        if contender.preprocess and contender.name in cell["ours"]:
            graphs["preprocess"] = contender.preprocess
        for phase, function in graphs.items():
            try:
                cell["graph_ms"].setdefault(contender.name, {})[phase] = timing.graph_ms(function)
            except Exception as error:
                report_failure(f"{contender.name} {phase} as a CUDA graph", error, cell, clock)
    cell["seconds"] = time.monotonic() - begin
    for name, phases in cell["ms"].items():
        clock.say(f"  {name}:", ", ".join(f"{phase} {ms:.3f} ms" for phase, ms in phases.items()))
    return cell


class Patience:
    """What a peer has to be compiled and compared in, for a process of one cell: past that, the process begins anew
    without it. Nothing less ends a kernel that hangs, or a compiler."""

    def __init__(self, peer: str, options: argparse.Namespace, clock: Clock) -> None:
        self.peer, self.options, self.clock = peer, options, clock
        self.timer = threading.Timer(options.patience, self.go_on)
        self.timer.daemon = True

    def __enter__(self) -> None:
        if len(self.options.mask) == len(self.options.lengths) == 1:
            self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()

    def go_on(self) -> None:
        self.clock.say(f"  {self.peer}: not prepared in {self.options.patience:.0f} s; going on without it")
        peers = ",".join(name for name in self.options.peers if name != self.peer)
        given_up = ",".join([*self.options.given_up, self.peer])
        changed = [f"--peers={peers}", f"--given-up={given_up}", f"--budget={self.clock.left}"]
        sys.stdout.flush()
        # Of an argument that is given twice the last one counts.
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.operator", *sys.argv[1:], *changed])


def compare(
    contender: Contender,
    described: Any,
    want: tuple[torch.Tensor, ...],
    tensors: Tensors,
    cell: dict[str, Any],
    clock: Clock,
) -> bool:
    """Runs once, compares with exact results and says so. Whether it is right."""
    poison(tensors)
    found = exact.errors(contender.results(described), want)
    right = exact.within(found)
    cell["errors"][contender.name] = {name: {"whole": w, "worst_block": b} for name, (w, b) in found.items()}
    words = ", ".join(f"{name} {whole:.1e} ({block:.1e})" for name, (whole, block) in found.items())
    clock.say(f"  {contender.name}: error, and worst of any {exact.BLOCK} rows: {words}{'' if right else '  WRONG'}")
    return right


def report_failure(what: str, error: Exception, cell: dict[str, Any], clock: Clock) -> None:
    traceback.print_exception(error, limit=-4, file=sys.stderr)
    message = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    cell["failed"][what] = f"{type(error).__name__}: {message}"
    clock.say(f"  {what}: FAILED")


def run(options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """All cells, in the order of the lengths. The report is written after each."""
    report = about(options)
    report["cells"] = []
    for length in options.lengths:
        for name in options.mask:
            cell: dict[str, Any] = {"mask": name, "length": length, "failed": {}}
            report["cells"].append(cell)
            if clock.left < max(clock.longest, 15.0):
                cell["skipped"] = "out of time"
                clock.say(f"{name} {length}: skipped, the longest cell took {clock.longest:.0f} s")
                continue
            begin = time.monotonic()
            try:
                case = EVERY[name](length, options.device)
                clock.say(f"{name} {length}: {case.tokens} tokens, {case.area / case.tokens**2:.1%} visible")
                cell.update(measure(case, options, clock))
            except Exception as error:
                report_failure("cmir", error, cell, clock)
            clock.longest = max(clock.longest, time.monotonic() - begin)
            write(report, options)
            free(options.device)
    write(report, options)
    return report


def free(device: str) -> None:
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def run_in_processes(options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """As `run`, each cell in a process of its own: some are compiled and compared side by side, then timed in turn."""
    report = about(options)
    report["cells"] = []
    cells = [(name, length) for length in options.lengths for name in options.mask]
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(cells), options.processes):
            part = [
                (name, length, path, Prepared(of_one_cell(name, length, path, options, clock)))
                for name, length in cells[first : first + options.processes]
                for path in [Path(folder, f"{name}-{length}.json")]
            ]
            latest = clock.left * TO_PREPARE
            for *_, process in part:
                process.said.wait(max(0.0, clock.left - latest))
            clock.say(f"{sum(process.said.is_set() for *_, process in part)} of {len(part)} cells are prepared")
            if options.wait and not first:
                wait_for_turn()
            for name, length, path, process in part:
                in_time = process.said.is_set() and process.turn(clock.left)
                if not in_time:
                    process.kill()
                if in_time and path.exists():
                    cell = json.loads(path.read_text())["cells"][0]
                else:
                    why = "its process ended early" if in_time else "out of time"
                    cell = {"mask": name, "length": length, "failed": {}, "skipped": why}
                report["cells"].append(cell)
                write(report, options)
    return report


def of_one_cell(name: str, length: int, path: Path, options: argparse.Namespace, clock: Clock) -> list[str]:
    """What to give Python for one cell of this run."""
    settings = {
        "mask": name, "lengths": length, "peers": ",".join(options.peers), "json": path, "rounds": options.rounds,
        "budget": clock.left, "dtype": options.dtype, "heads": options.heads, "kv-heads": options.kv_heads,
        "dim": options.dim, "device": options.device, "patience": options.patience,
    }  # fmt: skip
    flags = ["--wait", *(["--graphs"] if options.graphs else [])]
    return ["-m", "benchmarks.operator", *flags, *(f"--{key}={value}" for key, value in settings.items())]


def commit() -> str | None:
    """What git calls the tree that runs, `-dirty` where it is changed; None where git does not know it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What was run, where and with what."""
    import numpy
    import triton

    import cmir

    on_gpu = options.device != "cpu"
    return {
        "command": "python -m benchmarks.operator " + shlex.join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or "cpu",
        "versions": {
            "cmir": cmir.__version__, "python": platform.python_version(), "torch": torch.__version__,
            "triton": triton.__version__, "numpy": numpy.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if on_gpu else None, "flash-attn-4": version_of("flash-attn-4"),
        },
        "settings": {
            "dtype": options.dtype, "batch": 1, "heads": options.heads, "kv_heads": options.kv_heads,
            "dim": options.dim, "rounds": options.rounds, "l2_flushed": False,
            "operations": "4 * visible pairs * heads * dim, backward 2.5x",
        },
    }  # fmt: skip


def write(report: dict[str, Any], options: argparse.Namespace) -> None:
    paths = [options.json] if options.json else []
    if "OUT" in os.environ:
        paths.append(Path(os.environ["OUT"]) / (options.json.name if options.json else "operator.json"))
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1))


def table(report: dict[str, Any]) -> str:
    """The report, to read: rates of each phase, then what describing costs, then what went wrong."""
    settings, versions = report["settings"], report["versions"]
    lines = [
        f"{report['device']}, {report['date']}, torch {versions['torch']}, triton {versions['triton']}; "
        f"{settings['dtype']}, B=1, {settings['heads']} heads, {settings['kv_heads']} key/value heads, "
        f"D={settings['dim']}; L2 not flushed"
    ]
    done = [cell for cell in report["cells"] if cell.get("ms")]
    for phase in OPERATIONS:
        lines += ["", *_rate_table(done, phase)]
    lines += ["", *_cost_table(done)] if done else []
    bad = [
        f"{cell['mask']} {cell['length']}: {problem}"
        for cell in report["cells"]
        for problem in [
            *(["cmir is WRONG"] if cell.get("right") is False else []),
            *([cell["skipped"]] if "skipped" in cell else []),
            *(f"{what}: {why}" for what, why in cell.get("failed", {}).items() if "only" not in why),
        ]
    ]
    return "\n".join([*lines, *(["", *bad] if bad else [])])


def best(cell: dict[str, Any], phase: str, mine: bool, figures: str = "ms") -> tuple[str, float] | None:
    """The contender, ours or a peer, with the least time for `phase`."""
    found = [
        (times[phase], name)
        for name, times in cell[figures].items()
        if phase in times and name.startswith("cmir") == mine
    ]
    return (min(found)[1], min(found)[0]) if found else None


def _rate_table(cells: list[dict[str, Any]], phase: str) -> list[str]:
    """Of each cell every contender's rate, and how far the best of ours is ahead of the best peer."""
    names = [name for name in PEERS if any(name in cell["tflops"] for cell in cells)]
    lines = [f"TFLOP/s {phase}; ratio: the best of ours over the best peer"]
    lines += [f"{'mask':14}{'tokens':>8}{'visible':>8}" + "".join(f"{name:>17}" for name in names) + f"{'ratio':>8}"]
    for cell in cells:
        rates = [cell["tflops"].get(name, {}).get(phase, math.nan) for name in names]
        ours, theirs = best(cell, phase, True), best(cell, phase, False)
        ratio = theirs[1] / ours[1] if ours and theirs else math.nan
        line = f"{cell['mask']:14}{cell['tokens']:>8}{cell['visible']:>8.1%}"
        lines.append(line + "".join(f"{rate:>17.0f}" for rate in rates) + f"{ratio:>8.2f}")
    return lines


def _cost_table(cells: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"{'ms':22}{'slots':>6} | {'describe':>8} {'GPU only':>8} {'peer':>7} {'ratio':>6} {'of f+b':>7} | "
        f"{'host us: forward':>16} {'+backward':>9} {'graph f+b':>9} {'peer':>7} | {'KiB':>9} | "
        f"{'error':>8} {'a block':>8}"
    ]
    for cell in cells:
        both, described = best(cell, "forward+backward", True), best(cell, "preprocess", True)
        if both is None or described is None:
            continue
        host, found = cell["host_us"][both[0]], cell["errors"][both[0]].values()
        built = best(cell, "preprocess", False)
        graphs = [best(cell, "forward+backward", mine, "graph_ms") for mine in (True, False)]
        alone = cell["graph_ms"].get(described[0], {}).get("preprocess", math.nan)
        slots = "/".join("-" if n is None else str(n) for n in cell["slots"].values())
        peer = built[1] if built else math.nan
        lines.append(
            f"{cell['mask']:14}{cell['tokens']:>8}{slots:>6} | {described[1]:>8.3f} {alone:>8.3f} "
            f"{peer:>7.3f} {peer / described[1]:>6.1f} {alone / both[1]:>7.1%} | "
            f"{host['forward']:>16.0f} {host['forward+backward']:>9.0f} "
            + " ".join(f"{g[1] if g else math.nan:>{width}.3f}" for g, width in zip(graphs, (9, 7), strict=True))
            + f" | {cell['descriptor_bytes'] / 1024:>9.0f} | "
            f"{max(e['whole'] for e in found):>8.1e} {max(e['worst_block'] for e in found):>8.1e}"
        )
    return lines


def parse_lengths(text: str) -> list[int]:
    """Tokens, `4096,32K`: of which a K is 1024."""
    lengths: list[int] = []
    for word in text.split(","):
        digits, thousands = word.strip().upper().removesuffix("K"), word.strip().upper().endswith("K")
        if not digits.isdecimal() or not int(digits):
            raise argparse.ArgumentTypeError(f"{word!r}: expected numbers of tokens, as in 4096,32K")
        lengths.append(int(digits) * (1024 if thousands else 1))
    return lengths


def require_device(parser: argparse.ArgumentParser, device: str) -> None:
    """Ends the run where there is no such device, in one line."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        print(f"{parser.prog} needs a GPU that torch sees; torch {torch.__version__} sees none", file=sys.stderr)
        sys.exit(1)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    def names(known: Any) -> Any:
        def parse_names(text: str) -> list[str]:
            for name in text.split(",") if text else []:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(known)}")
            return text.split(",") if text else []

        return parse_names

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.operator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mask", type=names(EVERY), default=list(MASKS), help=f"of {', '.join(EVERY)}; by default {', '.join(MASKS)}"
    )
    parser.add_argument("--suite", choices=SUITES, help="all masks of a suite, in place of --mask")
    parser.add_argument(
        "--lengths", type=parse_lengths, default=[4096, 32768, 8192, 1024], help="tokens, as in 4096,32K"
    )
    parser.add_argument(
        "--peers", type=names(PEERS), default=list(PEERS), help="who takes part, ours among them; all by default"
    )
    parser.add_argument("--json", type=Path, help="where to write all figures; also in $OUT, if that is set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--budget", type=float, default=480, help="seconds; cells that would not end in time are skipped"
    )
    parser.add_argument("--graphs", action="store_true", help="time forward and backward as a CUDA graph, too")
    parser.add_argument(
        "--processes",
        type=int,
        default=0,
        metavar="N",
        help="prepare N cells at a time, each in a process, and time in turn",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=150,
        help="seconds in which a peer must be compiled and compared, or the cell goes on without it (in a process of "
        "one cell, as with --processes)",
    )
    parser.add_argument("--given-up", type=names(PEERS), default=[], help=argparse.SUPPRESS)
    parser.add_argument("--wait", action="store_true", help="once prepared, wait for a line of input before timing")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument(
        "--device", default="cuda", help="'cpu' tries the script out in Triton's interpreter, at tiny sizes"
    )
    options = parser.parse_args(arguments)
    require_device(parser, options.device)
    options.mask = list(SUITES[options.suite]) if options.suite else options.mask
    return options


def main() -> int:
    options = parse()
    clock = Clock(options.budget)
    report = run_in_processes(options, clock) if options.processes else run(options, clock)
    print(table(report), flush=True)
    broken = [c for c in report["cells"] if c.get("right") is False or "cmir" in c.get("failed", {})]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
