# pyright: basic
"""`attn_implementation="cmir"` for models of Hugging Face transformers.

    import cmir.integrations.transformers
    cmir.integrations.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="cmir")

A model makes its masks once per forward pass, from mask functions of `transformers.masking_utils`; here each becomes a
compiled mask and its descriptor, which all layers of that kind read. Masks are compiled when their structure is first
met: other lengths, position ids, padding or offsets are other metadata. What stays with `scaled_dot_product_attention`
(dropout, float64, head dims that the kernels do not take), and why, is said once, as a warning; a step of one token is
left to it without a word, since there is nothing to skip.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

from cmir.errors import CmirError, SpecError

try:
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import causal_mask_function, prepare_padding_mask, sdpa_mask
    from transformers.utils import logging
except ImportError as error:
    raise CmirError(
        "cmir.integrations.transformers needs torch and transformers 5.24 or newer: "
        f"pip install 'cmir[torch,transformers]' ({error})"
    ) from error

import cmir
from cmir.frontend.mask_mod import MaskModSpec, as_metadatum, from_mask_mod
from cmir.integrations.closures import Opaque, structure
from cmir.integrations.mask_functions import Rewritten, rewritten
from cmir.runtime.configs import HEAD_DIMS
from cmir.runtime.descriptor import Descriptor
from cmir.runtime.mask import CompiledMask

OLDEST = (5, 24)
"""The oldest release of transformers whose mask interface is the one used here."""

MAX_MASKS = 256
"""Compiled masks that are remembered by the structure of their function."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
"""What cmir's kernels compute in."""

logger = logging.get_logger(__name__)


def register(name: str = "cmir") -> None:
    """Makes `attn_implementation=name` known to transformers; calling it again changes nothing.

    Raises:
        CmirError: transformers is older than the mask interface that this was written for.
    """
    found = tuple(int(part) for part in version("transformers").split(".")[:2])
    if found < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise CmirError(f"transformers {version('transformers')} is too old; expected {wanted} or newer")
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, make_mask)


@torch.compiler.disable
def make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> Descriptor | torch.Tensor | None:
    """The mask of one forward pass; arguments as transformers gives them to every mask interface.

    Returns:
        The descriptor; or, for one token and where cmir says why in a warning, what sdpa takes.
    """
    why = None
    if not isinstance(q_offset, int):
        why = "a static cache keeps its length on the device"
    elif q_length > 1:
        try:
            return _describe(mask_function, (q_length, kv_length), (q_offset, kv_offset), attention_mask, device)
        except SpecError as error:
            why = error.message
    if why is not None:
        logger.warning_once(f"cmir leaves a mask to sdpa: {why}")
    return sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, device=device, **kwargs
    )


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Descriptor | torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """One layer's attention, [B, rows, Hq, Dv]: cmir's if `make_mask` returned a descriptor and the layer asks for what
    cmir has; else sdpa's, with a warning that says why.

    `s_aux` [Hq] are attention sinks: logits that take part in the softmax and have no value.

    Raises:
        CmirError: a softcap, which sdpa has not either.
    """
    if kwargs.get("output_attentions"):
        logger.warning_once("cmir returns no attention weights; for output_attentions take attn_implementation='eager'")
    if isinstance(attention_mask, Descriptor) and softcap is not None:
        raise CmirError(
            f"attn_implementation='cmir' has no softcap, which {type(module).__name__} asks for; change the model's "
            "config, or take another attn_implementation"
        )
    seen = None
    if isinstance(attention_mask, Descriptor):
        if (why := _not_ours(query, value, dropout, position_bias)) is not None:
            logger.warning_once(f"cmir leaves the attention of {type(module).__name__} to sdpa: {why}")
            attention_mask, seen = _dense(attention_mask)
    elif isinstance(attention_mask, torch.Tensor) and query.shape[2] > 1:
        logger.warning_once("cmir leaves a layer to sdpa, which was given a dense mask")
    if not isinstance(attention_mask, Descriptor):
        if s_aux is not None:
            key, value, attention_mask = _with_sinks(query, key, value, attention_mask, s_aux)
        out, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask,
            dropout=dropout, scaling=scaling, softcap=softcap, position_bias=position_bias, **kwargs,
        )  # fmt: skip
        return (out if seen is None else out * seen), None
    out, lse = cmir.attention(query, key, value, attention_mask, scale=scaling, return_lse=True)
    if s_aux is not None:
        out = out * torch.sigmoid(lse - s_aux.float()[:, None])[..., None].to(out.dtype)
    return out.transpose(1, 2).contiguous(), None


