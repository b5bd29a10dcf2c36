"""`python -m cmir.tools.demo`: the whole compiler on one mask, from its rule to checked gradients.

Lowers the HSTU mask stage by stage and prints what every pass changed, prints the generated Triton source, builds the
Execution Descriptor of a batch, runs attention forward and backward with it and compares both with eager attention
under the rule itself: on the GPU if there is one, else on the CPU through Triton's interpreter. The exit code is 1 if
anything disagrees.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from cmir.errors import MetadataError
from cmir.tools import driver

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cmir.runtime.descriptor import Descriptor
    from cmir.runtime.mask import CompiledMask

_T = TypeVar("_T")

MASK = "hstu"
PIPELINE = ("lower-intervals", "transpose", "choose-axis", "lower-descriptor", "lower-attention")


@dataclass(frozen=True)
class Size:
    """What the batch of the demo is: `users` sequences of `rows` tokens, `heads` query heads on half as many others."""

    users: int
    rows: int
    heads: int
    dim: int
    dtype: str
    tolerance: float
    """Largest relative error (in norm) of the output and of every gradient."""


# The interpreter takes about a millisecond per operation of a kernel: on the CPU the batch is small.
CPU = Size(users=3, rows=150, heads=2, dim=32, dtype="float32", tolerance=1e-5)
GPU = Size(users=4, rows=2048, heads=8, dim=64, dtype="bfloat16", tolerance=1e-2)


@dataclass
class Check:
    """One comparison of the summary."""

    what: str
    result: str
    passed: bool


@dataclass
class Summary:
    """What the last page says."""

    facts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    checks: list[Check] = field(default_factory=list[Check])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if every check passed."""
    arguments = _arguments(argv)
    if find_spec("torch") is None or find_spec("triton") is None:
        print("the demo runs attention and needs torch and triton: pip install 'cmir[torch]'", file=sys.stderr)
        return 2
    device = _device()
    size = GPU if device == "cuda" else CPU
    if arguments.rows is not None:
        size = Size(size.users, arguments.rows, size.heads, size.dim, size.dtype, size.tolerance)

    from cmir import zoo

    started = time.perf_counter()
    _show_stages(zoo.path(MASK))
    mask = zoo.load(MASK)
    summary = Summary()
    _show_small(mask)
    path = _show_source(mask, full=arguments.full)
    descriptor, seen = _show_descriptor(mask, size, device, summary)
    _show_attention(descriptor, seen, size, device, summary)
    return _show_summary(mask, path, summary, time.perf_counter() - started)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cmir.tools.demo", description="Run the compiler end to end.")
    parser.add_argument("--full", action="store_true", help="print the generated source whole, not its hooks alone")
    parser.add_argument("--rows", type=int, metavar="N", help="tokens of a user (on the CPU the time grows with N)")
    arguments = parser.parse_args(argv)
    if arguments.rows is not None and arguments.rows < 16:
        parser.error(f"--rows: expected at least 16, got {arguments.rows}")
    return arguments


def _device() -> str:
    """Where to run; without a GPU, Triton is told to interpret, which it has to know before it is imported."""
    import torch

    if os.environ.get("TRITON_INTERPRET") != "1" and torch.cuda.is_available():
        return "cuda"
    os.environ["TRITON_INTERPRET"] = "1"
    return "cpu"


