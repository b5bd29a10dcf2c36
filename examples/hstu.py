"""HSTU in Python: a history that is causal, and candidates that see it and themselves. Runs on a GPU or on a CPU.

python examples/hstu.py
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

import cmir
from cmir.runtime.reference import reference_attention


def hstu() -> cmir.MaskSpec:
    spec = cmir.MaskSpec("hstu")
    i, j, rows, cols = spec.i, spec.j, spec.rows, spec.cols
    history = spec.scalar("history")
    start = spec.table("start", per="row")  # the first row of the candidate that row i belongs to
    spec.assume(rows == cols, history >= 0, history <= rows)
    spec.assume(history <= start[i], start[i] <= i, rows=(history, rows))
    spec.assume(start.nondecreasing(over=(history, rows)))
    spec.region("history", 0, history, visible=(j <= i))
    spec.region("candidate", history, rows, visible=(j < history) | ((start[i] <= j) & (j <= i)))
    return spec


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    mask = cmir.compile(hstu())
    print(f"{mask.name}: {mask.slots['rows']} slots a row, {mask.slots['cols']} a column")

    # Two users of 12 tokens: histories of 5 and 8, then candidates of two tokens (the last one of the first, of one).
    history = torch.tensor([5, 8], device=device)
    start = torch.tensor([[0, 0, 0, 0, 0, 5, 5, 7, 7, 9, 9, 11], [0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 10, 10]], device=device)
    desc = mask.describe(rows=12, history=history, start=start).check()
    print("visible pairs:", desc.area.tolist())

    q, k, v = (torch.randn(2, 4, 12, 64, device=device, requires_grad=True) for _ in range(3))
    out = cmir.attention(q, k, v, desc)
    out.sum().backward()

    dense = [mask.dense(rows=12, history=int(h), start=s) for h, s in zip(history.cpu(), start.cpu(), strict=True)]
    rule = torch.stack([torch.from_numpy(d) for d in dense])[:, None].to(device)
    want, _ = reference_attention(q, k, v, rule)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    print("equal to eager attention under the rule")


if __name__ == "__main__":
    main()
