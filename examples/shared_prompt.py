"""One prompt with two answers, in one sequence, against two sequences with a copy of the prompt each.

The check is from first principles and knows no mask but the causal one: what answer A gets in the shared sequence is
what it gets after the prompt in a sequence of its own, and the prompt's gradient is the sum over both copies.

    python examples/shared_prompt.py
"""

import os

import torch
import torch.nn.functional as F

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

import cmir
from cmir import zoo

PROMPT, ANSWERS = 40, (24, 16)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    mask = zoo.load("shared_prompt")
    rows = PROMPT + sum(ANSWERS)

    # Per row: where its pack begins, where the prompt of that pack ends, where its own segment begins.
    pack = torch.zeros(rows, dtype=torch.int32, device=device)
    prompt = torch.full((rows,), PROMPT, dtype=torch.int32, device=device)
    lengths = torch.tensor((PROMPT, *ANSWERS), device=device)
    segment = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    desc = mask.describe(rows=rows, pack=pack, prompt=prompt, segment=segment).check()

    q, k, v = (torch.randn(1, 2, rows, 32, device=device, requires_grad=True) for _ in range(3))
    gradient = torch.randn(1, 2, rows, 32, device=device)
    out = cmir.attention(q, k, v, desc)
    grads = torch.autograd.grad(out, (q, k, v), gradient)

    want, want_grads = torch.zeros_like(out), [torch.zeros_like(t) for t in (q, k, v)]
    first = PROMPT
    for n, answer in enumerate(ANSWERS):
        own = torch.cat([torch.arange(PROMPT), torch.arange(first, first + answer)]).to(device)
        inputs = [t.detach()[:, :, own].requires_grad_() for t in (q, k, v)]
        separate = F.scaled_dot_product_attention(*inputs, is_causal=True)
        weight = gradient[:, :, own].clone()
        if n > 0:
            weight[:, :, :PROMPT] = 0  # the prompt's own output counts once
        want[:, :, own] = separate.detach()
        for total, part in zip(want_grads, torch.autograd.grad(separate, inputs, weight), strict=True):
            total[:, :, own] += part
        first += answer

    for name, got, right in zip(("output", "dq", "dk", "dv"), (out, *grads), (want, *want_grads), strict=True):
        torch.testing.assert_close(got, right, rtol=1e-4, atol=1e-4)
        print(f"{name}: equal, largest difference {(got - right).abs().max().item():.0e}")
    print(f"{rows} tokens in place of {len(ANSWERS) * PROMPT + sum(ANSWERS)}")


if __name__ == "__main__":
    main()
