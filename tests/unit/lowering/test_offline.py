"""The generated kernels compile for Hopper without a GPU: within its shared memory, spilling no more than recorded."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import offline

SHARED_MEMORY = 232448  # bytes a program may have on Hopper
COMPILE = """
import sys
import offline
offline.install()
import torch
from offline import zoo_mask
from cmir.lowering.visibility import LIVE_SLOTS, needs_live_test
from cmir.runtime.configs import attention_config

name, dim = sys.argv[1], int(sys.argv[2])
mask = zoo_mask(name)
module, dtype, i32, f32 = mask._kernels, torch.bfloat16, torch.int32, torch.float32
signature = mask.signature
many = needs_live_test(max(signature.row_slots or 0, signature.col_slots or 0))
live = LIVE_SLOTS if many else 0
config = attention_config(dim, 16, "many" if many else "few", (128, 128))
stride = (4096 * dim, 4096 * dim, dim)
table = [i32] * 5 + [0, 4096, 32]
shape = dict(D=dim, DV=dim, TILE_M=128, TILE_N=128)


def report(kernel, compiled):
    offline.require_direct(compiled)
    print(kernel, compiled.metadata.shared, offline.registers_and_spills(compiled)[1])


for even in (False,):  # ragged lengths: the larger kernels
    block = config.forward
    report("forward", offline.compile_kernel(
        module.forward, dtype, dtype, dtype, dtype, f32, *stride * 4, *table, 4096, 4096, 32, 32, 4, 0, 0, 0.1, **shape,
        BLOCK_M=block.m, BLOCK_N=block.n, EVEN_M=even, EVEN_N=even, LIVE_SLOTS=live,
        num_warps=block.num_warps, num_stages=block.num_stages,
    ))
    launches = [(True, True, config.dkv)] if config.together else [(True, False, config.dkv), (False, True, config.dq)]
    for dkv, dq, block in launches:
        report("backward", offline.compile_kernel(
            module.backward, *[dtype] * 4, f32, *[dtype] * 3, *stride * 7, *table, *table, 4096, 4096, 1, 32, 4, 0, 0,
            0.1, **shape, DKV=dkv, DKV_BLOCK_M=config.dkv.m, DKV_BLOCK_N=config.dkv.n,
            DQ=dq, DQ_BLOCK_M=config.dq.m, DQ_BLOCK_N=config.dq.n, EVEN_M=even, EVEN_N=even,
            ROW_LIVE_SLOTS=live, COL_LIVE_SLOTS=live, num_warps=block.num_warps, num_stages=block.num_stages,
        ))
"""


@pytest.mark.parametrize(
    ("name", "dim", "forward", "backward"),
    [
        ("hstu", 128, 0, 500),
        ("clear", 128, 0, 160),
        ("hstu", 64, 64, 100),
        ("strided", 128, 0, 340),
        ("hstu by bits", 64, 0, 120),
        ("hstu", 96, 0, 540),
        ("hstu", 256, 0, 1800),
        ("clear", 256, 0, 256),
    ],
)
def test_attention_compiles_for_hopper(name: str, dim: int, forward: int, backward: int) -> None:
    """`forward`, `backward`: bytes that may spill, the larger of triton 3.6 (hstu: 128, strided: 260) and 3.9 (484,
    324) and some room; of head dim 256 that of triton 3.6 (hstu: 1648, and
    still faster than less with smaller blocks; clear: 128)."""
    script = f"import sys; sys.argv[1:] = ['{name}', '{dim}']\n" + COMPILE
    lines = [line.split() for line in offline.run(script, Path(__file__).parent).splitlines()]
    assert len(lines) >= 2
    for kernel, shared, spills in lines:
        assert int(shared) <= SHARED_MEMORY
        assert int(spills) <= (forward if kernel == "forward" else backward), (kernel, spills)


PREPROCESS = """
import sys
import offline
offline.install()
import torch

mask = offline.zoo_mask(sys.argv[1])
if sys.argv[2] == "packed":
    mask = mask.packed
signature, i32, i64 = mask.signature, torch.int32, torch.int64
arguments = []
for parameter in signature.parameters:
    arguments += [i32, 1, True] if parameter.kind == "scalar" else [i64, 7]
    arguments += [1000] if parameter.kind == "free" else []
compiled = offline.compile_kernel(
    mask._kernels.preprocess, i32, 1000, 1000, 8, 8, 0, i32, *arguments, ROW_SLOTS=signature.row_slots or 0,
    COL_SLOTS=signature.col_slots or 0, TILE_M=128, TILE_N=128, ROW_LIVE=(signature.row_slots or 0) > 4,
    COL_LIVE=(signature.col_slots or 0) > 4, BITS=signature.bits,
)
print(*offline.registers_and_spills(compiled))
offline.require_direct(compiled)
"""


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "plain") for name in ("hstu", "hstu_meta", "shared_prompt", "clear")]
    + [(name, "plain") for name in ("strided", "key_holes by bits", "hstu_meta by bits", "vertical_slash by bits")]
    + [(name, "packed") for name in ("causal", "hstu", "hstu_meta", "shared_prompt", "strided")],
)
def test_preprocess_compiles_for_hopper(name: str, form: str) -> None:
    script = f"import sys; sys.argv[1:] = ['{name}', '{form}']\n" + PREPROCESS
    _, spills = offline.run(script, Path(__file__).parent).split()
    assert int(spills) <= 32  # strided: 28 under triton 3.6, 4 under 3.9; the others none
