"""HSTU over packed users: the rule of one user, `cu_seqlens` of many, rows and columns cut differently, padding.

A pack is compared with its sequences run one at a time, gradients included. Runs on a GPU or on a CPU.

python examples/packed_hstu.py
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

import cmir


def hstu() -> cmir.MaskSpec:
    """The new tokens of a user against all of them: the last `rows` of `cols` tokens ask, the history is in a cache."""
    spec = cmir.MaskSpec("hstu_new_tokens")
    i, j, rows, cols = spec.i, spec.j, spec.rows, spec.cols
    history = spec.scalar("history")
    start = spec.table("start", per="row")  # the first token of the candidate that row i belongs to
    at = i + cols - rows  # the token that row i is
    spec.assume(history >= 0, rows <= cols, history <= start[i], start[i] <= at, start.nondecreasing())
    spec.region("candidates", 0, rows, visible=(j < history) | ((start[i] <= j) & (j <= at)))
    return spec


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    mask = cmir.compile(hstu())

    # Four users: candidates (rows) and all tokens (columns), the third without candidates; then 3 and 1 of padding.
    users = [(4, 9, [5, 5, 7, 7]), (2, 2, [0, 1]), (0, 6, []), (5, 17, [12, 12, 12, 15, 15])]
    history = torch.tensor([5, 0, 6, 12], device=device)
    start = torch.tensor([t for _, _, starts in users for t in starts] + [0] * 3, device=device)
    cu_rows = torch.tensor([0, 4, 6, 6, 11], device=device)
    cu_cols = torch.tensor([0, 9, 11, 17, 34], device=device)
    desc = mask.describe(
        rows=14, cols=35, cu_seqlens=cu_rows, cu_seqlens_k=cu_cols, max_seqlen=17, history=history, start=start
    ).check()
    print("visible pairs:", desc.area.tolist())

    q = torch.randn(1, 4, 14, 64, device=device, requires_grad=True)
    k, v = (torch.randn(1, 4, 35, 64, device=device, requires_grad=True) for _ in range(2))
    out = cmir.attention(q, k, v, desc)
    gradient = torch.randn_like(out)
    packed = torch.autograd.grad(out, (q, k, v), gradient)

    # The same, one user at a time; padding has output 0 and gradient 0.
    one_by_one = torch.zeros_like(out)
    for number, (rows, cols, _) in enumerate(users):
        r, c = (slice(int(cu[number]), int(cu[number + 1])) for cu in (cu_rows, cu_cols))
        alone = mask.describe(rows=rows, cols=cols, history=int(history[number]), start=start[r])
        one_by_one[:, :, r] = cmir.attention(q[:, :, r], k[:, :, c], v[:, :, c], alone)
    torch.testing.assert_close(out, one_by_one, rtol=1e-4, atol=1e-4)
    for a, b in zip(packed, torch.autograd.grad(one_by_one, (q, k, v), gradient), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    print("a pack is equal to its sequences, one at a time")


if __name__ == "__main__":
    main()
