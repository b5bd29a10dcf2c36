"""What is measured: cmir, and its peers where this machine has them.

cmir-gluon    cmir's kernels for Hopper
cmir-triton   cmir's portable kernels
flex-triton   FlexAttention, its Triton kernels, torch.compile(dynamic=False)
flex-fa4      FlexAttention on FlashAttention-4's kernels (needs flash_attn.cute)
flex-raster, flex-fa4-raster
              the same on tokens in raster order, where cmir has them in another
cudnn         scaled_dot_product_attention on cuDNN: causal and full only
fa4           FlashAttention-4 itself: causal and full only (needs flash_attn.cute)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.masks import Case


class Unavailable(Exception):
    """This machine does not have the peer, or the peer does not have the mask."""


Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""q, k and v."""


@dataclass(frozen=True)
class Contender:
    """One way to compute the masked attention of given q, k, v and a gradient of the output."""

    name: str
    attend: Callable[[Inputs, Any], torch.Tensor]
    """From q, k and v and what `preprocess` returned (None without one) to the output."""
    inputs: Inputs
    dout: torch.Tensor
    preprocess: Callable[[], Any] | None = None
    rows_first: bool = False
    """Whether tensors are [B, L, H, D], not [B, H, L, D]."""
    order: torch.Tensor | None = None
    """Where tensors are in raster order: the token at each place of the mask's own order."""

    def described(self) -> Any:
        return self.preprocess() if self.preprocess else None

    def results(self, described: Any) -> tuple[torch.Tensor, ...]:
        """(out, dq, dk, dv), each [B, H, L, D]."""
        out = self.attend(self.inputs, described)
        found = (out, *torch.autograd.grad(out, self.inputs, self.dout))
        if self.order is not None:
            found = tuple(x[:, :, self.order] for x in found)
        return tuple(x.transpose(1, 2) for x in found) if self.rows_first else found

    def both(self, inputs: Inputs, described: Any) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(self.attend(inputs, described), inputs, self.dout)

    def captured(self, described: Any) -> tuple[torch.Tensor, ...]:
        """Forward and backward of new leaves: a CUDA graph cannot wait for the stream that others were made on."""
        return self.both(_leaves(self.inputs), described)

    def phases(self, described: Any) -> dict[str, Callable[[], Any]]:
        """The functions to time. The forward pass keeps what its backward pass needs, as in training."""
        out = self.attend(self.inputs, described)
        phases: dict[str, Callable[[], Any]] = {
            "forward": lambda: self.attend(self.inputs, described),
            "backward": lambda: torch.autograd.grad(out, self.inputs, self.dout, retain_graph=True),
            "forward+backward": lambda: self.both(self.inputs, described),
        }
        if self.preprocess:
            phases["preprocess"] = self.preprocess
        return phases


Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""q, k, v and the gradient of the output, [B, H, L, D]."""


def _leaves(tensors: Tensors | Inputs) -> Inputs:
    q, k, v = (x.detach().requires_grad_() for x in tensors[:3])
    return q, k, v


def ours(name: str, backend: str, case: Case, tensors: Tensors, device: str) -> Contender:
    import cmir

    inputs = _leaves(tensors)

    def attend(inputs: Inputs, desc: Any) -> torch.Tensor:
        return cmir.attention(*inputs, desc, backend=backend)

    return Contender(name, attend, inputs, tensors[3], lambda: case.describe(device))


def cmir_gluon(case: Case, tensors: Tensors, device: str) -> Contender:
    if device == "cpu" or torch.cuda.get_device_capability() != (9, 0):
        raise Unavailable("needs a Hopper GPU")
    return ours("cmir-gluon", "gluon", case, tensors, device)


def cmir_triton(case: Case, tensors: Tensors, device: str) -> Contender:
    return ours("cmir-triton", "triton", case, tensors, device)


def flex(name: str, case: Case, tensors: Tensors, device: str, options: Any = None, raster: bool = False) -> Contender:
    import torch._functorch.config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._functorch.config.donated_buffer = False  # a backward pass runs many times for one forward pass
    torch._dynamo.reset()
    attention = torch.compile(flex_attention, dynamic=False)
    # As PyTorch recommends; `_compile=True` is deprecated.
    build = torch.compile(create_block_mask, dynamic=False)
    order, mask_mod = (case.order, case.raster) if raster else (None, case.mask_mod)
    if mask_mod is None:
        raise Unavailable("only where tokens have an order of their own")
    if order is not None:
        places = torch.argsort(order)
        q, k, v, dout = (x[:, :, places] for x in tensors)
        tensors = (q, k, v, dout)
    inputs = _leaves(tensors)

    def preprocess() -> Any:
        return build(mask_mod, None, None, case.tokens, case.tokens, device=device)

    def attend(inputs: Inputs, block_mask: Any) -> torch.Tensor:
        out = attention(*inputs, block_mask=block_mask, enable_gqa=True, kernel_options=options)
        assert isinstance(out, torch.Tensor)
        return out

    return Contender(name, attend, inputs, tensors[3], preprocess, order=order)


def flex_triton(case: Case, tensors: Tensors, device: str) -> Contender:
    return flex("flex-triton", case, tensors, device)


def flex_fa4(case: Case, tensors: Tensors, device: str) -> Contender:
    _flash_attention_4()
    return flex("flex-fa4", case, tensors, device, {"BACKEND": "FLASH"})


def flex_raster(case: Case, tensors: Tensors, device: str) -> Contender:
    return flex("flex-raster", case, tensors, device, raster=True)


def flex_fa4_raster(case: Case, tensors: Tensors, device: str) -> Contender:
    _flash_attention_4()
    return flex("flex-fa4-raster", case, tensors, device, {"BACKEND": "FLASH"}, raster=True)


def cudnn(case: Case, tensors: Tensors, device: str) -> Contender:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if case.name not in ("causal", "full"):
        raise Unavailable("causal and full only")
    if device == "cpu":
        raise Unavailable("needs a GPU")
    inputs = _leaves(tensors)

    def attend(inputs: Inputs, _: Any) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                *inputs, is_causal=case.name == "causal", enable_gqa=True
            )

    return Contender("cudnn", attend, inputs, tensors[3])


def fa4(case: Case, tensors: Tensors, device: str) -> Contender:
    if case.name not in ("causal", "full"):
        raise Unavailable("causal and full only")
    flash_attn_func = _flash_attention_4()
    q, k, v, dout = (x.transpose(1, 2).contiguous() for x in tensors)
    inputs = _leaves((q, k, v, dout))

    def attend(inputs: Inputs, _: Any) -> torch.Tensor:
        out = flash_attn_func(*inputs, causal=case.name == "causal")
        return out[0] if isinstance(out, tuple) else out

    return Contender("fa4", attend, inputs, dout, rows_first=True)


def _flash_attention_4() -> Any:
    try:
        from flash_attn.cute import flash_attn_func  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise Unavailable(f"flash_attn.cute is not installed ({error})") from None
    return flash_attn_func


PEERS: dict[str, Callable[[Case, Tensors, str], Contender]] = {
    "cmir-gluon": cmir_gluon,
    "cmir-triton": cmir_triton,
    "flex-triton": flex_triton,
    "flex-fa4": flex_fa4,
    "flex-raster": flex_raster,
    "flex-fa4-raster": flex_fa4_raster,
    "cudnn": cudnn,
    "fa4": fa4,
}
