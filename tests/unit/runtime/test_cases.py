# pyright: basic
"""Twenty cases that broke other systems, each the kernel of a public report, shrunk; what is visible is said here in
NumPy, not by the compiler. They run under the interpreter, and on a GPU too (tests/gpu/test_gpu_cases.py)."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support import BF16, DEVICE, GPU, Attend, check_all_partial, check_attention, make_tensors, step

import cmir
from cmir import zoo

TILE = (128, 128) if GPU else (16, 16)
DIM = 64 if GPU else 16
HEADS = (4, 2) if GPU else (1, 1)


def ints(values: Any) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.int32, device=DEVICE)


def pairs(rows: int, cols: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of every pair, [rows, 1] and [1, cols]."""
    return np.arange(rows)[:, None], np.arange(rows if cols is None else cols)[None, :]


def check(attend: Attend, desc: Any, visible: np.ndarray, batch: int = 1, heads: tuple[int, int] = HEADS) -> None:
    """Attention over a descriptor, and its gradients, for what is visible: bool [M, N], [B, M, N] or [B, H, M, N]."""
    desc.check()
    while visible.ndim < 4:
        visible = visible[None] if visible.ndim == 2 else visible[:, None]
    assert desc.area.tolist() == visible.reshape(-1, *visible.shape[2:]).sum((1, 2)).tolist()
    check_attention(attend, desc, visible, make_tensors(batch, heads, desc.rows, desc.cols, DIM, BF16))


def test_case_01_a_window_at_every_length_is_one_compile(attend: Attend) -> None:
    mask = zoo.load("window_hf", window=512)
    modules, compiled = set(), []

    def run(n: int) -> None:
        i, j = pairs(n)
        visible = (j <= i) & (i - j < 512)
        desc = mask.describe(rows=n, device=DEVICE, tile=(128, 128)).check()
        assert desc.area.tolist() == [int(visible.sum())]
        modules.add(desc.module)
        if GPU:
            step(attend, desc, make_tensors(1, HEADS, n, n, DIM, BF16))

    if not GPU:
        for n in (1000, 1001, 1100):
            run(n)
    else:
        from triton import knobs

        hooks: Any = knobs.runtime
        run(1000)
        hooks.jit_post_compile_hook = lambda **what: compiled.append(str(what.get("repr")))
        try:
            for n in range(1001, 1101):
                run(n)
        finally:
            hooks.jit_post_compile_hook = None
        # A length that is a multiple of the tile may have kernels of its own: 1024.
        assert len([what for what in compiled if "preprocess" in what]) == 0
        assert len(compiled) <= 4, compiled
    assert len(modules) == 1


def test_case_02_sequences_with_documents_of_their_own(attend: Attend) -> None:
    mask, n = zoo.load("causal_document"), 300 if GPU else 16
    rng = np.random.default_rng(2)
    for size in (2, 3, 5) if GPU else (2, 3):
        document = np.cumsum(rng.random((size, n)) < 0.1, axis=1)
        i, j = pairs(n)
        visible = (document[:, :, None] == document[:, None, :]) & (j <= i)
        desc = mask.describe(rows=n, document=ints(document), tile=TILE)
        check(attend, desc, visible, batch=size)
        tensors = make_tensors(size, HEADS, n, n, DIM, BF16)
        together = step(attend, desc, tensors)
        for b in range(size):
            alone = mask.describe(rows=n, document=ints(document[b]), tile=TILE).check()
            for one, all_of_them in zip(
                step(attend, alone, tuple(x[b : b + 1] for x in tensors)), together, strict=True
            ):
                assert torch.equal(one[0], all_of_them[b])


def test_case_03_causal_rows_then_bidirectional_and_a_smaller_last_batch(attend: Attend) -> None:
    spec = cmir.MaskSpec("causal_then_all")
    n = spec.scalar("n")
    spec.assume(n >= 0, n <= spec.rows)
    spec.region("causal", 0, n, visible=spec.j <= spec.i)
    spec.region("all", n, spec.rows, visible=spec.j < spec.cols)
    mask = cmir.compile(spec)
    length, rng, modules = 200 if GPU else 16, np.random.default_rng(3), set()
    for size in (8, 5):
        counts = rng.integers(0, length + 1, size)
        i, j = pairs(length)
        desc = mask.describe(rows=length, n=ints(counts), tile=TILE)
        check(attend, desc, (j <= i) | (i >= counts[:, None, None]), batch=size)
        modules.add(desc.module)
    assert len(modules) == 1