def _title(text: str) -> None:
    print(f"\n{'=' * 100}\n{text}\n{'=' * 100}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


# 1. The stages.


class _Changes(driver.Observer):
    """Prints, after every pass, the parts of the module that are not as they were before it."""

    def __init__(self, module: ModuleOp) -> None:
        self._parts = dict(_parts(module))
        self._count = 0

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._count += 1
        doc = (type(pass_).__doc__ or "").strip().splitlines()[0]
        print(f"\n--- {self._count}. --{pass_.name}: {doc}\n")
        parts = dict(_parts(module))
        changed = [text for name, text in parts.items() if self._parts.get(name) != text]
        print("\n".join(_indented(text) for text in changed) or "  (nothing to change)")
        self._parts = parts


def _parts(module: ModuleOp) -> Iterator[tuple[str, str]]:
    """The ops of a module as text, by kind and name."""
    for op in module.body.block.ops:
        stream = StringIO()
        Printer(stream).print_op(op)
        symbol = op.properties.get("sym_name")
        yield f"{op.name} {symbol.data if isinstance(symbol, StringAttr) else ''}", stream.getvalue()


def _show_stages(path: Path) -> None:
    _title(f"1. From the rule to kernels: {path.name}, one pass at a time")
    text = path.read_text()
    print(f"\n--- The rule, as written\n\n{_indented(text)}")
    module = driver.parse(text, str(path))
    driver.run_pipeline(module, PIPELINE, observer=_Changes(module))


# 2. The intervals of a small sequence.


def _show_small(mask: CompiledMask) -> None:
    import numpy as np

    _title("2. The intervals of a small sequence: a history of 5 tokens, then candidates of 2, 3 and 2")
    start = np.array([0, 0, 0, 0, 0, 5, 5, 7, 7, 7, 10, 10])
    rows = len(start)
    table = mask.intervals(rows=rows, history=5, start=start)
    dense = mask.dense(rows=rows, history=5, start=start)
    print("\n  A digit is a pair that the rule makes visible, and says which slot of its row holds it.\n")
    for i in range(rows):
        slots = [(int(lo), int(hi)) for lo, hi in table[:, :, i]]
        holders = [[str(k) for k, (lo, hi) in enumerate(slots) if lo <= j < hi] for j in range(rows)]
        cells = [(holders[j] or ["?"])[0] if dense[i, j] else "." for j in range(rows)]
        spans = "  ".join(f"slot {k}: [{lo}, {hi})" for k, (lo, hi) in enumerate(slots) if lo < hi)
        print(f"  row {i:2}  {' '.join(cells)}   {spans}")


# 3. The source.


def _show_source(mask: CompiledMask, *, full: bool) -> Path:
    """Print what the mask decides of the generated module, and where the whole file is."""
    from cmir.runtime.loader import load

    source = mask.source("triton")
    path = Path(load(source).__file__ or "")
    _title("3. The generated Triton source")
    if full:
        print(f"\n{source}")
        return path
    shown = _generated(source)
    rest = len(source.splitlines()) - sum(text.count("\n") + 1 for text in shown)
    print("\n" + "\n\n\n".join(_indented(text) for text in shown))
    print(f"\n  ... and {rest} lines of kernels that are the same for every mask. All of it: {path}")
    return path


def _generated(source: str) -> list[str]:
    """The parts of a generated module that depend on its mask: what it says of itself, and the hooks."""
    import ast

    import cmir.lowering.skeletons as skeletons
    from cmir.lowering.hooks import hook_names

    hooks = {name for p in Path(skeletons.__path__[0]).glob("*.py") for name in hook_names(p.read_text())}
    lines = source.splitlines()
    tree = ast.parse(source).body
    parts = ["\n".join(lines[: tree[0].end_lineno])]
    for node in tree:
        if isinstance(node, ast.FunctionDef) and node.name in hooks:
            parts.append("\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno]))
    return parts


# 4. The descriptor.


def _batch(size: Size, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """`history` [B] and `start` [B, rows]: users with histories of their own, and candidates that fill the rest."""
    import numpy as np
    import torch

    rng = np.random.default_rng(1)
    history = np.linspace(0.35, 0.85, size.users) * size.rows + rng.integers(-5, 6, size.users)
    history = history.astype(np.int32)
    start = np.zeros((size.users, size.rows), dtype=np.int32)
    for user, first in enumerate(history):
        while first < size.rows:
            end = int(first) + int(rng.integers(1, 9))  # an item takes 1 to 8 tokens
            start[user, first:end] = first
            first = end
    return torch.tensor(history, device=device), torch.tensor(start, device=device)


def _show_descriptor(mask: CompiledMask, size: Size, device: str, summary: Summary) -> tuple[Descriptor, torch.Tensor]:
    """The descriptor of a batch, and the rule itself for the same batch: bool [B, 1, rows, rows]."""
    import numpy as np
    import torch

    where = torch.cuda.get_device_name() if device == "cuda" else "the CPU, in Triton's interpreter"
    _title(f"4. The Execution Descriptor of a batch of {size.users} users, on {where}")
    history, start = _batch(size, device)
    descriptor = mask.describe(rows=size.rows, history=history, start=start).check()
    print(f"\n  {descriptor}\n")

    masks: list[np.ndarray] = []
    painted, tiles, all_full, all_partial = True, 0, 0, 0
    print("  user  history  candidates  visible pairs           tiles: skipped  partial   full")
    for user in range(size.users):
        tokens, first = int(history[user]), start[user].cpu().numpy()
        dense, agrees = _rule(mask, size.rows, tokens, first)
        masks.append(dense)
        painted &= agrees
        partial, full = (int(n) for n in descriptor.row_count[user].sum(0))
        listed = descriptor.row_index[user].numel()
        tiles, all_full, all_partial = tiles + listed, all_full + full, all_partial + partial
        area = int(descriptor.area[user])
        print(
            f"  {user:4}  {tokens:7}  {len(set(first[tokens:].tolist())):10}  "
            f"{f'{area:,} ({area / size.rows**2:.1%})':21}  {listed - partial - full:14}  {partial:7}  {full:5}"
        )
    refusal = _refusal(mask, size.rows, history, start)
    print("\n  check() names the declared fact that metadata break. A candidate that starts after its row:\n")
    print(f"  MetadataError: {refusal}")

    seen = np.stack(masks)
    total, by_rule = int(descriptor.area.sum()), int(seen.sum())
    slots = ", ".join(f"{n} a {axis[:-1].replace('col', 'column')}" for axis, n in mask.slots.items())
    height, width = descriptor.tile
    summary.facts += [
        ("slots", f"{slots}; derived, not configured"),
        ("visible", f"{total:,} of {seen.size:,} pairs ({total / seen.size:.1%})"),
        (
            "tiles",
            f"{tiles} of {height} x {width}: {tiles - all_full - all_partial} skipped, "
            f"{all_full} full (no mask test), {all_partial} partial",
        ),
    ]
    summary.checks += [
        Check("intervals of rows and of columns, painted", "equal to the rule", painted),
        Check("area of the descriptor", f"{total:,} = {by_rule:,} by the rule", total == by_rule),
        Check("broken metadata", "refused", "start[i] <= i" in refusal),
    ]
    return descriptor, torch.tensor(seen, device=device)[:, None]


def _rule(mask: CompiledMask, rows: int, history: int, start: np.ndarray) -> tuple[np.ndarray, bool]:
    """The rule on every pair of a user, and whether the intervals of both axes say the same."""
    import numpy as np

    from cmir.interp.masks import paint

    dense = mask.dense(rows=rows, history=history, start=start)
    by_row = paint(mask.intervals("rows", rows=rows, history=history, start=start), rows)
    by_column = paint(mask.intervals("cols", rows=rows, history=history, start=start), rows)
    return dense, np.array_equal(by_row, dense) and np.array_equal(by_column.T, dense)


def _refusal(mask: CompiledMask, rows: int, history: torch.Tensor, start: torch.Tensor) -> str:
    """What is raised when the last candidate of user 1 starts after the end of the sequence."""
    start = start.clone()
    start[1, -1] = rows
    try:
        mask.describe(rows=rows, history=history, start=start).check()
    except MetadataError as error:
        return str(error)
    return "nothing was raised"


# 5. Attention.


def _show_attention(descriptor: Descriptor, seen: torch.Tensor, size: Size, device: str, summary: Summary) -> None:
    import torch

    import cmir
    from cmir.runtime import reference

    _title("5. Attention, forward and backward, beside eager attention under the rule itself")
    dtype = torch.bfloat16 if size.dtype == "bfloat16" else torch.float32
    generator = torch.Generator(device).manual_seed(0)
    heads = (size.heads, size.heads // 2, size.heads // 2, size.heads)
    shapes = [(size.users, h, size.rows, size.dim) for h in heads]
    q, k, v, gradient = (torch.randn(s, generator=generator, device=device, dtype=dtype) for s in shapes)
    inputs = [t.requires_grad_() for t in (q, k, v)]

    def forward() -> torch.Tensor:
        return cmir.attention(q, k, v, descriptor)

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(out, inputs, gradient, retain_graph=True)

    print(f"\n  q {shapes[0]}, k and v {shapes[1]}, {size.dtype}", flush=True)
    out, forward_ms = _timed(forward, device)
    grads, backward_ms = _timed(backward, device)
    exact = [t.detach().float().requires_grad_() for t in inputs]
    want, _ = reference.reference_attention(exact[0], exact[1], exact[2], seen)
    want_grads = torch.autograd.grad(want, exact, gradient.float())

    print(f"\n  relative error (in norm) of   at most {size.tolerance:g}")
    for name, got, right in zip(("output", "dq", "dk", "dv"), (out, *grads), (want, *want_grads), strict=True):
        error = _relative_error(got, right)
        print(f"    {name:27} {error:.1e}")
        summary.checks.append(
            Check(f"{name} beside eager attention", f"relative error {error:.1e}", error < size.tolerance)
        )
    summary.facts += [
        ("shapes", f"q {shapes[0]}, k and v {shapes[1]}, {size.dtype}"),
        ("times", f"forward {forward_ms:,.2f} ms, backward {backward_ms:,.2f} ms" + _CAVEAT[device]),
    ]


def _relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    import numpy as np

    a, b = (t.detach().float().cpu().numpy() for t in (got, want))
    return float(np.linalg.norm((a - b).ravel()) / np.linalg.norm(b.ravel()))


_CAVEAT = {"cpu": " (interpreted: says nothing about a GPU)", "cuda": " (small batch; `make bench` measures)"}


def _timed(run: Callable[[], _T], device: str) -> tuple[_T, float]:
    """The result and the milliseconds of a call: one call on the CPU, the median of ten warm ones on a GPU."""
    import torch

    if device == "cpu":
        begin = time.perf_counter()
        return run(), 1e3 * (time.perf_counter() - begin)
    result = run()
    times: list[float] = []
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        result = run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return result, statistics.median(times)


# 6. The summary.


def _show_summary(mask: CompiledMask, path: Path, summary: Summary, seconds: float) -> int:
    _title(f"6. Summary: the mask '{mask.name}', from its rule to checked gradients in {seconds:.0f} s")
    print()
    for name, text in summary.facts:
        print(f"  {name:9} {text}")
    print(f"  {'source':9} {path}\n")
    for check in summary.checks:
        print(f"  {'ok' if check.passed else 'WRONG':5} {check.what}: {check.result}")
    passed = all(check.passed for check in summary.checks)
    print(f"\n  {'Everything agrees.' if passed else 'SOMETHING DISAGREES: please report it.'}")
    print(
        f"\n  Next: {activating()}README.md has the same mask in twenty lines of Python; "
        "`python -m cmir.zoo` lists ready masks;\n  `cm-opt --help` teaches the compiler, "
        "`cm-opt --explain merge-slots` a pass; CONTRIBUTING.md: write one."
    )
    return 0 if passed else 1


def activating() -> str:
    """How the commands get on the path, where they are not."""
    script = Path(sys.prefix, "bin", "activate")
    if which("cm-opt") is not None or not script.exists():
        return ""
    here = script.is_relative_to(Path.cwd())
    return f"`source {script.relative_to(Path.cwd()) if here else script}`;\n  "


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
