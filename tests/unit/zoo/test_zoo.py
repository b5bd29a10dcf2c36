"""Every mask of the zoo: its slot counts, its intervals against the rule, and attention against an eager reference."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from draws import check_intervals, check_lists, check_schedules, draws, states_of
from expected import COUNTS, IDS, SMALL

import cmir
from cmir import zoo
from cmir.interp.masks import paint
from cmir.interp.preprocess import TileLists
from cmir.runtime.reference import reference_attention

# One of each class of mask, for the kernels.
SAMPLE = [
    *(
        "causal",
        "window_flash",
        "sinks_window",
        "packed_cross",
        "shared_prompt",
        "causal_blockwise",
        "hstu",
        "hstu_meta",
    ),
    *("block_diffusion", "gemma3", "flamingo_any_order", "clear", "natten_2d", "vertical_slash", "random_eviction"),
    *("tree_any_order", "strided"),
]
KERNELS = [(name, statics) for name, statics in SMALL if name in SAMPLE]


def test_every_mask_has_the_slots_of_the_table() -> None:
    assert {name: tuple(zoo.load(name).slots.values()) for name in zoo.NAMES} == COUNTS


@pytest.mark.parametrize(("half", "dilation"), [(8, 3), (7, 7), (6, 7), (0, 1), (5, 1)])
def test_dilated_windows_need_the_keys_that_they_see(half: int, dilation: int) -> None:
    want = 1 if dilation == 1 else 2 * (half // dilation) + 1
    assert zoo.load("dilated_window", half=half, dilation=dilation).slots == {"rows": want, "cols": want}


@pytest.mark.parametrize(("half", "height"), [(1, 7), (1, 5), (1, 3), (2, 10), (2, 9), (2, 6), (4, 24), (0, 3)])
def test_neighbourhoods_need_k_by_row_and_3h_plus_1_by_column(half: int, height: int) -> None:
    cols = height if height <= 4 * half + 1 else 3 * half + 1
    slots = zoo.load("natten_2d", half=half, height=height, width=2 * half + 3).slots
    assert slots == {"rows": 2 * half + 1, "cols": cols}


@pytest.mark.parametrize(("radius", "height"), [(2, 9), (3, 3), (4, 5), (6, 4), (8, 32)])
def test_clear_needs_min_2r_minus_1_and_height_plus_1(radius: int, height: int) -> None:
    want = min(2 * radius - 1, height) + 1
    assert zoo.load("clear", radius=radius, height=height, width=9, text=5).slots == {"rows": want, "cols": want}


def test_hstu_meta_counts_follow_its_statics() -> None:
    assert zoo.load("hstu_meta", window=0).slots == {"rows": 2, "cols": 2}
    assert zoo.load("hstu_meta", window=0, context=0).slots == {"rows": 2, "cols": 1}


@pytest.mark.parametrize(("name", "statics"), SMALL, ids=IDS)
def test_intervals_and_schedules_of_both_axes_are_the_rule(name: str, statics: dict[str, int]) -> None:
    mask = zoo.load(name, **statics)
    for metadata in draws(mask, 200):
        check_intervals(mask, metadata)
        check_schedules(mask, metadata)


@pytest.mark.parametrize(("name", "statics"), KERNELS)
def test_descriptor_and_attention_are_the_rule(name: str, statics: dict[str, int]) -> None:
    mask = zoo.load(name, **statics)
    for seed, metadata in enumerate(draws(mask, 2, size=36, seed=2)):
        dense = mask.dense(**metadata)
        tensors: dict[str, Any] = {
            k: torch.as_tensor(v) if isinstance(v, np.ndarray) else v for k, v in metadata.items()
        }
        desc = mask.describe(**tensors, tile=(16, 16)).check()
        assert desc.area.tolist() == [int(dense.sum())]
        for axis, table in (("rows", desc.row_table), ("cols", desc.col_table)):
            if table is None:
                assert mask.slots[axis] is None
                continue
            n = dense.shape[1] if axis == "rows" else dense.shape[0]
            painted = paint(table[0].numpy(), n)
            np.testing.assert_array_equal(painted if axis == "rows" else painted.T, dense)
        states = states_of(dense, desc.tile)
        for axis, lines in (("row", states), ("col", states.T)):
            check_lists(TileLists(*(desc.view(f"{axis}_{f}")[0].numpy() for f in ("count", "index", "order"))), lines)
        if 0 not in dense.shape:
            check_attention(desc, dense, seed)


def check_attention(desc: cmir.Descriptor, dense: np.ndarray, seed: int) -> None:
    """Output, log-sum-exp and gradients in fp32, two query heads a key head."""
    generator = torch.Generator().manual_seed(seed)
    rows, cols = dense.shape
    shapes = [(1, 4, rows, 16), (1, 2, cols, 16), (1, 2, cols, 32)]
    q, k, v = (torch.randn(s, generator=generator).requires_grad_() for s in shapes)
    out, lse = cmir.attention(q, k, v, desc, return_lse=True)
    q64, k64, v64 = doubles = [t.detach().double().requires_grad_() for t in (q, k, v)]
    want, want_lse = reference_attention(q64, k64, v64, torch.from_numpy(dense.copy()), q.shape[-1] ** -0.5)
    gradient = torch.randn(out.shape, generator=generator)
    got = (out, *torch.autograd.grad(out, (q, k, v), gradient))
    expected = (want, *torch.autograd.grad(want, doubles, gradient.double()))
    torch.testing.assert_close(lse.double(), want_lse.double(), rtol=1e-5, atol=1e-5)
    scale = max(float(t.detach().norm()) for t in expected)
    for a, b in zip(got, expected, strict=True):
        size = float(b.detach().norm())
        # Where every row sees one column at most, dq and dk are exactly zero: rounding noise has no size of its own.
        allowed = 1e-5 * size if size > 1e-9 * scale else 1e-6 * scale
        assert float((a - b).detach().norm()) <= allowed


def test_a_cache_is_its_keys_aligned_with_the_last_row() -> None:
    """As FlashAttention cuts a cache: what is left of it is causal, bottom-right aligned, and nothing else is seen."""
    cache, causal = zoo.load("kv_cache"), zoo.load("causal_bottom_right")
    for rows, first, length, cols in [(1, 0, 7, 12), (4, 0, 12, 12), (4, 3, 9, 12), (5, 6, 9, 12), (3, 4, 4, 8)]:
        got = cache.dense(rows=rows, cols=cols, first_key=first, length=length)
        want = np.zeros((rows, cols), dtype=bool)
        want[:, first:length] = causal.dense(rows=rows, cols=length - first)
        np.testing.assert_array_equal(got, want)
    lengths = torch.tensor([3, 9, 12], dtype=torch.int32)
    desc = cache.describe(rows=2, cols=12, first_key=torch.tensor([0, 4, 0], dtype=torch.int32), length=lengths)
    assert desc.check().area.tolist() == [3 + 2, 5 + 4, 12 + 11]


def test_trees_as_decoders_draft_them() -> None:
    """Drawn metadata are hardly ever trees: here are some, in depth-first order, against their ancestors."""
    mask, plain = zoo.load("tree_dfs"), zoo.load("tree_any_order")
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows, context = int(rng.integers(1, 25)), int(rng.integers(1, 9))
        path, paths = list[int](), list[list[int]]()
        for i in range(rows):
            path = [*path[: int(rng.integers(0, min(len(path), 3) + 1))], i]
            paths.append(path)
        ancestor = np.array([[context + (p[t] if t < len(p) else i) for t in range(4)] for i, p in enumerate(paths)])
        depth = np.array([-1] * context + [len(p) - 1 for p in paths])
        metadata: dict[str, Any] = {"rows": rows, "cols": context + rows, "context": context, "ancestor": ancestor}
        want = np.zeros((rows, context + rows), dtype=bool)
        want[:, :context] = True
        for i, p in enumerate(paths):
            want[i, [context + k for k in p]] = True
        np.testing.assert_array_equal(mask.dense(**metadata, depth=depth), want)
        np.testing.assert_array_equal(plain.dense(**metadata), want)
        check_intervals(mask, {**metadata, "depth": depth})
        check_intervals(plain, metadata)


def test_command_line() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "cmir.zoo", "--json"], capture_output=True, text=True, check=True
    ).stdout
    listed = {m["name"]: (m["slots"]["rows"], m["slots"]["cols"]) for m in json.loads(out)}
    assert listed == COUNTS


def test_every_file_says_who_uses_it() -> None:
    for name in zoo.NAMES:
        assert len(zoo.summary(name)) > 20


def test_unknown_names() -> None:
    with pytest.raises(
        cmir.CmirError,
        match=r"no mask 'hst' in the zoo; did you mean 'hstu'\? it has causal, causal_bottom_right, full, key",
    ):
        zoo.load("hst")
    with pytest.raises(cmir.SpecError, match=r"@clear has no static 'r'; it has height, radius, text, width"):
        zoo.load("clear", r=3)
