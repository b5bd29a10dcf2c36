"""A stack of decoder layers as Qwen3 has them, for tokens that bring their own positions and their own attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""q [B, Hq, N, D], k and v [B, Hkv, N, D], to [B, Hq, N, D]: the mask is inside."""


class Shape(NamedTuple):
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    dim: int


QWEN3_8B = Shape(hidden=4096, intermediate=12288, heads=32, kv_heads=8, dim=128)
TINY = Shape(hidden=32, intermediate=64, heads=2, kv_heads=1, dim=16)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-6)


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.before, self.between = Norm(shape.hidden), Norm(shape.hidden)
        self.q_norm, self.k_norm = Norm(shape.dim), Norm(shape.dim)
        widths = (shape.heads + 2 * shape.kv_heads) * shape.dim
        self.qkv = nn.Linear(shape.hidden, widths, bias=False)
        self.out = nn.Linear(shape.heads * shape.dim, shape.hidden, bias=False)
        self.gate = nn.Linear(shape.hidden, 2 * shape.intermediate, bias=False)
        self.down = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor], attend: Attend) -> torch.Tensor:
        shape, (batch, length, _) = self.shape, x.shape
        heads = self.qkv(self.before(x)).view(batch, length, -1, shape.dim)
        q, k, v = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=2)
        q, k = _turned(self.q_norm(q), *angles), _turned(self.k_norm(k), *angles)
        out = attend(*(t.transpose(1, 2) for t in (q, k, v)))
        x = x + self.out(out.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Stack(nn.Module):
    """x [B, N, hidden] and positions [N] to [B, N, hidden], normalised."""

    def __init__(self, shape: Shape, layers: int, recompute: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        self.norm = Norm(shape.hidden)
        self.dim, self.recompute = shape.dim, recompute

    def forward(self, x: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        angles = _angles(positions, self.dim, x.dtype)
        for layer in self.layers:
            if self.recompute:
                x = checkpoint(layer, x, angles, attend, use_reentrant=False)
            else:
                x = layer(x, angles, attend)
        return self.norm(x)


def _angles(positions: torch.Tensor, dim: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of the rotary embedding, [N, 1, dim]."""
    rates = 1e6 ** (-torch.arange(0, dim, 2, device=positions.device) / dim)
    angle = (positions[:, None] * rates).repeat(1, 2)[:, None]
    return angle.cos().to(dtype), angle.sin().to(dtype)


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin
