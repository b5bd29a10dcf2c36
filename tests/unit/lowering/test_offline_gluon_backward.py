"""The Hopper backward kernels compile without a GPU: within its shared memory, products in parallel, few spills."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import offline

SHARED_MEMORY = 232448  # bytes a program may have on Hopper
COMPILE = """
import sys
from types import SimpleNamespace
import offline
offline.install()
import torch
from cmir.runtime import hopper_backward
from cmir.runtime.loader import load

name, dim, value_dim, batch = sys.argv[1], *map(int, sys.argv[2:])
mask = offline.zoo_mask(name)
module = load(mask.source("gluon"))
hopper_backward.kernels, hopper_backward.programs = lambda _: module, lambda _: 132
memory = torch.empty(1, 1, 1, dtype=torch.int32)
desc = SimpleNamespace(
    module=module, signature=mask.signature, rows=1024, cols=1024, view=lambda _: memory, bits=memory, memory=memory,
    col_count=memory, col_index=memory, col_live=memory, col_order=memory, widths=(8, 8), mask_strides=(0, 0), masks=1,
)
q = torch.empty(1, 8, 1, dim, dtype=torch.bfloat16).expand(batch, 8, 1024, dim)
k = q[:, :4]
out = torch.empty(1, 8, 1, value_dim, dtype=torch.bfloat16).expand(batch, 8, 1024, value_dim)
plan = hopper_backward.BackwardPlan(q, k, out[:, :4], out, out, True, desc)
for launcher in (plan.begin, plan.steps, plan.end):
    compiled = offline.compile_launcher(launcher)
    offline.require_parallel_products(compiled)
    print(plan.splits, compiled.metadata.shared, offline.registers_and_spills(compiled)[1])
"""


@pytest.mark.parametrize(
    ("name", "dim", "value_dim", "batch", "most"),
    [
        *(("hstu", 128, 128, 16, 640), ("strided", 64, 64, 1, 60)),
        *(("hstu", 96, 112, 16, 640), ("hstu", 128, 64, 1, 300), ("hstu", 64, 128, 16, 320)),
        *(("hstu", 256, 256, 16, 480), ("clear", 192, 128, 1, 160), ("strided", 64, 256, 16, 60)),
    ],
)
def test_backward_compiles_for_hopper(name: str, dim: int, value_dim: int, batch: int, most: int) -> None:
    """`most`: bytes that may spill, the larger of triton 3.6 (hstu: 372, 256: 292) and 3.9 (620, 412) and some room;
    nearly all of what is computed outside of the loop over steps."""
    script = f"import sys; sys.argv[1:] = ['{name}', '{dim}', '{value_dim}', '{batch}']\n" + COMPILE
    lines = [line.split() for line in offline.run(script, Path(__file__).parent).splitlines()]
    assert [int(splits) for splits, _, _ in lines] == [1 if batch > 1 else 2] * 3
    assert all(int(shared) <= SHARED_MEMORY for _, shared, _ in lines)
    assert [int(spills) for _, _, spills in lines][::2] == [0, 0]
    assert int(lines[1][2]) <= most, lines[1][2]
