"""Every mask of the zoo: its slot counts, its intervals against the rule, and attention against an eager reference."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.interp.masks import paint
from cmir.runtime.reference import reference_attention

COUNTS = {"causal": (1, 1), "hstu": (2, 1), "hstu_meta": (2, 3), "shared_prompt": (2, 1), "clear": (32, 32)}

# Statics that make lengths small; clear's grid fixes its lengths.
SMALL: list[tuple[str, dict[str, int]]] = [
    ("causal", {}),
    ("hstu", {}),
    ("hstu_meta", {"context": 3, "window": 7, "full": 4}),
    ("hstu_meta", {"context": 0, "window": 5, "full": 0}),
    ("hstu_meta", {"context": 2, "window": 0, "full": 3}),
    ("shared_prompt", {}),
    ("clear", {"radius": 3, "height": 5, "width": 7, "text": 4}),
    ("clear", {"radius": 5, "height": 3, "width": 8, "text": 0}),
]
IDS = [name + "".join(f"-{v}" for v in statics.values()) for name, statics in SMALL]


def draws(mask: cmir.CompiledMask, count: int, size: int = 40, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Metadata that satisfy the facts of a mask, as keyword arguments."""
    rng = np.random.default_rng(seed)
    while count:
        env = draw(mask.facts, rng, size)
        if env is not None:
            count -= 1
            yield {k: v.values if isinstance(v, TableValue) else int(v) for k, v in env.items()}


@pytest.mark.parametrize("name", zoo.NAMES)
def test_slot_counts(name: str) -> None:
    assert tuple(zoo.load(name).slots.values()) == COUNTS[name]


@pytest.mark.parametrize(("radius", "height"), [(2, 9), (3, 3), (4, 5), (6, 4), (8, 32)])
def test_clear_needs_min_2r_minus_1_and_height_plus_1(radius: int, height: int) -> None:
    want = min(2 * radius - 1, height) + 1
    assert zoo.load("clear", radius=radius, height=height, width=9, text=5).slots == {"rows": want, "cols": want}


def test_hstu_meta_counts_follow_its_statics() -> None:
    assert zoo.load("hstu_meta", window=0).slots == {"rows": 2, "cols": 2}
    assert zoo.load("hstu_meta", window=0, context=0).slots == {"rows": 2, "cols": 1}


@pytest.mark.parametrize(("name", "statics"), SMALL, ids=IDS)
def test_intervals_of_both_axes_are_the_rule(name: str, statics: dict[str, int]) -> None:
    mask = zoo.load(name, **statics)
    for metadata in draws(mask, 200):
        dense = mask.dense(**metadata)
        rows, cols = mask.intervals("rows", **metadata), mask.intervals("cols", **metadata)
        np.testing.assert_array_equal(paint(rows, dense.shape[1]), dense)
        np.testing.assert_array_equal(paint(cols, dense.shape[0]).T, dense)
        for table in (rows, cols):  # disjoint: the lengths add up to the area
            assert int((table[:, 1] - table[:, 0]).sum()) == int(dense.sum())


@pytest.mark.parametrize(("name", "statics"), SMALL, ids=IDS)
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
            assert table is not None
            n = dense.shape[1] if axis == "rows" else dense.shape[0]
            painted = paint(table[0].numpy(), n)
            np.testing.assert_array_equal(painted if axis == "rows" else painted.T, dense)
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
        cmir.CmirError, match=r"no mask 'hst' in the zoo; it has causal, hstu, hstu_meta, shared_prompt, clear"
    ):
        zoo.load("hst")
    with pytest.raises(cmir.SpecError, match=r"@clear has no static 'r'; it has height, radius, text, width"):
        zoo.load("clear", r=3)
