"""The Hopper kernels compile without a GPU: within its shared memory, products in parallel, few spills."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import offline

from cmir.runtime.hopper_dims import MOST_SHARED

FORWARD = """
import sys
from types import SimpleNamespace
import offline
offline.install()
import torch
from cmir.runtime import hopper
from cmir.runtime.hopper_dims import forward_dims
from cmir.runtime.loader import load

name, dim, value_dim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mask, dims = offline.zoo_mask(name), forward_dims(dim, value_dim)
module, memory = load(mask.source("gluon")), torch.empty(1, 1, 1, dtype=torch.int32)
hopper.kernels, hopper.programs = lambda _: module, lambda _: 132
desc = SimpleNamespace(
    module=module, signature=mask.signature, rows=1024, cols=1024, view=lambda _: memory, bits=memory, memory=memory,
    row_count=memory, row_index=memory, row_live=memory, row_order=memory, widths=(8, 8), mask_strides=(0, 0),
)
q = torch.empty(1, 8, 1024, dim, dtype=torch.bfloat16)
v = torch.empty(1, 8, 1024, value_dim, dtype=torch.bfloat16)
launcher = hopper.ForwardPlan(q, q, v, desc).forward
compiled = offline.compile_launcher(launcher)
assert compiled.metadata.shared - dims.shared in range(2048), (compiled.metadata.shared, dims.shared)
offline.require_parallel_products(compiled)
print(compiled.metadata.shared, offline.registers_and_spills(compiled)[1], *offline.spills_of_steps(compiled))
"""


@pytest.mark.parametrize(
    ("name", "dim", "value_dim", "most"),
    [
        *(("hstu", 128, 128, 160), ("clear", 128, 128, 100), ("clear", 64, 64, 0), ("strided", 64, 128, 48)),
        *(("hstu", 96, 96, 72), ("hstu", 192, 128, 248), ("strided", 256, 64, 96)),
        *(("hstu", 256, 256, 240), ("clear", 256, 256, 184)),
    ],
)
def test_forward_compiles_for_hopper(name: str, dim: int, value_dim: int, most: int) -> None:
    """`most`: bytes that may spill, the larger of triton 3.6 and 3.9 and some room. They are of numbers of a list, read
    before its first step and after its last. A step, of 350 to 900 instructions, touches up to 8 spilled registers,
    where live slots are read and the accumulator takes half of the registers (clear, 256); else 5, and of full tiles
    mostly none."""
    script = f"import sys; sys.argv[1:] = ['{name}', '{dim}', '{value_dim}']\n" + FORWARD
    shared, spills, *of_steps = map(int, offline.run(script, Path(__file__).parent).split())
    assert shared <= MOST_SHARED
    assert spills <= most
    assert len(of_steps) == 4, "two consumers, partial and full tiles"
    assert max(of_steps) <= 8
