# pyright: basic
"""The sweep of `benchmarks.kernels`: its masks are what they say, and what it launches computes attention."""

import os

os.environ["TRITON_INTERPRET"] = "1"

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import candidates as kernels
from benchmarks import closed
from cmir.runtime.reference import reference_attention

N = 150
MASKS = {
    "causal": closed.causal(N, "cpu"),
    "hstu": closed.candidates("hstu", N, 90, 16, "cpu"),
    "clear": closed.clear(9, 14, 24, "cpu", radius=3),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_in_closed_form(name: str):
    mask = MASKS[name]
    i, j = torch.arange(mask.length)[:, None], torch.arange(mask.length)[None]
    want = mask.predicate(0, 0, i, j)
    assert torch.equal(mask.dense(), want) and mask.area == int(want.sum())
    lo, hi = mask.cols[:, 0, :, None], mask.cols[:, 1, :, None]
    assert torch.equal(((lo <= j) & (j < hi)).any(0), want.T)


@pytest.mark.parametrize("part", ["forward", "dkv", "dq", "together"])
def test_a_candidate_launches_its_part_and_nothing_else(part: str):
    mask = MASKS["hstu"]
    module = kernels.kernels(mask.rows.shape[0], mask.cols.shape[0])
    candidate = next(c for c in kernels.candidates_of(False) if c.part == part)
    q, k, v, dout = kernels.tensors(N, "cpu", torch.float32, (2, 1))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    out, lse = reference_attention(inputs[0], inputs[1], inputs[2], mask.dense())
    grads = torch.autograd.grad(out, inputs, dout)
    want = [out] if part == "forward" else list(grads)
    desc = kernels.describe(mask, kernels.Selected(module, part, "delta"))
    with torch.no_grad():
        got = kernels.run(candidate, desc, q, k, v, dout, out.detach(), lse.detach())
        nothing = kernels.run(candidate, kernels.with_kernels(desc, kernels.Selected(module)), q, k, v, dout, out, lse)
    assert nothing is not None
    launched = {"forward": [0], "dkv": [1, 2], "dq": [0], "together": [0, 1, 2]}[part]
    for place in launched:
        torch.testing.assert_close(got[place], want[place], rtol=1e-3, atol=1e-4)


def test_a_launcher_is_the_kernel_in_all_else():
    module = kernels.kernels(1, 1)
    selected = kernels.Selected(module, "forward")
    assert selected.forward is selected.forward
    assert selected.forward.arg_names == module.forward.arg_names
    assert selected.backward_delta[1, 1, 1] is not None
    assert kernels.Skipped()[1, 1, 1](1, 2) is None