def sinks() -> cmir.CompiledMask:
    spec = cmir.MaskSpec("window_and_first_keys")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=((j <= i) & (i - j <= 256)) | ((i >= 4) & (j <= 4)))
    return cmir.compile(spec)


def test_case_04_a_descriptor_of_8192_refuses_1024_rows(attend: Attend) -> None:
    mask = sinks()
    desc = mask.describe(rows=8192, device=DEVICE, tile=(128, 128)).check()
    q = torch.randn(1, 2, desc.rows // 8, DIM, device=DEVICE, dtype=BF16)
    with pytest.raises(cmir.ShapeError, match=f"expected {desc.rows} rows, as the descriptor was built for, got"):
        attend(q, q, q, desc)
    i, j = pairs(1024 if GPU else 280)
    right = mask.describe(rows=len(i), device=DEVICE, tile=(128, 128) if GPU else (64, 64))
    check(attend, right, ((j <= i) & (i - j <= 256)) | ((i >= 4) & (j <= 4)))


def test_case_05_a_table_of_exactly_as_many_rows_is_never_read_past_its_end(attend: Attend) -> None:
    spec = cmir.MaskSpec("until")
    until = spec.table("until", per="row")
    spec.region("all", 0, spec.rows, visible=spec.j < until[spec.i])
    mask = cmir.compile(spec)
    n, canary = 2046, 2**30
    # Between canaries: an entry from outside would make a row see everything.
    memory = torch.full((n + 4096,), canary, dtype=torch.int32, device=DEVICE)
    table = memory[2048 : 2048 + n]
    table.copy_(torch.arange(n, device=DEVICE) % 97)
    desc = mask.describe(rows=n, until=table, tile=(128, 128)).check()
    assert desc.area.tolist() == [int((np.arange(n) % 97).sum())]
    for short in (n - 1, n + 1):
        with pytest.raises(cmir.MetadataError, match=f"'until': .* one entry for each of the {n} rows"):
            mask.describe(rows=n, until=memory[:short])
    if GPU:
        i, j = pairs(n)
        check(attend, desc, j < i % 97)


def test_case_06_two_rows_against_a_larger_descriptor_names_both_shapes(attend: Attend) -> None:
    desc = zoo.load("causal").describe(rows=16, device=DEVICE, tile=TILE)
    q = torch.randn(2, 2, 2, DIM, device=DEVICE, dtype=BF16)
    with pytest.raises(cmir.ShapeError, match=rf"expected 16 rows, .* got 2 in \(2, 2, 2, {DIM}\)"):
        attend(q, q, q, desc)
    desc = zoo.load("causal").describe(rows=2, cols=16, device=DEVICE, tile=TILE)
    with pytest.raises(cmir.ShapeError, match=rf"expected 16 columns, .* got 2 in \(2, 2, 2, {DIM}\)"):
        attend(q, q, q, desc)


def test_case_07_one_mask_serves_every_sequence_of_a_batch(attend: Attend) -> None:
    i, j = pairs(8)
    metadata: dict[str, Any] = {"prefix": ints([3])}  # a batch of one
    desc = zoo.load("prefix_lm").describe(rows=8, **metadata, tile=TILE)
    tensors = tuple(x[..., :16] if x.dim() == 4 else x for x in make_tensors(2, (2, 2), 8, 8, DIM, BF16))
    desc.check()
    check_attention(attend, desc, ((j < 3) | (j <= i))[None, None], tensors)
    two = zoo.load("prefix_lm").describe(rows=8, prefix=ints([3, 4]), tile=TILE)
    q = torch.randn(3, 2, 8, 16, device=DEVICE, dtype=BF16)
    with pytest.raises(cmir.ShapeError, match="expected batch 2, as the descriptor was built for, got 3"):
        attend(q, q, q, two)


def test_case_08_a_head_that_sees_nothing_among_32(attend: Attend) -> None:
    spec = cmir.MaskSpec("causal_from")
    first = spec.scalar("start")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (first <= spec.i))
    heads = np.zeros((1, 32), dtype=np.int32)
    heads[0, 0] = 8
    i, j = pairs(8)
    visible = (j <= i) & (heads[..., None, None] <= i)
    desc = cmir.compile(spec).describe(rows=8, start=ints(heads), tile=TILE)
    check(attend, desc, visible, heads=(32, 32))
    tensors = make_tensors(1, (32, 32), 8, 8, DIM, BF16)
    out, lse, *grads = step(attend, desc, tensors)
    assert not out[:, 0].any() and lse[:, 0].isneginf().all()
    assert not any(gradient[:, 0].any() for gradient in grads)
    assert lse[:, 1:].isfinite().all()