def _not_ours(
    query: torch.Tensor, value: torch.Tensor, dropout: float, position_bias: torch.Tensor | None
) -> str | None:
    """Why a layer is left to sdpa; None where it is not."""
    if dropout > 0:
        return f"cmir has no dropout, here {dropout}"
    if position_bias is not None:
        return "cmir has no position_bias"
    if query.dtype not in DTYPES:
        return f"cmir computes in float32, float16 or bfloat16, here it is {str(query.dtype).removeprefix('torch.')}"
    for dim in (query.shape[-1], value.shape[-1]):
        if dim not in HEAD_DIMS:
            return f"cmir takes head dims that are a multiple of 16 up to 256, here it is {dim}"
    return None


_dense_masks: WeakKeyDictionary[Descriptor, tuple[torch.Tensor, torch.Tensor | None]] = WeakKeyDictionary()


@torch.compiler.disable(recursive=True)
def _dense(desc: Descriptor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The mask for sdpa, made once for all layers, where a row that sees nothing sees all, so that it is no NaN; and
    which rows see something, [B or 1, rows, H or 1, 1], if some do not: the output of the others is 0."""
    if desc not in _dense_masks:
        mask = desc.to_sdpa()
        seen = mask.any(-1, keepdim=True)
        _dense_masks[desc] = (mask | ~seen, None if bool(seen.all()) else seen.transpose(1, 2))
    return _dense_masks[desc]


def _with_sinks(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, sinks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys, values and an additive mask with one column more for sdpa: a sink is a key of zeros with a bias."""
    if mask is None and query.shape[2] > 1:
        raise CmirError("attention sinks go without a descriptor for one token, or with a mask")
    bias = query.new_zeros((1, 1, query.shape[2], key.shape[2])) if mask is None else mask
    if bias.dtype == torch.bool:
        bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill(~bias, torch.finfo(query.dtype).min)
    shape = (query.shape[0], query.shape[1], query.shape[2])
    column = sinks.to(query.dtype)[None, :, None].expand(shape)[..., None]
    mask = torch.cat([bias.expand(*shape, key.shape[2]), column], -1)
    key, value = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
    return key, value, mask


_masks: dict[Hashable, tuple[CompiledMask, dict[str, tuple[int, bool]]]] = {}
"""By structure: the compiled mask, and which of the captured tensors is which metadatum, and whether one of heads."""


def _describe(
    function: Callable[..., Any],
    lengths: tuple[int, int],
    offsets: tuple[int, int],
    attention_mask: torch.Tensor | None,
    device: torch.device | str,
) -> Descriptor:
    padding = prepare_padding_mask(attention_mask, lengths[1], offsets[1])
    if padding is not None:
        padding = padding[:, offsets[1] : offsets[1] + lengths[1]].to(torch.bool)
        if bool(padding.all()):
            padding = None
    form = rewritten(function, offsets, padding, device)
    try:
        key, tensors = structure(form.function)
    except Opaque:
        key, tensors = None, []
    known = _masks.get(key) if key is not None else None
    if known is None:
        spec = _imported(form)
        mask = cmir.compile(spec)
        metadata: dict[str, Any] = spec.captured
        found = {id(tensor): at for at, tensor in enumerate(tensors)}
        sources = [(name, found.get(id(tensor))) for name, tensor in spec.sources.items()]
        places = {name: (at, name in spec.of_heads) for name, at in sources if at is not None}
        if key is not None and places.keys() == metadata.keys() and not spec.looked:
            if len(_masks) >= MAX_MASKS:
                _masks.pop(next(iter(_masks)))
            _masks[key] = mask, places
    else:
        mask, places = known
        metadata = {name: as_metadatum(tensors[at], of_heads=heads) for name, (at, heads) in places.items()}
    return mask.describe(rows=lengths[0], cols=lengths[1], device=device, **metadata)


def _imported(form: Rewritten) -> MaskModSpec:
    """The function as a spec, with what is known of its tensors."""
    spec = from_mask_mod(form.function, name="transformers_mask")
    names = {id(tensor): name for name, tensor in spec.sources.items()}
    for kind, tensors in form.facts:
        if not all(id(tensor) in names for tensor in tensors):
            continue
        terms: list[Any] = [spec.metadata[names[id(tensor)]] for tensor in tensors]
        if kind == "nondecreasing":
            spec.assume(terms[0].nondecreasing())
        elif kind == "around":
            first, end = (term[spec.i] for term in terms)
            spec.assume(first <= spec.i, spec.i <= end)
        else:
            spec.assume(terms[0] >= 0)
    return spec
