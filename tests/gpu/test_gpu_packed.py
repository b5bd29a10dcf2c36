# pyright: basic
"""Packed sequences on a GPU: lists cut to the longest sequence, a million tokens, attention within sequences alone."""

from __future__ import annotations

import pytest
import torch
from support import DEVICE, GPU, Attend, only_gpu

import cmir
from cmir import zoo
from cmir.runtime.reference import reference_attention

DTYPE, DIM = (torch.bfloat16, 64) if GPU else (torch.float16, 16)


def pack(lengths: list[int], padding: int) -> dict:
    cu = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32, device=DEVICE)
    return {"cu_seqlens": cu, "rows": int(cu[-1]) + padding}


def lengths_of(tokens: int, longest: int) -> list[int]:
    generator = torch.Generator().manual_seed(tokens)
    lengths: list[int] = []
    while sum(lengths) < tokens:
        lengths.append(min(int(torch.randint(0, longest + 1, (), generator=generator)), tokens - sum(lengths)))
    return lengths


@pytest.mark.parametrize("tile", [(16, 64), (128, 128)])
def test_short_lists_say_the_same_as_long_ones(attend: Attend, tile: tuple[int, int]) -> None:
    mask = zoo.load("causal")
    lengths = lengths_of(1500 if GPU else 200, 150 if GPU else 30)
    arguments = pack(lengths, 5)
    wide = mask.describe(**arguments, tile=tile).check()
    tight = mask.describe(**arguments, tile=tile, max_seqlen=max(lengths)).check()
    assert tight.area.tolist() == wide.area.tolist() == [sum(n * (n + 1) // 2 for n in lengths)]
    assert tight.widths <= wide.widths
    for field in ("row_state", "row_count", "row_order", "col_state", "col_count", "col_order"):
        assert torch.equal(getattr(tight, field), getattr(wide, field)), field
    q, k, v, dout = (torch.randn(1, 2, arguments["rows"], DIM, device=DEVICE, dtype=DTYPE) for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    found = [attend(q, k, v, desc, deterministic=True) for desc in (tight, wide)]
    assert torch.equal(*found)
    gradients = [torch.autograd.grad(out, leaves, dout) for out in found]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    out, _ = reference_attention(q, k, v, tight.to_dense())
    assert (found[0] - out).float().norm() < 5e-3 * out.float().norm()


def test_a_sequence_longer_than_promised_is_named(attend: Attend) -> None:
    mask = zoo.load("causal")
    desc = mask.describe(**pack([40, 90, 20], 0), tile=(16, 16), max_seqlen=60)
    with pytest.raises(cmir.MetadataError, match="max_seqlen` at entry 1"):
        desc.check()
    q = torch.randn(1, 1, desc.rows, DIM, device=DEVICE, dtype=DTYPE)
    assert torch.isfinite(attend(q, q, q, desc)).all()  # wrong, as it was told, but within its memory


@only_gpu
def test_a_million_tokens(attend: Attend) -> None:
    mask = zoo.load("causal")
    lengths = lengths_of(2**20 - 77, 16384)
    arguments = pack(lengths, 77)
    desc = mask.describe(**arguments, max_seqlen=16384).check()
    assert desc.area.tolist() == [sum(n * (n + 1) // 2 for n in lengths)]
    assert desc.nbytes < 256 * 2**20
    assert desc.row_count.sum(1).tolist() == desc.col_count.sum(1).tolist()
    q = torch.randn(1, 1, desc.rows, DIM, device=DEVICE, dtype=DTYPE)
    out = attend(q, q, q, desc)
    begin = 0
    for n in lengths[:20]:
        one = q[:, :, begin : begin + n].float()
        want = torch.nn.functional.scaled_dot_product_attention(one, one, one, is_causal=True)
        assert n == 0 or (out[:, :, begin : begin + n] - want).norm() < 5e-3 * want.norm()
        begin += n
    assert not out[:, :, -77:].any()


def draw_hstu(lengths: list[int], padding: int, generator: torch.Generator) -> dict:
    """HSTU users of such lengths: histories of any length, candidates of one to four tokens; `start` by sequence."""
    history = [int(torch.randint(0, n + 1, (), generator=generator)) for n in lengths]
    start = [0 if i < h else h + (i - h) // 4 * 4 for n, h in zip(lengths, history, strict=True) for i in range(n)]
    arguments = pack(lengths, padding)
    arguments["history"] = torch.tensor(history, dtype=torch.int32, device=DEVICE)
    arguments["start"] = torch.tensor([*start, *[7] * padding], dtype=torch.int32, device=DEVICE)
    return arguments


def step(attend: Attend, desc: cmir.Descriptor, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    *inputs, dout = tensors
    out = attend(inputs[0], inputs[1], inputs[2], desc)
    return (out.detach(), *torch.autograd.grad(out, inputs, dout))


def tensors_of(rows: int, cols: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """q, k and v that ask for gradients, and dout."""
    shapes = [(1, 2, rows, DIM), (1, 1, cols, DIM), (1, 1, cols, DIM), (1, 2, rows, DIM)]
    made = [torch.randn(shape, generator=generator).to(DEVICE, DTYPE) for shape in shapes]
    return *(x.requires_grad_() for x in made[:3]), made[3]


def check_step(dense: torch.Tensor, tensors: tuple[torch.Tensor, ...], results: tuple[torch.Tensor, ...]) -> None:
    """Output and gradients against float32."""
    exact = [x.detach().float().requires_grad_() for x in tensors[:3]]
    want, _ = reference_attention(exact[0], exact[1], exact[2], dense)
    wanted = (want, *torch.autograd.grad(want, exact, tensors[3].float()))
    for name, a, b in zip(("out", "dq", "dk", "dv"), results, wanted, strict=True):
        assert (a.float() - b).norm() <= 5e-3 * max(b.norm().item(), 1e-2), name


def test_metadata_of_every_sequence(attend: Attend) -> None:
    mask, generator = zoo.load("hstu"), torch.Generator().manual_seed(1)
    for longest in (3, 40, 200) if GPU else (3, 20):
        arguments = draw_hstu([0, *lengths_of(900 if GPU else 60, longest), 0], 9, generator)
        dense = torch.from_numpy(mask.dense(**arguments)).to(DEVICE)
        desc = mask.describe(**arguments, max_seqlen=longest).check()
        assert torch.equal(desc.to_dense().view(dense.shape), dense)
        tensors = tensors_of(desc.rows, desc.cols, generator)
        check_step(dense, tensors, step(attend, desc, tensors))


def test_rows_and_columns_are_cut_differently(attend: Attend) -> None:
    mask = zoo.load("causal_bottom_right")
    rows, cols = [3, 0, 200, 1, 64], [70, 5, 333, 0, 64]
    both = {"cu_seqlens": pack(rows, 0)["cu_seqlens"], "cu_seqlens_k": pack(cols, 0)["cu_seqlens"]}
    arguments = {**both, "rows": sum(rows) + 3, "cols": sum(cols) + 1}
    dense = torch.from_numpy(mask.dense(**arguments)).to(DEVICE)
    desc = mask.describe(**arguments).check()
    assert torch.equal(desc.to_dense().view(dense.shape), dense)
    tensors = tensors_of(desc.rows, desc.cols, torch.Generator().manual_seed(2))
    check_step(dense, tensors, step(attend, desc, tensors))


def test_any_integers_are_safe(attend: Attend) -> None:
    """Whatever cu_seqlens and metadata are, nothing reads or writes out of bounds."""
    mask, generator = zoo.load("hstu"), torch.Generator().manual_seed(3)
    for _ in range(8 if GPU else 3):
        good = draw_hstu(lengths_of(300 if GPU else 40, 60 if GPU else 12), 5, generator)
        wild = {}
        for key, value in good.items():
            if isinstance(value, int):
                wild[key] = value
                continue
            anything = torch.randint(-(2**31), 2**31, value.shape, generator=generator)
            near = torch.randint(-5, good["rows"] + 5, value.shape, generator=generator)
            which = torch.rand(value.shape, generator=generator)
            wild[key] = torch.where(which < 0.3, anything, torch.where(which < 0.5, near, value.cpu())).int().to(DEVICE)
        desc = mask.describe(**wild, max_seqlen=60)
        for table, length in ((desc.row_table, desc.cols), (desc.col_table, desc.rows)):
            assert table is not None and 0 <= table.min() <= table.max() <= length
        tensors = tensors_of(desc.rows, desc.cols, generator)
        assert all(bool(x.isfinite().all()) for x in step(attend, desc, tensors))
        if bool(desc.status.any()):
            with pytest.raises(cmir.MetadataError):
                desc.check()


@only_gpu
def test_a_graph_replays_with_other_sequences(attend: Attend) -> None:
    mask, generator = zoo.load("hstu"), torch.Generator().manual_seed(4)
    tokens, count, longest = 700, 12, 128

    def draw() -> dict:
        lengths = torch.randint(0, tokens // count + 1, (count,), generator=generator).tolist()
        return draw_hstu(lengths, tokens - sum(lengths), generator)

    static = draw()
    tensors = tensors_of(tokens, tokens, generator)

    def run() -> tuple:
        desc = mask.describe(**static, max_seqlen=longest)
        return desc, step(attend, desc, tensors)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        desc, results = run()
    for _ in range(4):
        fresh = draw()
        for key, value in fresh.items():
            if isinstance(value, torch.Tensor):
                static[key].copy_(value)
        graph.replay()
        torch.cuda.synchronize()
        dense = torch.from_numpy(mask.dense(**fresh)).to(DEVICE)
        assert torch.equal(desc.check().to_dense().view(dense.shape), dense)
        check_step(dense, tensors, results)


@only_gpu
def test_sequences_do_not_recompile(attend: Attend) -> None:
    from triton import knobs

    mask, generator = zoo.load("hstu"), torch.Generator().manual_seed(5)
    compiled: list[str] = []

    def run(tokens: int, longest: int) -> None:
        arguments = draw_hstu(lengths_of(tokens, longest), 3, generator)
        desc = mask.describe(**arguments, max_seqlen=200)
        step(attend, desc, tensors_of(desc.rows, desc.cols, generator))

    run(700, 60)
    hooks = knobs.runtime
    hooks.jit_post_compile_hook = lambda **what: compiled.append(str(what.get("repr")))
    try:
        for tokens, longest in ((701, 60), (702, 5), (703, 200), (704, 199)):
            run(tokens, longest)
    finally:
        hooks.jit_post_compile_hook = None
    torch.cuda.synchronize()
    assert compiled == []
