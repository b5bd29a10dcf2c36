"""Eager attention with a dense mask: what the kernels are compared with. Slow, simple, differentiable."""

from __future__ import annotations

import math

import torch


def reference_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * q k^T) v over the visible pairs.

    Args:
        q: [B, Hq, M, D]; k: [B, Hkv, N, D]; v: [B, Hkv, N, Dv]. Hq is a multiple of Hkv. Computed in float64 if given
            so, otherwise in float32.
        mask: bool, broadcastable to [B, Hq, M, N]; True = visible.
        scale: 1 / sqrt(D) by default.

    Returns:
        (out [B, Hq, M, Dv], lse [B, Hq, M]). A row that sees nothing has output 0 and lse -inf, and gradients that are
        exactly 0.
    """
    precision = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // k.shape[1]
    keys = k.to(precision).repeat_interleave(group, dim=1)
    values = v.to(precision).repeat_interleave(group, dim=1)
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q.to(precision) @ keys.transpose(-2, -1)) * factor
    mask = mask.expand_as(scores)
    seen = mask.any(-1, keepdim=True)
    # A row without a visible column gets finite scores, so that no step meets -inf - -inf, and is cut out at the end.
    scores = torch.where(mask, scores, torch.where(seen, -math.inf, 0.0))
    lse = torch.logsumexp(scores, -1, keepdim=True)
    weights = torch.where(mask, torch.exp(scores - lse), 0.0)
    return weights @ values, torch.where(seen, lse, -math.inf).squeeze(-1)
