"""Launch configurations of the attention kernels: one table, looked up, never tuned at run time.

The 16-bit rows for head dimensions 128 and 256 are the best of sweeps on an H200 (benchmarks/kernels.py, figures in
benchmarks/NOTES.md); the others were chosen for the registers and shared memory that they take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SlotClass = Literal["few", "many"]
"""few: every slot is tested; many: a live test, which needs registers and shared memory of its own."""

HEAD_DIMS = tuple(range(16, 257, 16))
"""Head dimensions that the kernels take, for q/k and for v; they compute with the next power of two."""


@dataclass(frozen=True)
class Block:
    """Rows and columns of one step, warps and pipeline stages."""

    m: int
    n: int
    num_warps: int
    num_stages: int


@dataclass(frozen=True)
class Config:
    """One mask kind's kernels. `together`: dk/dv and dq in one launch, with the warps and stages of `dkv`."""

    forward: Block
    dkv: Block
    dq: Block
    together: bool


_INTERPRETED = Config(Block(32, 32, 4, 1), Block(32, 32, 4, 1), Block(32, 32, 4, 1), True)

# (larger head dimension at most, bits of the element type, slots): the first row that fits, from the top.
_TABLE: tuple[tuple[int, int, SlotClass, Config], ...] = (
    (64, 16, "few", Config(Block(128, 128, 8, 3), Block(64, 128, 8, 3), Block(128, 64, 8, 3), True)),
    (64, 16, "many", Config(Block(128, 64, 8, 3), Block(64, 128, 8, 3), Block(128, 64, 8, 3), True)),
    (128, 16, "few", Config(Block(64, 64, 4, 3), Block(64, 128, 8, 3), Block(128, 64, 8, 3), True)),
    (128, 16, "many", Config(Block(64, 64, 4, 2), Block(32, 64, 4, 3), Block(64, 64, 4, 2), False)),
    (256, 16, "few", Config(Block(128, 64, 8, 2), Block(64, 64, 8, 1), Block(64, 64, 8, 1), True)),
    (256, 16, "many", Config(Block(64, 64, 8, 2), Block(16, 64, 8, 2), Block(64, 16, 8, 2), False)),
    (128, 32, "many", Config(Block(16, 16, 4, 2), Block(16, 16, 4, 1), Block(16, 16, 4, 1), True)),
    (256, 32, "many", Config(Block(16, 16, 8, 2), Block(16, 16, 8, 1), Block(16, 16, 8, 1), True)),
)


def attention_config(
    head_dim: int, bits: int, slots: SlotClass, tile: tuple[int, int], interpreted: bool = False
) -> Config:
    """The configuration for a head dimension (the larger of q/k's and v's), element size and slot class; blocks are
    cut to the descriptor's tile, which they divide (all are powers of two)."""
    if interpreted:
        found = _INTERPRETED
    else:
        found = next(
            config
            for most, size, kind, config in _TABLE
            if head_dim <= most and bits == size and (kind == slots or bits == 32)
        )
    return Config(_cut(found.forward, tile), _cut(found.dkv, tile), _cut(found.dq, tile), found.together)


def _cut(block: Block, tile: tuple[int, int]) -> Block:
    return Block(min(block.m, tile[0]), min(block.n, tile[1]), block.num_warps, block.num_stages)
