"""Sweep of the attention kernels' launch configurations beside FlexAttention, on one GPU.

    python -m benchmarks.kernels [--seconds 420] [--lengths 4096 8192 32768] [--masks causal hstu clear]

bf16, B=1, 32 query heads, 8 key/value heads, D=128. Descriptors are made here with torch, from closed-form interval
tables: no compiler, no preprocess kernel. First a check against the fp32 reference at small sizes, then the sweep in
interleaved rounds (medians, L2 not flushed), then a table; all figures go to $OUT/kernels.json if OUT is set.
Kernels are compiled ahead by worker processes, the most promising first; what is not ready in time is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import time
import traceback
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

from benchmarks.candidates import (
    DIM,
    HEADS,
    Candidate,
    Selected,
    candidates_of,
    compile_ahead,
    kernels,
    run,
    start_worker,
    tensors,
    with_kernels,
)
from benchmarks.closed import TILE, Mask, candidates, causal, describe, make_mask
from cmir.lowering.visibility import needs_live_test
from cmir.runtime import attention as runtime
from cmir.runtime.configs import attention_config
from cmir.runtime.reference import reference_attention

START = time.time()


def say(*words: object) -> None:
    print(f"[{time.time() - START:5.0f}s]", *words, flush=True)


def interleaved(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median milliseconds; every function once a round. One that fails is reported and dropped."""
    repeats: dict[str, int] = {}
    for name, function in list(functions.items()):
        try:
            function()
            torch.cuda.synchronize()
            repeats[name] = max(1, min(20, int(12 / max(_time(function, 1), 1e-3))))
        except Exception as error:
            say(f"    {name}: FAILED {type(error).__name__} {str(error)[:150]}")
            del functions[name]
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(_time(function, repeats[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def _time(function: Callable[[], Any], repeats: int) -> float:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        function()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / repeats


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    if not bool(torch.isfinite(got).all()):
        return math.inf
    return float((got.double() - want.double()).norm() / want.double().norm())


def check() -> list[dict[str, Any]]:
    """bf16 kernels against the fp32 reference, at 1K."""
    results: list[dict[str, Any]] = []
    for name in ("causal", "hstu", "shared prompt", "clear"):
        for trim in (0, 5):
            if name == "clear" and trim:
                continue
            mask = make_mask(name, 1024, "cuda") if not trim else {
                "causal": lambda: causal(1019, "cuda"), "hstu": lambda: candidates("hstu", 1019, 700, 16, "cuda"),
                "shared prompt": lambda: candidates("shared prompt", 1019, 250, 130, "cuda"),
            }[name]()  # fmt: skip
            try:
                desc = describe(mask, kernels(mask.rows.shape[0], mask.cols.shape[0]))
                q, k, v, dout = tensors(mask.length, "cuda", heads=(4, 2))
                inputs = [x.requires_grad_() for x in (q, k, v)]
                exact = [x.detach().float().requires_grad_() for x in (q, k, v)]
                out = runtime.attention(inputs[0], inputs[1], inputs[2], desc)
                want = reference_attention(exact[0], exact[1], exact[2], mask.dense())[0]
                errors = [relative(out, want)]
                for a, b in zip(
                    torch.autograd.grad(out, inputs, dout), torch.autograd.grad(want, exact, dout.float()), strict=True
                ):
                    errors.append(relative(a, b))
                ok = max(errors) < 8e-3
                results.append({"mask": name, "length": mask.length, "errors": errors, "ok": ok})
                say(f"check {name} {mask.length}: out dq dk dv", *(f"{e:.1e}" for e in errors), "ok" if ok else "WRONG")
            except Exception as error:
                traceback.print_exc(limit=4)
                say(f"check {name} {mask.length}: FAILED {type(error).__name__} {str(error)[:200]}")
                results.append({"mask": name, "length": mask.length, "ok": False, "failed": str(error)[:500]})
    return results


def flex(mask: Mask, q: Any, k: Any, v: Any, dout: Any) -> dict[str, Callable[[], Any]]:
    import torch._dynamo
    import torch._functorch.config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._functorch.config.donated_buffer = False
    torch._dynamo.reset()
    blocks = create_block_mask(mask.predicate, None, None, mask.length, mask.length, device="cuda", _compile=True)
    compiled = torch.compile(flex_attention, dynamic=False)
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    out = compiled(*inputs, block_mask=blocks, enable_gqa=True)

    def forward() -> Any:
        with torch.no_grad():
            return compiled(*inputs, block_mask=blocks, enable_gqa=True)

    return {"forward": forward, "backward": lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True)}


def sweep(mask: Mask, ready: list[Candidate], rounds: int) -> dict[str, Any]:
    """Times of all ready candidates of one mask, and FlexAttention's."""
    q, k, v, dout = tensors(mask.length, "cuda")
    slots = mask.rows.shape[0], mask.cols.shape[0]
    module = kernels(*slots)
    desc = describe(mask, module)
    default = attention_config(DIM, 16, "many" if needs_live_test(max(slots)) else "few", (TILE, TILE))
    out, lse = runtime.launch_forward(q, k, v, desc, 1.0 / math.sqrt(DIM), default)
    grads = runtime.launch_backward(q, k, v, out, lse, dout, None, desc, 1.0 / math.sqrt(DIM), default)
    functions: dict[str, Callable[[], Any]] = {}
    for candidate in ready:
        selected = with_kernels(desc, Selected(module, candidate.part))
        call = lambda c=candidate, d=selected: run(c, d, q, k, v, dout, out, lse)  # noqa: E731
        try:  # right, or not measured; gradients need the delta kernel too
            checked = with_kernels(desc, Selected(module, candidate.part, "delta"))
            got = run(candidate, checked, q, k, v, dout, out, lse)
            compared = {
                "forward": [(got[0], out)],
                "dkv": [(got[1], grads[1]), (got[2], grads[2])] if len(got) > 2 else [],
            }
            compared |= {"dq": [(got[0], grads[0])], "together": list(zip(got, grads, strict=False))}
            error = max(relative(a, b) for a, b in compared[candidate.part])
            if error < 1e-2:
                functions[f"{candidate.part} {candidate}"] = call
            else:
                say(f"    {candidate.part} {candidate}: WRONG by {error:.1e}")
        except Exception as error:
            say(f"    {candidate.part} {candidate}: FAILED {type(error).__name__} {str(error)[:150]}")
    # `run` of a backward part without the delta kernel would read uninitialised statistics: times are the same.
    delta = with_kernels(desc, Selected(module, "delta"))
    functions["delta"] = lambda: runtime.launch_backward(q, k, v, out, lse, dout, None, delta, 1.0, default)
    functions["forward default"] = lambda: runtime.launch_forward(q, k, v, desc, 1.0, default)
    functions["backward default"] = lambda: runtime.launch_backward(q, k, v, out, lse, dout, None, desc, 1.0, default)
    try:
        for name, function in flex(mask, q, k, v, dout).items():
            functions[f"flex {name}"] = function
        difference = relative(functions["flex forward"](), out)
        say(f"    flex differs by {difference:.1e}" + ("" if difference < 1e-2 else " TOO MUCH"))
    except Exception as error:
        say(f"    flex: FAILED {type(error).__name__} {str(error)[:200]}")
    times = interleaved(functions, rounds)
    flops = 4.0 * mask.area * HEADS * DIM
    work = {"forward": 1.0, "backward": 2.5, "together": 2.5, "dkv": 2.0, "dq": 1.5, "delta": 0.0}
    rates = {name: work[name.removeprefix("flex ").split()[0]] * flops / ms / 1e9 for name, ms in times.items()}
    for part in ("forward", "dkv", "dq", "together", "backward", "delta", "flex"):
        named = sorted((ms, name) for name, ms in times.items() if name.startswith(part))
        for ms, name in named:
            say(f"    {mask.name} {mask.length} {name:42s} {ms:9.3f} ms {rates[name]:6.0f} TFLOP/s")
    return {"mask": mask.name, "length": mask.length, "area": mask.area, "ms": times, "tflops": rates}


def table(results: list[dict[str, Any]]) -> str:
    """The best of each part beside FlexAttention."""
    lines = [
        f"{'mask':8s}{'length':>7s} | {'forward: best':26s}{'TF/s':>5s}{'dflt':>6s}{'flex':>6s} | "
        f"{'dkv: best':24s}{'ms':>8s} | {'dq: best':20s}{'ms':>8s} | {'one launch: best':28s}{'ms':>8s} | "
        f"{'bwd ms':>8s}{'flex':>8s} | f+b TF/s, flex, ratio"
    ]
    for result in results:
        ms, flops = result["ms"], 4.0 * result["area"] * HEADS * DIM
        best: dict[str, tuple[str, float]] = {}
        for part in ("forward", "dkv", "dq", "together"):
            named = [
                (value, name.removeprefix(part + " ")) for name, value in ms.items() if name.startswith(part + " ")
            ]
            value, name = min(named, default=(math.nan, "-"))
            best[part] = name, value
        two = best["dkv"][1] + best["dq"][1]
        one = best["together"][1]
        backward = min(two, one) + ms.get("delta", math.nan)
        nan = math.nan
        fwd, flex_fwd, flex_bwd = best["forward"][1], ms.get("flex forward", nan), ms.get("flex backward", nan)
        ours, theirs = 3.5 * flops / (fwd + backward) / 1e9, 3.5 * flops / (flex_fwd + flex_bwd) / 1e9
        lines.append(
            f"{result['mask']:8s}{result['length']:7d} | {best['forward'][0]:26s}{flops / fwd / 1e9:5.0f}"
            f"{flops / ms.get('forward default', nan) / 1e9:6.0f}{flops / flex_fwd / 1e9:6.0f} | "
            f"{best['dkv'][0]:24s}{best['dkv'][1]:8.3f} | {best['dq'][0]:20s}{best['dq'][1]:8.3f} | "
            f"{best['together'][0]:28s}{one:8.3f} | {backward:8.3f}{flex_bwd:8.3f} | "
            f"{ours:.0f}, {theirs:.0f}, {ours / theirs:.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420, help="time budget for everything")
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 32768, 8192])
    parser.add_argument("--masks", nargs="+", default=["causal", "clear", "hstu"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    options = parser.parse_args()
    deadline = START + options.seconds
    major, minor = torch.cuda.get_device_capability()
    say(torch.cuda.get_device_name(), "torch", torch.__version__, "workers", options.workers)

    slots: dict[str, tuple[int, int, bool]] = {}
    for name in options.masks:
        mask = make_mask(name, options.lengths[0], "cpu")
        slots[name] = mask.rows.shape[0], mask.cols.shape[0], mask.length % TILE != 0
    pool = ProcessPoolExecutor(
        options.workers, multiprocessing.get_context("spawn"), initializer=start_worker, initargs=(10 * major + minor,)
    )
    jobs: dict[Future[float], tuple[str, bool, Candidate]] = {}
    queue: list[tuple[int, str, bool, Candidate]] = []
    for name in options.masks:
        kinds = {make_mask(name, length, "cpu").length % TILE != 0 for length in options.lengths}
        for ragged in kinds:
            for rank, candidate in enumerate(candidates_of(needs_live_test(slots[name][0]))):
                queue.append((rank, name, ragged, candidate))
    for _, name, ragged, candidate in sorted(queue, key=lambda job: job[0]):
        jobs[pool.submit(compile_ahead, slots[name][0], slots[name][1], ragged, candidate)] = name, ragged, candidate
    say(f"{len(jobs)} kernels to compile")

    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": []}
    try:
        report["check"] = check()
    except Exception:
        traceback.print_exc(limit=4)
    ready: dict[tuple[str, bool], list[Candidate]] = {}
    pending = set(jobs)
    seconds: list[float] = []
    while pending and time.time() < START + 0.4 * options.seconds:
        done, pending = wait(pending, timeout=5, return_when=FIRST_COMPLETED)
        for job in done:
            name, ragged, candidate = jobs[job]
            try:
                seconds.append(job.result())
                ready.setdefault((name, ragged), []).append(candidate)
            except Exception as error:
                say(f"compile {name} {candidate.part} {candidate}: FAILED {type(error).__name__} {str(error)[:200]}")
    say(f"{len(seconds)} compiled, mean {statistics.mean(seconds or [0]):.1f} s each, {len(pending)} left out")
    for job in pending:
        job.cancel()
    pool.shutdown(wait=False, cancel_futures=True)

    for length in options.lengths:
        for name in options.masks:
            if time.time() > deadline - 25:
                say(f"out of time before {name} {length}")
                continue
            try:
                mask = make_mask(name, length, "cuda")
                say(f"{name} {mask.length}, area {mask.area / mask.length**2:.3f} of the square")
                found = ready.get((name, mask.length % TILE != 0), [])
                report["results"].append(sweep(mask, found, options.rounds))
                write(report)
            except Exception as error:
                traceback.print_exc(limit=4)
                say(f"{name} {length}: FAILED {type(error).__name__} {str(error)[:300]}")
            torch.cuda.empty_cache()
    write(report)
    wrong = [f"{c['mask']} {c['length']}" for c in report.get("check", []) if not c["ok"]]
    print("\ncheck:", "all right" if report.get("check") and not wrong else f"WRONG: {wrong}")
    print(table(report["results"]), flush=True)


def write(report: dict[str, Any]) -> None:
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "kernels.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
