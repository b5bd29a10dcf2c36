"""The tensors that attention kernels take and give: their strides."""

from __future__ import annotations

import torch


def usable(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` with a unit last stride, and rows not spaced by the batch size: row strides are compile-time constants,
    which neither lengths nor batches may change."""
    batch_stride, _, row_stride, last_stride = tensor.stride()
    if last_stride == 1 and (tensor.shape[0] == 1 or batch_stride == 0 or batch_stride >= row_stride):
        return tensor
    return tensor.contiguous()


def like(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """An uninitialised [B, H, L, dim] with the order of dimensions of `tensor`, so that a transposed view stays one."""
    batch, heads, length, _ = tensor.shape
    if tensor.stride(1) < tensor.stride(2):
        return tensor.new_empty((batch, length, heads, dim)).transpose(1, 2)
    return tensor.new_empty((batch, heads, length, dim))
