"""Plans of the Hopper kernels are told apart by all that is in them: by plans that keep what they were made for."""

from typing import Any

import pytest
import torch

import cmir
from cmir.runtime import hopper, hopper_backward


class Plan:
    """Keeps the mask strides and alignment that it was made for."""

    def __init__(self, q: Any, *rest: Any) -> None:
        (desc,) = (x for x in rest if isinstance(x, cmir.Descriptor))
        self.made_for = desc.mask_strides, q.data_ptr() % 16

    def launch(self, *_: Any) -> Any:
        return self.made_for


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper, "ForwardPlan", Plan)
    monkeypatch.setattr(hopper_backward, "BackwardPlan", Plan)
    monkeypatch.setattr(hopper, "_plans", {})
    monkeypatch.setattr(hopper_backward, "_plans", {})


def launched(q: torch.Tensor, desc: Any) -> list[Any]:
    """What the plans of both passes were made for."""
    lse = torch.zeros(q.shape[:3])
    return [
        hopper.launch_forward(q, q, q, desc, 1.0),
        hopper_backward.launch_backward(q, q, q, q, lse, q, None, desc, 1.0),
    ]


def test_a_mask_a_sequence_and_a_mask_a_head() -> None:
    """As many masks, of the same lengths: descriptors of one layout, whose masks are of sequences or of heads."""
    spec = cmir.MaskSpec("short")
    n = spec.scalar("n")
    spec.region("all", 0, spec.rows, visible=spec.j < n)
    mask, lengths = cmir.compile(spec), torch.arange(4, dtype=torch.int32)
    q = torch.zeros(4, 4, 16, 64, dtype=torch.bfloat16)
    of_sequences = mask.describe(rows=16, n=lengths, tile=(16, 16))
    of_heads = mask.describe(rows=16, n=lengths[None], tile=(16, 16))
    assert of_sequences.layout is of_heads.layout
    for desc in (of_sequences, of_heads, of_sequences):
        assert launched(q, desc) == [(desc.mask_strides, 0)] * 2
    assert of_sequences.mask_strides != of_heads.mask_strides


def test_views_at_another_address() -> None:
    mask = cmir.zoo.load("causal")
    desc = mask.describe(rows=16, tile=(16, 16))
    room = torch.zeros(1, 4, 16, 96, dtype=torch.bfloat16)
    for first in (0, 1, 8, 3):
        q = room[..., first : first + 64]
        assert launched(q, desc) == [(desc.mask_strides, q.data_ptr() % 16)] * 2


def test_what_autograd_saved_is_copied_to_an_address_that_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of saved tensors may give them back as views into a buffer of their own."""
    given: list[Any] = []
    monkeypatch.setattr(Plan, "launch", lambda _, *arguments: given.append(arguments))
    desc = cmir.zoo.load("causal").describe(rows=16, tile=(16, 16))
    q = torch.zeros(1, 4, 16, 64, dtype=torch.bfloat16)
    out = torch.arange(q.numel() + 1).to(q.dtype)[1:].view(q.shape)
    lse = torch.arange(65.0)[1:].view(1, 4, 16)
    assert out.data_ptr() % 16 and lse.data_ptr() % 16
    hopper_backward.launch_backward(q, q, q, out, lse, q, None, desc, 1.0)
    ((*_, got_out, got_lse, _, _, _, _),) = given
    assert got_out.data_ptr() % 16 == got_lse.data_ptr() % 16 == 0
    assert torch.equal(got_out, out) and torch.equal(got_lse, lse)
