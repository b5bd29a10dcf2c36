"""Training a diffusion transformer with CLEAR attention, its image stored patch by patch.

Text sees everything and is seen by everything; a token of the image sees those within a circle. All layers run in the
order of patches: tokens are moved once at the input and once at the output. The small run first compares with the order
of the raster, loss and gradients; the full one trains beside FlexAttention, by patches and by raster.

    python examples/clear_attention.py
    python examples/clear_attention.py --size full --json clear.json
"""

import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

from training.layers import Attend, Stack
from training.race import (
    Prepare,
    Task,
    assert_same_gradients,
    assert_same_pairs,
    flex_backends,
    options,
    race,
    say,
    shape_of,
    with_flex,
)

import cmir
from cmir import layouts, zoo

CHANNELS = 16
"""Of a token of the image."""


@dataclass
class Images:
    """One image in the order of the raster: clean and noisy, and the words of its text."""

    words: torch.Tensor
    clean: torch.Tensor
    noise: torch.Tensor
    time: torch.Tensor


@dataclass
class Ordered:
    """Attention of tokens in an order: the token at every place."""

    attend: Attend
    tokens: torch.Tensor

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.attend(q, k, v)


class Denoiser(nn.Module):
    """The velocity that takes noise to the image."""

    def __init__(self, vocabulary: int, stack: Stack, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.image = nn.Linear(CHANNELS + 1, hidden)
        self.stack = stack
        self.velocity = nn.Linear(hidden, CHANNELS)

    def forward(self, words: torch.Tensor, image: torch.Tensor, attend: Ordered) -> torch.Tensor:
        x = torch.cat([self.words(words), self.image(image)])
        places = attend.tokens.long()
        x = self.stack(x[places][None], places, attend)[0]
        return self.velocity(torch.zeros_like(x).index_copy(0, places, x)[len(words) :])


def main() -> None:
    chosen = options(__doc__)
    text, height, width, radius, patch = (512, 128, 256, 16, (8, 16)) if chosen.full else (6, 8, 8, 3, (4, 4))
    vocabulary, tokens, device = 256, text + height * width, chosen.device
    torch.manual_seed(0)
    shape = shape_of(chosen)
    with torch.device(device):
        model = Denoiser(vocabulary, Stack(shape, chosen.layers, chosen.recompute), shape.hidden).to(chosen.dtype)
    statics = {"text": text, "height": height, "width": width, "radius": radius}
    say("compiling the mask by patches")
    by_patch = layouts.Patch(grid=("height", "width"), size=patch, after="text")
    mask = cmir.compile(zoo.path("clear"), statics=statics, layout=by_patch)
    # The image does not change its size: one descriptor for all steps.
    desc = mask.describe(rows=tokens, device=device)
    patches, raster = desc.permutation[0], torch.arange(tokens, device=device)
    assert patches is not None

    def batch_of(number: int) -> Images:
        generator = torch.Generator(device).manual_seed(number)
        words = torch.randint(vocabulary, (text,), generator=generator, device=device)
        clean = torch.sin(words.sum() + torch.arange(height * width, device=device)[:, None] / width)
        noise = torch.randn(height * width, CHANNELS, generator=generator, device=device)
        time = torch.rand((), generator=generator, device=device)
        return Images(words, clean.expand_as(noise).to(chosen.dtype), noise.to(chosen.dtype), time.to(chosen.dtype))

    def loss(batch: Images, attend: Ordered) -> torch.Tensor:
        noisy = torch.lerp(batch.noise, batch.clean, batch.time)
        image = torch.cat([noisy, batch.time.expand(len(noisy), 1)], -1)
        return F.mse_loss(model(batch.words, image, attend).float(), (batch.clean - batch.noise).float())

    def mask_of(order: torch.Tensor):
        """The rule for FlexAttention, of tokens in an order. Which place a token has, its kernels look up."""
        pixel = (order - text).clamp(min=0)
        y, x = (pixel // width).int(), (pixel % width).int()

        def mask_mod(b, h, q, k):  # the text stands first in both orders
            dy, dx = y[q] - y[k], x[q] - x[k]
            return (q < text) | (k < text) | (dy * dy + dx * dx < radius * radius)

        return mask_mod

    if not chosen.full:
        assert_same_pairs(mask_of(patches), desc.check())
        batch = batch_of(0)
        visible = mask_of(raster)(0, 0, raster[:, None], raster[None, :])

        def dense(q, k, v):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)

        ours = Ordered(lambda q, k, v: cmir.attention(q, k, v, desc), patches)
        assert_same_gradients(model, loss(batch, ours), loss(batch, Ordered(dense, raster)))
        print("patches are equal to the raster, loss and gradients")

    engines: dict[str, Prepare] = {
        "cmir-patches": lambda _: Ordered(lambda q, k, v: cmir.attention(q, k, v, desc), patches)
    }
    for name, backend in flex_backends().items() if chosen.full else ():
        for order, place in (("patches", patches), ("raster", raster)):
            engines[f"{name}-{order}"] = once(with_flex(mask_of(place), {}, tokens, device, backend), place)
    say(f"{sum(p.numel() for p in model.parameters()):,} weights")
    race(Task("clear", tokens, model, batch_of, loss, engines), chosen)


def once(prepare: Prepare, order: torch.Tensor) -> Prepare:
    """`prepare` at the first step, for all of them."""
    kept: list[Ordered] = []

    def prepared(batch: Images) -> Ordered:
        if not kept:
            kept.append(Ordered(prepare(batch), order))
        return kept[0]

    return prepared


if __name__ == "__main__":
    main()
