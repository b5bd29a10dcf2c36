"""Attention in float32, whole, in blocks of rows so that any length fits a GPU; and how far results are from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from benchmarks.masks import MaskMod

NAMES = ("out", "dq", "dk", "dv")

TOLERANCE = 5e-3
"""Of ||x - exact|| / ||exact||, for results in bfloat16."""

BLOCK_TOLERANCE = 1.5e-2
"""Of the same within any 128 rows of one head: one wrong row of 128 equal ones is 0.1."""

BLOCK = 128
SCORES = 1 << 25
"""Scores held at one time and head: rows in one step times columns."""


def exact_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, mask_mod: MaskMod
) -> tuple[torch.Tensor, ...]:
    """(out, dq, dk, dv) in float32 of softmax(q k^T / sqrt(D)) v over the pairs that `mask_mod` shows.

    Args:
        q, dout: [B, Hq, M, D]; k, v: [B, Hkv, N, D], Hq a multiple of Hkv. Every row sees something.
        mask_mod: with no use for batch and head, which are given as None.
    """
    batch, heads, rows, dim = q.shape
    kv_heads, cols = k.shape[1], k.shape[2]
    grouped = (batch, kv_heads, heads // kv_heads, rows, dim)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        out, dq = (torch.empty(grouped, dtype=torch.float32, device=q.device) for _ in range(2))
        dk, dv = (torch.zeros(k.shape, dtype=torch.float32, device=q.device) for _ in range(2))
        j = torch.arange(cols, device=q.device)[None, :]
        step = max(1, SCORES // cols)
        for first in range(0, rows, step):
            part = slice(first, min(first + step, rows))
            visible = mask_mod(None, None, torch.arange(part.start, part.stop, device=q.device)[:, None], j)
            for b in range(batch):
                for h in range(kv_heads):
                    key, value = k[b, h].float(), v[b, h].float()
                    query = q.view(grouped)[b, h, :, part].float()
                    gradient = dout.view(grouped)[b, h, :, part].float()
                    score = (query @ key.T / math.sqrt(dim)).masked_fill_(~visible, -math.inf)
                    weight = torch.softmax(score, -1)
                    result = weight @ value
                    dscore = gradient @ value.T
                    dscore.sub_((result * gradient).sum(-1, keepdim=True)).mul_(weight).div_(math.sqrt(dim))
                    out[b, h, :, part], dq[b, h, :, part] = result, dscore @ key
                    dk[b, h] += (dscore.transpose(-1, -2) @ query).sum(0)
                    dv[b, h] += (weight.transpose(-1, -2) @ gradient).sum(0)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    return out.view(q.shape), dq.view(q.shape), dk, dv


def errors(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor]) -> dict[str, tuple[float, float]]:
    """For out, dq, dk and dv: the relative error of the whole, and the largest of 128 rows of one head."""
    return {name: _error(a.detach().float(), b) for name, a, b in zip(NAMES, got, want, strict=True)}


def within(found: dict[str, tuple[float, float]]) -> bool:
    """Whether all errors are within the tolerances; NaN is not."""
    return all(whole < TOLERANCE and block < BLOCK_TOLERANCE for whole, block in found.values())


def _error(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    wrong, right = (_blocks((x * x).sum(-1, dtype=torch.float64)) for x in (a - b, b))
    # Blocks that are nearly zero are compared with the average one.
    floor = 1e-4 * right.mean()
    return math.sqrt(wrong.sum() / right.sum()), math.sqrt((wrong / right.clamp(min=floor)).max())


def _blocks(rows: torch.Tensor) -> torch.Tensor:
    """The sums of every 128 entries along the last dimension."""
    padded = torch.nn.functional.pad(rows, (0, -rows.shape[-1] % BLOCK))
    return padded.view(*rows.shape[:-1], -1, BLOCK).sum(-1)