@pytest.mark.parametrize("name", ["causal", "prefix_lm"])
def test_case_09_all_tiles_partial_gives_the_same_bits(attend: Attend, name: str) -> None:
    n = 700 if GPU else 70
    metadata: dict[str, Any] = {"prefix": n // 2} if name == "prefix_lm" else {}
    tensors = make_tensors(2, HEADS, n, n, DIM, BF16)
    check_all_partial(
        attend, lambda: zoo.load(name).describe(rows=n, device=DEVICE, tile=TILE, **metadata).check(), tensors
    )


def test_case_10_a_sequence_of_a_pack_does_not_see_another(attend: Attend) -> None:
    desc = zoo.load("causal").describe(rows=10, cu_seqlens=ints([0, 3, 8, 10]), tile=TILE).check()
    sequence = np.array([0] * 3 + [1] * 5 + [2] * 2)
    i, j = pairs(10)
    check(attend, desc, (sequence[:, None] == sequence[None, :]) & (j <= i))
    q, k, v, *_ = make_tensors(1, HEADS, 10, 10, DIM, BF16)
    before = attend(q, k, v, desc)
    k[:, :, 3:8] *= -7
    v[:, :, 3:8] += 100
    after = attend(q, k, v, desc)
    assert not torch.equal(before[:, :, 3:8], after[:, :, 3:8])
    for kept in (slice(0, 3), slice(8, 10)):
        assert torch.equal(before[:, :, kept], after[:, :, kept])


def test_case_11_a_row_that_sees_nothing_within_a_tile(attend: Attend) -> None:
    spec = cmir.MaskSpec("all_but_one_row")
    hole = spec.scalar("hole")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i != hole))
    i, j = pairs(50)
    desc = cmir.compile(spec).describe(rows=50, hole=21, device=DEVICE, tile=TILE)
    check(attend, desc, (j <= i) & (i != 21))
    out, lse, *grads = step(attend, desc, make_tensors(1, HEADS, 50, 50, DIM, BF16))
    assert not out[:, :, 21].any() and lse[:, :, 21].isneginf().all() and not grads[0][:, :, 21].any()
    assert all(gradient.isfinite().all() for gradient in grads)


def test_case_12_packed_cross_attention_of_300_rows_and_1000_columns(attend: Attend) -> None:
    rng = np.random.default_rng(12)
    rows, cols = (300, 1000) if GPU else (45, 130)
    row, col = np.sort(rng.integers(0, 9, rows)), np.sort(rng.integers(0, 9, cols))
    desc = zoo.load("packed_cross").describe(
        rows=rows, cols=cols, sample_of_row=ints(row), sample_of_col=ints(col), tile=TILE
    )
    check(attend, desc, row[:, None] == col[None, :])


