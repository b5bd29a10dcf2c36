"""The Hopper kernels compile without a GPU: within its shared memory, products in parallel, few spills."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import offline

SHARED_MEMORY = 232448  # bytes a program may have on Hopper
FORWARD = """
import sys
import offline
offline.install()
import torch
from cmir.runtime import hopper
from cmir.runtime.loader import load

name, dim = sys.argv[1], int(sys.argv[2])
module, i32 = load(offline.zoo_mask(name).source("gluon")), torch.int32
tensor = torch.empty(1, 8, 1024, dim, dtype=torch.bfloat16)
blocks = [hopper.make_block(tensor, rows) for rows in (64, 128, 128, 64)]
numbers = [0, 1024, 8, 1024, 8, 8, 1, 0, 0, 8, 0.1]
compiled = offline.compile_kernel(
    module.forward, *blocks, torch.float32, *[i32] * 6, *numbers, *hopper.forward_constants(dim, dim, name == "clear"),
    num_warps=4,
)
offline.require_parallel_products(compiled)
print(compiled.metadata.shared, *offline.registers_and_spills(compiled))
"""


@pytest.mark.parametrize(("name", "dim"), [("hstu", 128), ("clear", 64)])
def test_forward_compiles_for_hopper(name: str, dim: int) -> None:
    """The few bytes that spill are of what is computed once, before the loops."""
    script = f"import sys; sys.argv[1:] = ['{name}', '{dim}']\n" + FORWARD
    shared, _, spills = offline.run(script, Path(__file__).parent).split()
    assert int(shared) <= SHARED_MEMORY
    assert int(spills) <= 24
