# pyright: basic
"""Predicates that people publish, written here from their definitions: attention-gym's and Hugging Face's.

Each is imported, compiled, and compared with itself, pair by pair. `FACTS` are what their authors know and a predicate
does not say; with them the slots are those that one would write. What cannot be imported says what to write instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, or_masks

import cmir
from cmir.errors import SpecError
from cmir.interp.masks import paint, spec_mask

N = 24
LENGTHS = torch.tensor([7, 5, 12])
OFFSETS = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])
DOCUMENT = torch.repeat_interleave(LENGTHS)
PREFIX_OF = torch.tensor([0, 0, 0])  # the document whose tokens every document sees too
GLOBAL = torch.tensor([k in (0, 9, 17) for k in range(N)])
IMAGE_OF = torch.arange(N) // 6
SHOWN = torch.tensor([[0, 9], [9, 9], [9, 24], [12, 24]])  # of every image: the text that sees it
POSITIONS = torch.arange(N) - OFFSETS[DOCUMENT]
IMAGES = torch.tensor([-1] * 4 + [0] * 6 + [-1] * 3 + [1] * 5 + [2] * 2 + [-1] * 4)
PADDING = torch.tensor([k >= 5 for k in range(N)])
LEFT = torch.tensor(3)
ANCESTORS = torch.eye(N, dtype=torch.bool)
SIZES = torch.tensor([6, 4, 6, 3])
CHOSEN = torch.tensor([[0, 1], [1, 0], [2, 1]])

Predicate = Callable[[Any, Any, Any, Any], Any]


def causal(b, h, q, k):
    return q >= k


# attention-gym.


def in_groups(inner: Predicate, size: int) -> Predicate:
    return lambda b, h, q, k: (q // size == k // size) & inner(b, h, q % size, k % size)


def block_diffusion(length: int, block: int) -> Predicate:
    def mask(b, h, q, k):
        noisy_q, noisy_k = q < length, k < length
        at_q, at_k = q % length // block, k % length // block
        same = (at_q == at_k) & (noisy_q == noisy_k)
        return same | ((at_q > at_k) & noisy_q & ~noisy_k) | ((at_q >= at_k) & ~noisy_q & ~noisy_k)

    return mask


def dilated(b, h, q, k):
    far = (q - k).abs()
    return (far <= 6) & (far % 2 == 0)


def by_document(inner: Predicate) -> Predicate:
    def mask(b, h, q, k):
        same = DOCUMENT[q] == DOCUMENT[k]
        return same & inner(b, h, q - OFFSETS[DOCUMENT[q]], k - OFFSETS[DOCUMENT[k]])

    return mask


def packed_causal(b, h, q, k):
    return (k >= OFFSETS[DOCUMENT[q]]) & (q >= k)


def shared_prefix(b, h, q, k):
    own, prefix = DOCUMENT[q], PREFIX_OF[DOCUMENT[q]]
    of_prefix = (own != prefix) & (k >= OFFSETS[prefix]) & (k < OFFSETS[prefix + 1])
    return ((k >= OFFSETS[own]) & (q >= k)) | of_prefix


def cross_images(b, h, q, k):
    shown = SHOWN[IMAGE_OF[k]]
    return (q >= shown[0]) & (q < shown[1])


def tile_of_two(b, h, q, k):
    return (CHOSEN[q // 8, 0] == k // 8) | (CHOSEN[q // 8, 1] == k // 8)


def natten(width: int, height: int, kernel: int, place: Callable[[Any], tuple[Any, Any]]) -> Predicate:
    def mask(b, h, q, k):
        (x, y), (x_k, y_k) = place(q), place(k)
        x, y = (c.clamp(kernel // 2, size - 1 - kernel // 2) for c, size in ((x, width), (y, height)))
        return ((x - x_k).abs() <= kernel // 2) & ((y - y_k).abs() <= kernel // 2)

    return mask


def tiled(at):
    tile, inside = at // 4, at % 4
    return tile % 3 * 2 + inside % 2, tile // 3 * 2 + inside // 2


def morton(at):
    return at & 1, at >> 1 & 1


def sliding_tiles(b, h, q, k):
    """A canvas of 4 x 4 by tiles of 2 x 2, kernels of one tile, then 5 tokens of text."""
    tile_q, tile_k = q // 4, k // 4
    near = ((tile_k // 2 - tile_q // 2).abs() <= 0) & ((tile_k % 2 - tile_q % 2).abs() <= 0)
    image, text = (q < 16) & (k < 16) & near, (k >= 16) & (k < 21)
    return image | ((q < 16) & text) | ((q >= 16) & (k < 21))


def spatial_head(sink: bool) -> Predicate:
    return lambda b, h, q, k: (k < (4 + 5 if sink else 4)) | (q < 4) | ((q - k).abs() < 5)


def temporal_head(b, h, q, k):
    return (q < 4) | (k < 4) | (((q - 4) % 5 - (k - 4) % 5).abs() < 2)


def tree_training(b, h, q, k):
    at = k - 4
    return (k < 4) | ((k >= 4) & (q // 5 == at // 5) & (at % 5 <= q % 5))


# Hugging Face.


def joined(*parts: Predicate) -> Predicate:
    def mask(b, h, q, k):
        seen = q.new_ones((), dtype=torch.bool)
        for part in parts:
            seen = seen & part(b, h, q, k).to(seen.device)
        return seen

    return mask


def hf_window(b, h, q, k):
    return k > q - 5


def hf_chunk(b, h, q, k):
    return (k - LEFT) // 6 == (q - LEFT) // 6


def hf_packed(b, h, q, k):
    return DOCUMENT[q] == DOCUMENT[k]


def hf_remapped(b, h, q, k):
    return joined(hf_window, causal)(b, h, POSITIONS[q], POSITIONS[k])


def hf_images(b, h, q, k):
    return (IMAGES[q] == IMAGES[k]) & (IMAGES[q] >= 0)


PREDICATES: dict[str, tuple[Predicate, tuple[int | None, int | None]]] = {
    "gym_causal": (causal, (1, 1)),
    "gym_batchify": (in_groups(causal, 8), (1, 1)),
    "gym_block_diffusion": (block_diffusion(12, 4), (None, None)),
    "gym_dilated": (dilated, (7, 7)),
    "gym_document": (by_document(causal), (None, None)),
    "gym_document_window": (by_document(and_masks(causal, hf_window)), (None, None)),
    "gym_packed_causal": (packed_causal, (1, None)),
    "gym_shared_prefix": (shared_prefix, (5, None)),
    "gym_flamingo": (cross_images, (None, 1)),
    "gym_global_window": (or_masks(lambda b, h, q, k: (q - k).abs() <= 3, lambda b, h, q, k: GLOBAL[q] | GLOBAL[k]),
                          (None, None)),
    "gym_natten": (natten(6, 4, 3, lambda at: (at // 4, at % 4)), (3, None)),
    "gym_natten_tiled": (natten(6, 4, 3, tiled), (None, None)),
    "gym_prefix_lm": (or_masks(lambda b, h, q, k: k < 6, causal), (1, 1)),
    "gym_window": (and_masks(lambda b, h, q, k: q - k <= 5, causal), (1, 1)),
    "gym_sliding_tiles": (sliding_tiles, (2, 2)),
    "gym_spatial_head": (spatial_head(False), (2, 2)),
    "gym_spatial_head_sink": (spatial_head(True), (2, 2)),
    "gym_temporal_head": (temporal_head, (None, None)),
    "gym_tree_training": (tree_training, (2, 1)),
    "gym_chosen_tiles": (tile_of_two, (2, None)),
    "gym_tile_padding": (lambda b, h, q, k: k % 6 < SIZES[k // 6], (None, 1)),
    "hf_causal": (causal, (1, 1)),
    "hf_bidirectional": (lambda b, h, q, k: q >= 0, (1, 1)),
    "hf_window": (joined(hf_window, causal), (1, 1)),
    "hf_two_sided_window": (joined(lambda b, h, q, k: abs(q - k) <= 5, lambda b, h, q, k: q >= 0), (1, 1)),
    "hf_chunked": (joined(hf_chunk, causal), (1, 1)),
    "hf_padded": (joined(causal, lambda b, h, q, k: PADDING[k]), (None, 1)),
    "hf_packed": (joined(causal, hf_packed), (None, None)),
    "hf_remapped": (joined(hf_remapped, hf_packed), (None, None)),
    "hf_images": (or_masks(causal, hf_images), (None, None)),
    "hf_offsets": (lambda b, h, q, k: causal(b, h, q + 7, k), (1, 1)),
}  # fmt: skip
"""With the slots of a row and of a column where nothing is declared."""

Slots = tuple[int | None, int | None]
FACTS: dict[str, tuple[list[str], Callable[[Any], None], Slots]] = {
    "gym_block_diffusion": ([], lambda spec: None, (None, None)),  # (k % 12) repeats, whatever the length
    "gym_document": (["DOCUMENT", "OFFSETS"], lambda spec: None, (1, 1)),
    "gym_document_window": (["DOCUMENT", "OFFSETS"], lambda spec: None, (1, 1)),
    "gym_packed_causal": (["DOCUMENT", "OFFSETS"], lambda spec: at_least_0(spec, "DOCUMENT"), (1, 1)),
    "gym_flamingo": (["IMAGE_OF", "SHOWN"], lambda spec: at_least_0(spec, "IMAGE_OF"), (1, 1)),
    "gym_natten": ([], lambda spec: spec.assume(spec.rows == 24, spec.cols == 24), (3, 4)),
    "gym_natten_tiled": ([], lambda spec: spec.assume(spec.rows == 24, spec.cols == 24), (6, 6)),
    "gym_temporal_head": ([], lambda spec: spec.assume(spec.rows == 24, spec.cols == 24), (5, 5)),
    "hf_packed": (["DOCUMENT"], lambda spec: None, (1, 1)),
}
"""Tables that never fall, other facts, and the slots with them."""


def at_least_0(spec: Any, table: str) -> None:
    spec.assume(spec.metadata[table][spec.i] >= 0)
    spec.assume(spec.metadata[table][spec.j] >= 0)


def pairs(predicate: Predicate, rows: int, cols: int) -> np.ndarray:
    zero = torch.tensor(0)
    at = [torch.tensor(x) for x in range(max(rows, cols))]
    return np.array([[bool(predicate(zero, zero, q, k)) for k in at[:cols]] for q in at[:rows]])


@pytest.mark.parametrize("name", PREDICATES)
def test_a_public_predicate_is_what_it_says(name: str) -> None:
    predicate, slots = PREDICATES[name]
    spec = cmir.from_mask_mod(predicate)
    mask = cmir.compile(spec)
    assert np.array_equal(mask.dense(rows=N, **spec.captured), pairs(predicate, N, N))
    assert tuple(mask.slots.values()) == slots


@pytest.mark.parametrize("name", FACTS)
def test_facts_spare_a_public_predicate_its_bits(name: str) -> None:
    predicate = PREDICATES[name][0]
    nondecreasing, assume, slots = FACTS[name]
    spec = cmir.from_mask_mod(predicate, nondecreasing=nondecreasing)
    assume(spec)
    mask = cmir.compile(spec)
    want = pairs(predicate, N, N)
    assert np.array_equal(mask.dense(rows=N, **spec.captured), want)
    assert tuple(mask.slots.values()) == slots
    axes: tuple[Any, ...] = (("rows", want), ("cols", want.T))
    for axis, seen in axes:
        if mask.slots[axis] is not None:
            table = mask.intervals(axis, rows=N, **spec.captured)
            assert np.array_equal(paint(table, N), seen)


REFUSED: dict[str, tuple[Predicate, str]] = {
    "gym_natten_morton": (natten(2, 2, 1, morton), "bits of a number are // and % by powers of 2"),
    "gym_tree": (lambda b, h, q, k: (k < 4) | ANCESTORS[q, (k - 4).clamp(min=0)], "write the rule that makes it"),
    "gym_chosen_tiles": (
        lambda b, h, q, k: (CHOSEN[q // 8] == (k // 8).unsqueeze(-1)).any(-1),
        r"read its entries one by one, \(t\[q, 0\] == x\) \| \(t\[q, 1\] == x\) for any",
    ),
}
"""Published predicates that the language does not have as they are, and what to write instead."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_where_and_what_to_write(name: str) -> None:
    predicate, message = REFUSED[name]
    with pytest.raises(SpecError, match=message) as raised:
        cmir.from_mask_mod(predicate)
    assert raised.value.location is not None
    assert raised.value.location.file == __file__


