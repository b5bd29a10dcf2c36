# pyright: basic
"""What is of the Hopper kernels alone; most tests beside this one run them as one backend of two."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import DEVICE, TOLERANCE, attend_with, check_attention, error, make_tensors, missing_backend

import cmir
from cmir import zoo
from cmir.runtime.hopper_dims import QK_WIDTHS, V_WIDTHS
from cmir.runtime.reference import reference_attention

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "zoo"))

from draws import draws  # pyright: ignore[reportMissingImports]

pytestmark = pytest.mark.skipif(missing_backend("gluon") is not None, reason=f"gluon: {missing_backend('gluon')}")
gluon = attend_with("gluon")
BF16, FP16 = torch.bfloat16, torch.float16


def described(mask: Any, metadata: dict[str, Any]) -> Any:
    tensors = {k: torch.as_tensor(v, device=DEVICE) if isinstance(v, np.ndarray) else v for k, v in metadata.items()}
    return mask.describe(**tensors, **({} if any(map(torch.is_tensor, tensors.values())) else {"device": DEVICE}))


@pytest.mark.parametrize(("number", "name"), enumerate(zoo.NAMES), ids=zoo.NAMES)
def test_every_mask_of_the_zoo(number: int, name: str) -> None:
    mask = zoo.load(name)
    dim, dtype = ((128, BF16), (64, FP16), (64, BF16), (128, FP16))[number % 4]
    groups = [(4, 1), (4, 2), (2, 2), (1, 1)]
    for metadata, heads in zip(draws(mask, len(groups), 400), groups, strict=True):
        visible = mask.dense(**metadata)[None, None]
        rows, cols = visible.shape[2:]
        if rows and cols:
            tensors = make_tensors(1, heads, rows, cols, dim, dtype)
            check_attention(gluon, described(mask, metadata).check(), visible, tensors, with_lse=True)


@pytest.mark.parametrize("dim", [64, 96, 128, 256])
@pytest.mark.parametrize("heads", [(8, 1), (8, 8), (6, 2)])
def test_any_number_of_programs_may_share_a_group(heads: tuple[int, int], dim: int) -> None:
    from cmir.runtime.hopper_backward import BackwardPlan

    mask, n, scale = zoo.load("causal"), 333, 0.1
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k, v, dout, dlse = make_tensors(2, heads, n, n, dim, BF16)
    out, lse = gluon(q, k, v, desc, scale=scale, return_lse=True)
    exact = [x.float().requires_grad_() for x in (q, k, v)]
    want_out, want_lse = reference_attention(exact[0], exact[1], exact[2], desc.to_dense(), scale)
    want = torch.autograd.grad((want_out * dout).sum() + (want_lse * dlse).sum(), exact)
    group = heads[0] // heads[1]
    for splits in (s for s in range(1, group + 1) if group % s == 0):
        plan = BackwardPlan(q, k, v, out, dout, True, desc, splits)
        for _ in range(2):  # compiled, then launched
            got = plan.launch(q, k, v, out, lse, dout, dlse, desc, scale)
            assert all(error(a, b) < TOLERANCE for a, b in zip(got, want, strict=True)), splits


@pytest.mark.parametrize(
    ("name", "dim"), [("global_window_causal", 128), ("strided", 64), ("causal", 64), ("causal", 256)]
)
def test_it_never_races(name: str, dim: int) -> None:
    """200 runs: the same bits of everything but dq, which is summed in the order in which its parts come."""
    mask, n = zoo.load(name), 700
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(4, (8, 8), n, n, dim, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]
    first: tuple[torch.Tensor, ...] = ()
    wrong = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    for _ in range(200):
        out, lse = gluon(*inputs, desc, return_lse=True)
        dq, dk, dv = torch.autograd.grad(out, inputs, tensors[3])
        found = (out.detach(), lse.detach(), dk, dv, dq)
        first = first or found
        wrong[0] += sum((a != b).any() for a, b in zip(found[:4], first, strict=False))
        wrong[1] += (dq.float() - first[4].float()).norm() > 1e-3 * first[4].float().norm()
    assert wrong.tolist() == [0, 0]


def test_deterministic_gradients_are_the_same_bits() -> None:
    mask, n = zoo.load("causal"), 1000
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(2, (8, 2), n, n, 128, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]

    def runs(**options: Any) -> Iterator[tuple[torch.Tensor, ...]]:
        for _ in range(10):
            yield torch.autograd.grad(gluon(*inputs, desc, **options), inputs, tensors[3])

    first, *rest = runs(deterministic=True)
    assert all(torch.equal(a, b) for found in rest for a, b in zip(first, found, strict=True))
    torch.use_deterministic_algorithms(True)
    try:
        asked = [*runs()]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(a, b) for found in asked for a, b in zip(first, found, strict=True))
    assert all(error(a, b) < TOLERANCE for found in runs() for a, b in zip(found, first, strict=True))


def test_a_graph_replays_the_backward_pass() -> None:
    mask, n = zoo.load("causal"), 500
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(2, (8, 2), n, n, 128, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]

    def run() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(gluon(*inputs, desc), inputs, tensors[3])

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    for _ in range(3):
        with torch.no_grad():
            for x in inputs:
                x.copy_(torch.randn_like(x))
            for x in results:
                x.fill_(math.nan)
        graph.replay()
        assert all(error(a, b) < TOLERANCE for a, b in zip(results, run(), strict=True))


@pytest.mark.parametrize("wide", ["qkv", "q", "v"])
def test_views_at_any_address(wide: str) -> None:
    """TMA takes addresses of multiples of 16 bytes. A view elsewhere is copied, and has other strides then: a call with
    the aligned view beside it, of the same shape and strides, comes before and after."""
    mask, n = zoo.load("causal"), 300
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(1, (4, 2), n, n, 64, BF16)
    room = {name: x.new_empty((*x.shape[:3], 256)) for name, x in zip("qkvo", tensors, strict=False)}
    for first in (8, 1, 8, 3, 0):
        views = []
        for (name, memory), x in zip(room.items(), tensors, strict=False):
            at = first if name in wide or name == "o" else 16
            views.append(memory[..., at : at + 64])
            views[-1].copy_(x)
        check_attention(gluon, desc, mask.dense(rows=n, cols=n)[None, None], (*views, tensors[4]), with_lse=True)
    # The gradient of out as such a view, too, which autograd gives on as it is.
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]
    out = gluon(*inputs, desc)
    want = torch.autograd.grad(out, inputs, tensors[3], retain_graph=True)
    for first in (8, 1, 8):
        view = room["o"][..., first : first + 64].copy_(tensors[3])
        got = torch.autograd.grad(out, inputs, view, retain_graph=True)
        assert all(error(a, b) < TOLERANCE for a, b in zip(got, want, strict=True)), first


def test_a_mask_a_sequence_and_a_mask_a_head() -> None:
    """As many masks, in one process: descriptors of one layout."""
    spec = cmir.MaskSpec("short")
    n = spec.scalar("n")
    spec.region("all", 0, spec.rows, visible=spec.j < n)
    mask, lengths = cmir.compile(spec), torch.tensor([1, 100, 200, 300], dtype=torch.int32, device=DEVICE)
    tensors = make_tensors(4, (4, 4), 300, 300, 64, BF16)
    visible = torch.arange(300, device=DEVICE)[None, :] < lengths[:, None, None].expand(4, 300, 1)
    for given, shown in ((lengths, visible[:, None]), (lengths[None], visible[None]), (lengths, visible[:, None])):
        check_attention(gluon, mask.describe(rows=300, n=given).check(), shown, tensors)


def test_launches_are_direct_and_a_profiler_sees_them_all_the_same() -> None:
    from triton import knobs

    from cmir.runtime import hopper, hopper_backward, launch

    mask, n = zoo.load("causal"), 300
    hopper._plans.clear()
    hopper_backward._plans.clear()
    launch._ready.clear()
    tensors = make_tensors(1, (4, 2), n, n, 64, BF16)
    inputs = [x.detach().requires_grad_() for x in tensors[:3]]

    def run() -> tuple[torch.Tensor, ...]:
        desc = mask.describe(rows=n, device=DEVICE)
        out = gluon(*inputs, desc)
        return (out, *torch.autograd.grad(out, inputs, tensors[3]))

    first = run()  # Triton's launches
    (forward,), (backward,) = hopper._plans.values(), hopper_backward._plans.values()
    launchers = [forward.forward, backward.begin, backward.steps, backward.end]
    assert all(launcher._direct is not None for launcher in launchers)
    assert all(ready._direct is not None for ready in launch._ready.values())
    seen: list[str] = []
    hooks = knobs.runtime.launch_enter_hook
    hook = lambda metadata: seen.append(metadata.get()["name"])  # noqa: E731
    for watched in (False, True, False):
        if watched:
            hooks.add(hook)
        try:
            found = run()
        finally:
            hooks.remove(hook)
        assert all(error(a, b) < TOLERANCE for a, b in zip(found, first, strict=True))
    assert seen == ["preprocess", "forward", "backward_begin", "backward", "backward_end"]


def test_many_heads() -> None:
    """More of them than a grid's second dimension holds."""
    mask, n = zoo.load("causal"), 3
    desc = mask.describe(rows=n, device=DEVICE).check()
    tensors = make_tensors(70000, (1, 1), n, n, 64, BF16)
    check_attention(gluon, desc, mask.dense(rows=n, cols=n)[None, None], tensors)


@pytest.mark.parametrize("dtype", [BF16, FP16])
@pytest.mark.parametrize(("dim", "value_dim"), [(64, 64), (128, 128), (192, 128), (256, 256)])
@pytest.mark.parametrize("form", ["grow", "fall", "jump"])
def test_maxima_that_move(form: str, dim: int, value_dim: int, dtype: torch.dtype) -> None:
    """The weights of a row are relative to its maximum of some time, which follows only where it lags far behind."""
    mask, n = zoo.load("causal"), 1500
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k, v, *_ = make_tensors(2, (16, 4), n, n, dim, dtype, value_dim)
    place = torch.arange(n, device=DEVICE) / n
    factor = {"grow": 20 * place, "fall": 20 - 20 * place, "jump": torch.where(place % 0.25 < 0.02, 30, 1)}[form]
    k = (k.detach() * factor[:, None]).to(dtype)
    check_forward(desc, q, k, v)


def check_forward(desc: cmir.Descriptor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    with torch.no_grad():
        out, lse = gluon(q, k, v, desc, return_lse=True)
        want, want_lse = reference_attention(q, k, v, desc.to_dense())
    assert error(out, want) < TOLERANCE
    torch.testing.assert_close(lse, want_lse, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [BF16, FP16])
@pytest.mark.parametrize("rise", [0.5, -0.5, 0.05, -0.05])
@pytest.mark.parametrize("odd", [0, 1])
def test_scores_that_rise_from_tile_to_tile(rise: float, odd: int, dtype: torch.dtype) -> None:
    """By 64 or 6 a tile, so that weights are too large in every step or in one of two; in every other row, of which the
    neighbours in a warp stay as they are, to the bit. First all is visible, then half."""
    spec, n = cmir.MaskSpec("ends"), 1500
    spec.region("all", 0, spec.rows, visible=(spec.j < spec.scalar("left")) | (spec.scalar("right") <= spec.j))
    mask = cmir.compile(spec)
    q, k, v, *_ = make_tensors(1, (4, 2), n, n, 128, dtype)
    place = torch.arange(n, device=DEVICE)
    q, k = q.detach(), k.detach()
    q[..., 0], k[..., 0] = 16 * (place % 2 == odd), rise * place / 16 * 128**0.5
    for left, right in ((0, 0), (100, 900)):
        desc = mask.describe(rows=n, left=left, right=right, device=DEVICE).check()
        check_forward(desc, q, k, v)
        with torch.no_grad():  # what the rows beside them do changes no bit
            alone = gluon(q.masked_fill(place[:, None] % 2 == odd, 0), k, v, desc, return_lse=True)
            for ours, theirs in zip(gluon(q, k, v, desc, return_lse=True), alone, strict=True):
                assert torch.equal(ours[:, :, 1 - odd :: 2], theirs[:, :, 1 - odd :: 2])


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_one_key_that_outweighs_all_is_exact(dtype: torch.dtype) -> None:
    """Far down the list, as an attention sink is: its weight is 1 once the peak has followed, and out is its v."""
    mask, n = zoo.load("causal"), 700
    q, k, v, *_ = make_tensors(1, (2, 1), n, n, 128, dtype)
    q, k = q.detach(), k.detach()
    q[..., 0] = 8
    k[..., 0] = torch.where(torch.arange(n, device=DEVICE) == 0, 80, 0)  # 56 above the others
    with torch.no_grad():
        out = gluon(q, k, v, mask.describe(rows=n, device=DEVICE).check())
    assert torch.equal(out[0], v[0, :, :1].expand(2, n, 128))


@pytest.mark.parametrize("value_width", V_WIDTHS)
@pytest.mark.parametrize("width", QK_WIDTHS)
def test_head_dims(width: int, value_width: int) -> None:
    """Each entry of the table of head dims: with the widths themselves by intervals, or less of them by packed bits."""
    name, less, dtype = (("causal", 0, BF16), ("strided", 16, FP16))[(width // 32 + value_width // 64) % 2]
    mask = zoo.load(name)
    for n in (1, 300, 700):
        desc = mask.describe(rows=n, device=DEVICE).check()
        visible = mask.dense(rows=n, cols=n)[None, None]
        tensors = make_tensors(2, (4, 2), n, n, width - less, dtype, value_width - less)
        check_attention(gluon, desc, visible, tensors, with_lse=True)


def test_what_it_does_not_take_is_said_or_left_to_the_portable_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    mask, n = zoo.load("causal"), 100
    for dim, dtype, tile in ((32, BF16, (128, 128)), (64, torch.float32, (128, 128)), (64, BF16, (64, 64))):
        desc = mask.describe(rows=n, device=DEVICE, tile=tile).check()
        q = torch.randn(1, 2, n, dim, device=DEVICE, dtype=dtype)
        assert cmir.attention(q, q, q, desc).isfinite().all()
        monkeypatch.setenv("CMIR_BACKEND", "gluon")
        with pytest.raises(cmir.CmirError, match="gluon"):
            cmir.attention(q, q, q, desc)
        monkeypatch.delenv("CMIR_BACKEND")
        with pytest.raises(cmir.CmirError, match="gluon"):
            cmir.attention(q, q, q, desc, backend="gluon")


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_long_sequence(dtype: torch.dtype) -> None:
    """Beside the portable kernels: the persistent forward kernel and many tiles a program."""
    mask, n = zoo.load("causal"), 4321
    desc = mask.describe(rows=n, device=DEVICE).check()
    q, k, v, dout, _ = make_tensors(1, (8, 2), n, n, 128, dtype)
    results = []
    for backend in ("gluon", "triton"):
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        out, lse = attend_with(backend)(*inputs, desc, return_lse=True)
        results.append((out.detach(), *torch.autograd.grad(out, inputs, dout), lse.detach()))
    assert all(error(a, b) < TOLERANCE for a, b in zip(*results, strict=True))
    assert all(math.isfinite(x.float().norm().item()) for x in results[0])