def test_case_13_a_shared_prompt_is_two_sequences_with_restarted_positions(attend: Attend) -> None:
    prompt, answers = (100, (60, 40)) if GPU else (20, (12, 8))
    n = prompt + sum(answers)
    segment = np.array([0] * prompt + [prompt] * answers[0] + [prompt + answers[0]] * answers[1])
    i, j = pairs(n)
    desc = zoo.load("shared_prompt").describe(
        rows=n, pack=ints(np.zeros(n)), prompt=ints(np.full(n, prompt)), segment=ints(segment), tile=TILE
    )
    check(attend, desc, (j <= i) & ((j < prompt) | (segment[:, None] <= j)))
    q, k, v, *_ = make_tensors(1, HEADS, n, n, DIM, BF16)
    out = attend(q, k, v, desc)
    for first, length in ((prompt, answers[0]), (prompt + answers[0], answers[1])):
        place = torch.cat([torch.arange(prompt), torch.arange(first, first + length)]).to(DEVICE)
        one = zoo.load("causal").describe(rows=prompt + length, device=DEVICE, tile=TILE)
        alone = attend(*(x[:, :, place] for x in (q, k, v)), one)
        torch.testing.assert_close(out[:, :, place], alone, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("name", ["tree_dfs", "tree_any_order"])
def test_case_14_a_tree_of_drafts_after_a_prefix(attend: Attend, name: str) -> None:
    prefix, parents = 256 if GPU else 24, [-1, 0, 0, 1, 2]
    if name == "tree_dfs":  # the same tree in depth-first order: 0, 1, 3, 2, 4
        parents = [-1, 0, 1, 0, 3]
    chains = []
    for t in range(len(parents)):
        chain = [t]
        while parents[chain[0]] >= 0:
            chain.insert(0, parents[chain[0]])
        chains.append(chain)
    ancestor = [[prefix + (c[d] if d < len(c) else c[-1]) for d in range(4)] for c in chains]
    depth = [-1] * prefix + [len(c) - 1 for c in chains]
    rows, cols = len(parents), prefix + len(parents)
    visible = np.zeros((rows, cols), dtype=bool)
    visible[:, :prefix] = True
    for t, chain in enumerate(chains):
        visible[t, [prefix + a for a in chain]] = True
    names = [p.name for p in zoo.load(name).signature.parameters]
    metadata: dict[str, Any] = {"context": prefix, "ancestor": ints(ancestor), "depth": ints(depth)}
    desc = zoo.load(name).describe(rows=rows, cols=cols, tile=TILE, **{n: metadata[n] for n in names})
    check(attend, desc, visible)


def test_case_15_a_prefix_of_each_sample(attend: Attend) -> None:
    n = 512 if GPU else 48
    prefix = np.array([0, 1, n // 2, n])
    i, j = pairs(n)
    mask = zoo.load("prefix_lm")
    assert mask.slots == {"rows": 1, "cols": 1}
    desc = mask.describe(rows=n, prefix=ints(prefix), tile=TILE)
    check(attend, desc, (j < prefix[:, None, None]) | (j <= i), batch=4)


def test_case_16_an_image_among_text_is_one_slot(attend: Attend) -> None:
    n, first, last = (1000, 100, 356) if GPU else (100, 10, 36)
    mask = zoo.load("gemma3", window=2 * n)
    causal = cmir.MaskSpec("image_in_text")
    i_, j_ = causal.i, causal.j
    image, end = causal.table("image", per="row"), causal.table("image_end", per="row")
    causal.assume(image[i_] <= i_, i_ < end[i_], image.nondecreasing(), end.nondecreasing())
    causal.region("all", 0, causal.rows, visible=(j_ <= i_) | ((image[i_] <= j_) & (j_ < end[i_])))
    own = cmir.compile(causal)
    assert own.slots["rows"] == mask.slots["rows"] == 1
    token = np.arange(n)
    inside = (first <= token) & (token < last)
    metadata: dict[str, Any] = {
        "image": ints(np.where(inside, first, token)),
        "image_end": ints(np.where(inside, last, token + 1)),
    }
    i, j = pairs(n)
    visible = (j <= i) | (inside[:, None] & inside[None, :])
    for compiled in (mask, own):
        check(attend, compiled.describe(rows=n, **metadata, tile=TILE), visible)


def test_case_17_padding_behind_the_sequences_is_never_seen(attend: Attend) -> None:
    desc = zoo.load("causal").describe(rows=10, cu_seqlens=ints([0, 4, 7]), tile=TILE)
    sequence = np.array([0] * 4 + [1] * 3 + [-1, -2, -3])
    i, j = pairs(10)
    visible = (sequence[:, None] == sequence[None, :]) & (j <= i) & (sequence[:, None] >= 0)
    check(attend, desc, visible)
    out, lse, *grads = step(attend, desc, make_tensors(1, HEADS, 10, 10, DIM, BF16))
    assert not out[:, :, 7:].any() and lse[:, :, 7:].isneginf().all()
    assert not any(gradient[:, :, 7:].any() for gradient in grads)


@pytest.mark.parametrize(("name", "corner"), [("causal", 0), ("causal_bottom_right", 3)])
def test_case_18_both_corners_of_a_causal_mask_have_a_name(attend: Attend, name: str, corner: int) -> None:
    i, j = pairs(2, 5)
    check(attend, zoo.load(name).describe(rows=2, cols=5, device=DEVICE, tile=TILE), j <= i + corner)
    spec = cmir.MaskSpec(f"named_{name}")
    position = spec.position("top_left" if corner == 0 else "bottom_right")
    spec.region("all", 0, spec.rows, visible=spec.j <= position)
    check(attend, cmir.compile(spec).describe(rows=2, cols=5, device=DEVICE, tile=TILE), j <= i + corner)


def test_case_19_chunks_are_counted_by_floor_division(attend: Attend) -> None:
    chunk, padding, offset = 8192, 3, 8190
    mask = zoo.load("chunked", chunk=chunk)
    # Counted from the token after the padding and the offset, row 8193 starts a chunk; truncation would have put the
    # 8191 rows before it into the same one.
    first = padding + offset
    ends = mask.intervals("rows", rows=8200, padding=first)
    assert ends[0, :, first].tolist() == [first, first + 1]
    assert ends[0, :, first - 1].tolist() == [first - chunk, first]
    # Rows that stand `offset` tokens into the sequence.
    spec = cmir.MaskSpec("chunked_rows_with_an_offset")
    at = spec.i + spec.scalar("offset")
    left = spec.scalar("padding")
    spec.region("all", 0, spec.rows, visible=(spec.j <= at) & ((at - left) // chunk == (spec.j - left) // chunk))
    ends = cmir.compile(spec).intervals("rows", rows=10, cols=8200, offset=offset, padding=padding)
    assert [ends[0, :, row].tolist() for row in (4, 5)] == [[3, 8195], [8195, 8196]]
    # The same, small, through the kernels.
    i, j = pairs(90)
    desc = zoo.load("chunked", chunk=16).describe(rows=90, padding=21, device=DEVICE, tile=TILE)
    check(attend, desc, (j <= i) & ((i - 21) // 16 == (j - 21) // 16))


def memory_in_use() -> int:
    """Bytes: on the device, or of the process's Python objects' count where there is none."""
    gc.collect()
    if GPU:
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()
    return sum(x.numel() * x.element_size() for x in gc.get_objects() if type(x) is torch.Tensor)


def twenty() -> list[Callable[[], Any]]:
    """Descriptors of 20 different masks."""
    n = 500 if GPU else 16
    plain = ["causal", "causal_bottom_right", "full", "window_hf", "window_attention_gym", "window_flash"]
    plain += ["window_two_sided", "sinks_window", "global_window", "global_window_causal", "dilated_window", "strided"]
    plain += ["block_causal", "causal_blockwise", "bigbird"]
    out: list[Callable[[], Any]] = []
    for name in plain:
        if not zoo.load(name).signature.parameters:
            out.append(lambda name=name: zoo.load(name).describe(rows=n, device=DEVICE, tile=TILE))
    for length in range(2, 40):
        if len(out) < 20:
            spec = cmir.MaskSpec(f"window_{length}")
            spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i - spec.j < length))
            mask = cmir.compile(spec)
            out.append(lambda mask=mask: mask.describe(rows=n, device=DEVICE, tile=TILE))
    return out


def test_case_20_memory_is_flat_over_20_masks_in_turn(attend: Attend) -> None:
    masks, used = twenty(), []
    assert len(masks) == 20
    tensors = None
    for _ in range(3):
        for describe in masks:
            desc = describe()
            if tensors is None:
                tensors = make_tensors(1, HEADS, desc.rows, desc.cols, DIM, BF16)
            results = step(attend, desc, tensors)
            assert all(math.isfinite(float(x.float().abs().max())) for x in (results[0], *results[2:]))
        desc: Any = None
        results: Any = None
        used.append(memory_in_use())
    assert used[1] <= used[0] and used[2] <= used[0], used