N_FIRST, N_NEXT = torch.tensor(6), torch.tensor(9)
CUT: dict[str, tuple[Predicate, int]] = {
    "where": (lambda b, h, q, k: torch.where(q < N_FIRST, k < N_FIRST, k <= q), 2),
    "disjunction": (lambda b, h, q, k: ((q < N_FIRST) & (k < N_FIRST)) | ((q >= N_FIRST) & (k <= q)), 2),
    "sums": (lambda b, h, q, k: torch.where(2 - q <= 3 - N_FIRST, k < 4, k > q), 2),
    "between": (lambda b, h, q, k: (q > 4) & (q <= 4 + 3) & (k <= q), 3),
    "three": (lambda b, h, q, k: torch.where(q < 4, k <= q, torch.where(~(q >= 9), k < 3, k >= q)), 3),
    "number": (lambda b, h, q, k: torch.where(q < N_FIRST, q, N_FIRST) * 2 >= k, 2),
    "no_order": (lambda b, h, q, k: torch.where(q < N_FIRST, k <= q, torch.where(q < N_NEXT, k < 3, k >= q)), 2),
    "column": (lambda b, h, q, k: (k < N_FIRST) | (q + k < 9), 1),
    "many": (lambda b, h, q, k: (q < 1) | (q < 3) | (q < 5) | (q < 7) | (q < 9) | (k < 2), 1),
    "all_rows": (lambda b, h, q, k: (q >= 0) & (k <= q), 1),
    "no_row": (lambda b, h, q, k: ((q < 0) & (k < N_FIRST)) | (k <= q), 1),
    "never": (lambda b, h, q, k: (q < N_FIRST) & (q >= N_FIRST) & (k < 3), 2),
}
"""With the number of Regions."""


@pytest.mark.parametrize("name", CUT)
def test_a_rule_is_cut_where_it_compares_the_row_with_a_number(name: str) -> None:
    predicate, regions = CUT[name]
    spec = cmir.from_mask_mod(predicate)
    assert str(spec).count("maskspec.region") == regions
    mask = cmir.compile(spec)
    for first in (6, 0, -3, 40):  # places outside of the rows too
        N_FIRST.fill_(first)
        given = {**spec.captured, **({"N_FIRST": first} if "N_FIRST" in spec.captured else {})}
        assert np.array_equal(mask.dense(rows=16, cols=18, **given), pairs(predicate, 16, 18))
        assert mask.slots["rows"] is not None
        table = mask.intervals("rows", rows=16, cols=18, **given)
        assert np.array_equal(paint(table, 18), pairs(predicate, 16, 18))
    N_FIRST.fill_(6)


A, B = torch.tensor(3), torch.tensor(8)


def random_predicate(rng: np.random.Generator) -> Predicate:
    """Comparisons of the row with numbers and scalars, of columns with rows, joined by everything that joins."""

    def number(q, k, draw):
        return [lambda: draw, lambda: A, lambda: B, lambda: B - 2, lambda: A + draw, lambda: q, lambda: k][draw % 7]()

    def condition(depth: int) -> Predicate:
        kind, draws = (int(rng.integers(5)) if depth else 5), [int(x) for x in rng.integers(-3, 20, size=3)]
        if kind == 5:
            compare = [torch.lt, torch.le, torch.gt, torch.ge][draws[0] % 4]
            side = [lambda q, k: q, lambda q, k: q + 2, lambda q, k: 5 - q, lambda q, k: k][draws[1] % 4]
            return lambda b, h, q, k: compare(side(q, k), torch.as_tensor(number(q, k, draws[2])))
        left, right, test = (condition(depth - 1) for _ in range(3))
        if kind == 0:
            return lambda b, h, q, k: torch.where(test(b, h, q, k), left(b, h, q, k), right(b, h, q, k))
        if kind == 1:
            return lambda b, h, q, k: torch.where(test(b, h, q, k), q, number(q, k, draws[0])) + draws[1] >= k
        if kind == 2:
            return lambda b, h, q, k: ~(left(b, h, q, k) ^ right(b, h, q, k))
        if kind == 3:
            return lambda b, h, q, k: left(b, h, q, k) & right(b, h, q, k)
        return lambda b, h, q, k: left(b, h, q, k) | ~right(b, h, q, k)

    return condition(2)


def test_random_predicates_are_what_they_say_however_they_are_cut() -> None:
    regions = []
    for seed in range(80):
        predicate = random_predicate(np.random.default_rng(seed))
        spec = cmir.from_mask_mod(predicate)
        surface = spec.build()
        regions.append(len([op for op in surface.walk() if op.name == "maskspec.region"]))
        for a, b in ((3, 8), (8, 3), (-2, 30)):
            A.fill_(a)
            B.fill_(b)
            env: Any = {"rows": 14, "cols": 15, **{name: int(scalar) for name, scalar in spec.sources.items()}}
            q, k = torch.arange(14)[:, None], torch.arange(15)[None, :]
            want = torch.as_tensor(predicate(0, 0, q, k)).expand(14, 15).numpy()
            assert np.array_equal(spec_mask(surface, env), want), (seed, a, b)
    A.fill_(3)
    B.fill_(8)
    assert len(set(regions)) >= 4  # cut in many ways, and not at all
