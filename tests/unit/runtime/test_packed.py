"""`describe(cu_seqlens=...)`: packed sequences against the rule of each sequence alone, and what is refused."""

import functools
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo
from cmir.analysis.facts import first_violation
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue
from cmir.interp.masks import paint
from cmir.runtime.reference import reference_attention

TILE = (16, 16)


def window() -> cmir.MaskSpec:
    """A window and sinks, aligned at the bottom right: rows and columns may differ."""
    spec = cmir.MaskSpec("window")
    i, j = spec.i, spec.j
    w, sinks = spec.scalar("w"), spec.scalar("sinks")
    spec.assume(w >= 0, sinks >= 0)
    shift = spec.cols - spec.rows
    spec.region("all", 0, spec.rows, visible=(j <= i + shift) & ((i + shift - j < w) | (j < sinks)))
    return spec


def evict() -> cmir.MaskSpec:
    """A table per column."""
    spec = cmir.MaskSpec("evict")
    until = spec.table("until", per="col")
    spec.region("all", 0, spec.rows, visible=(spec.j <= spec.i) & (spec.i < until[spec.j]))
    return spec


LIMITS = """
maskspec.spec @limits(%keys: index, %limit: !maskspec.table<free>) {
  maskspec.assume 0 <= keys
  maskspec.assume for e in [0, keys) : 0 <= limit[e] and limit[e] <= rows
  maskspec.nondecreasing limit over [0, keys)
  maskspec.region @all rows [0, rows) {
    maskspec.clause limit[j] <= i and j < keys
  }
}
"""


def limits() -> cmir.CompiledMask:
    """A free table that belongs to one sequence: its entries are about that sequence's rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "limits.mlir")
        path.write_text(LIMITS)
        return cmir.compile(path)


def strided() -> cmir.MaskSpec:
    """What no interval says, on neither axis: packed bits."""
    spec = cmir.MaskSpec("strided")
    shift = spec.scalar("shift")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=(j <= i) & ((i - j < 3) | ((i - j + shift) % 4 == 0)))
    return spec


MASKS: dict[str, Any] = {
    "strided": lambda: cmir.compile(strided()),
    "limits": limits,
    "causal_document": lambda: zoo.load("causal_document"),
    "flamingo": lambda: zoo.load("flamingo", image=3),
    "vertical_slash": lambda: zoo.load("vertical_slash", verticals=2, slashes=2),
    "causal": lambda: zoo.load("causal"),
    "hstu": lambda: zoo.load("hstu"),
    "hstu_meta": lambda: zoo.load("hstu_meta", context=2, window=3, full=2),
    "shared_prompt": lambda: zoo.load("shared_prompt"),
    "clear": lambda: zoo.load("clear", radius=3, height=2, width=3, text=2),
    "window": lambda: cmir.compile(window()),
    "evict": lambda: cmir.compile(evict()),
}


def draw_pack(
    mask: cmir.CompiledMask, rng: np.random.Generator, count: int, tail: tuple[int, int], size: int = 12
) -> dict[str, Any]:
    """Arguments of `describe` for `count` sequences that satisfy the facts of the mask."""
    sequences: list[dict[str, Any]] = []
    while len(sequences) < count:
        env = draw(mask.facts, rng, int(rng.choice([1, 3, size])))
        sequences += [env] if env is not None and first_violation(mask.checked, env) is None else []

    def ends(what: str) -> torch.Tensor:
        return torch.tensor([0, *np.cumsum([int(s[what]) for s in sequences])], dtype=torch.int32)

    cu, cu_k = ends("rows"), ends("cols")
    out: dict[str, Any] = {"cu_seqlens": cu, "rows": int(cu[-1]) + tail[0], "cols": int(cu_k[-1]) + tail[1]}
    if not torch.equal(cu, cu_k) or rng.random() < 0.5:
        out["cu_seqlens_k"] = cu_k
    for p in mask.facts.parameters:
        values = [s[p.name].values if isinstance(s[p.name], TableValue) else [int(s[p.name])] for s in sequences]
        pad = {"row": tail[0], "col": tail[1]}.get(p.kind, 0)
        out[p.name] = torch.tensor(np.concatenate([*values, np.full(pad, -3)]).astype(np.int64))
        if p.kind == "free":
            out[p.name] = out[p.name], torch.tensor([0, *np.cumsum([len(v) for v in values])])
    return out


def check(mask: cmir.CompiledMask, arguments: dict[str, Any]) -> np.ndarray:
    """The descriptor's tables, area and tiles are the mask of `dense`; so are the intervals."""
    dense = mask.dense(**arguments)
    desc = mask.describe(**arguments, tile=TILE).check()
    assert desc.area.tolist() == [int(dense.sum())]
    sides: list[tuple[Literal["rows", "cols"], torch.Tensor | None, np.ndarray]] = [
        ("rows", desc.row_table, dense),
        ("cols", desc.col_table, dense.T),
    ]
    for axis, table, view in sides:
        if mask.slots[axis] is None:
            assert table is None
            continue
        assert table is not None
        np.testing.assert_array_equal(paint(table[0].numpy(), view.shape[1]), view, axis)
        intervals = mask.intervals(axis, **arguments)
        np.testing.assert_array_equal(paint(intervals, view.shape[1]), view, axis)
    check_tiles(desc, dense)
    return dense


def check_tiles(desc: cmir.Descriptor, dense: np.ndarray) -> None:
    """Partial and full tiles of both schedules."""
    rows, cols = dense.shape
    partial, full = set[tuple[int, int]](), set[tuple[int, int]]()
    for m, n in np.ndindex(-(-rows // TILE[0]), -(-cols // TILE[1])):
        part = dense[m * TILE[0] : (m + 1) * TILE[0], n * TILE[1] : (n + 1) * TILE[1]]
        if part.any():
            (full if part.all() and part.shape[1] == TILE[1] else partial).add((m, n))
    for count, index, flip in (
        (desc.row_count[0], desc.row_index[0], False),
        (desc.col_count[0], desc.col_index[0], True),
    ):
        lists = [(line, *map(int, count[line]), index[line].tolist()) for line in range(len(count))]
        front = {(line, t) for line, n, _, tiles in lists for t in tiles[:n]}
        back = {(line, t) for line, _, n, tiles in lists for t in tiles[len(tiles) - n :]}
        assert {(b, a) if flip else (a, b) for a, b in front} == partial
        assert {(b, a) if flip else (a, b) for a, b in back} == full


@pytest.mark.parametrize("name", MASKS)
def test_a_pack_is_its_sequences(name: str) -> None:
    mask = MASKS[name]()
    rng = np.random.default_rng(3)
    assert mask.packed.slots == mask.slots
    for count in (1, 2, 5):
        tail = tuple(map(int, rng.integers(0, 9, 2) * rng.integers(0, 2, 2)))
        check(mask, draw_pack(mask, rng, count, (tail[0], tail[1])))


@pytest.mark.parametrize("name", ["hstu", "window", "shared_prompt", "strided"])
def test_attention_of_a_pack_is_that_of_its_sequences(name: str) -> None:
    mask = MASKS[name]()
    rng = np.random.default_rng(5)
    arguments = draw_pack(mask, rng, 4, (5, 3))
    dense = check(mask, arguments)
    rows, cols = dense.shape
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, h, n, 16, requires_grad=True) for h, n in ((4, rows), (2, cols), (2, cols)))
    out = cmir.attention(q, k, v, mask.describe(**arguments, tile=TILE))
    want, _ = reference_attention(q, k, v, torch.from_numpy(dense))
    gradient = torch.randn_like(out)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
    got = torch.autograd.grad(out, (q, k, v), gradient)
    for a, b in zip(got, torch.autograd.grad(want, (q, k, v), gradient), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


SYMMETRIC = [
    name for name in zoo.NAMES if name not in ("clear", "strided") and cmir.compile(zoo.path(name)).signature.symmetric
]


@pytest.mark.parametrize("test", ["auto", "rows", "cols"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_keys_of_a_symmetric_mask_may_be_cut_otherwise(name: str, test: Literal["auto", "rows", "cols"]) -> None:
    """As many rows as columns, and no table of rows that is one of columns: cut differently, they are not mirrored."""
    mask = cmir.compile(zoo.path(name), test=test, statics={"half": 2} if name == "dilated_window" else {})
    cut = {"cu_seqlens": torch.tensor([0, 20, 40]), "cu_seqlens_k": torch.tensor([0, 30, 40]), "rows": 40, "cols": 40}
    facts = {p.name: p.kind for p in mask.facts.parameters}
    of_token = torch.arange(40) // 7
    given = {"scalar": torch.tensor([3, 2], dtype=torch.int32), "row": of_token, "col": of_token, "free": of_token}
    arguments: dict[str, Any] = {**cut, **{n: given[kind] for n, kind in facts.items()}}
    dense = mask.dense(**arguments)
    desc = mask.describe(**arguments, tile=TILE)
    check_tiles(desc, dense)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 40, 16, requires_grad=True) for _ in range(3))
    out = cmir.attention(q, k, v, desc)
    want, _ = reference_attention(q, k, v, torch.from_numpy(dense))
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
    gradient = torch.randn_like(out)
    got = torch.autograd.grad(out, (q, k, v), gradient)
    for a, b in zip(got, torch.autograd.grad(want, (q, k, v), gradient), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ends", [[0], [0, 0], [0, 0, 0], [0, 7], [0, 0, 7, 7]])
@pytest.mark.parametrize("tail", [0, 4])
def test_few_sequences_and_empty_ones(ends: list[int], tail: int) -> None:
    mask = zoo.load("causal")
    dense = check(mask, {"cu_seqlens": torch.tensor(ends), "rows": ends[-1] + tail})
    assert dense.sum() == ends[-1] * (ends[-1] + 1) // 2
    hstu = zoo.load("hstu")
    scalars = torch.zeros(len(ends) - 1, dtype=torch.int32)
    start = torch.arange(ends[-1] + tail)
    check(hstu, {"cu_seqlens": torch.tensor(ends), "rows": ends[-1] + tail, "history": scalars, "start": start})


def test_an_int_is_the_scalar_of_every_sequence() -> None:
    mask = cmir.compile(window())
    cu = torch.tensor([0, 3, 9])
    one = mask.describe(rows=9, cu_seqlens=cu, w=2, sinks=1)
    each = mask.describe(rows=9, cu_seqlens=cu, w=torch.tensor([2, 2]), sinks=torch.tensor([1, 1], dtype=torch.int32))
    assert one.row_table is not None and each.row_table is not None
    assert torch.equal(one.row_table, each.row_table)
    np.testing.assert_array_equal(
        mask.dense(rows=9, cu_seqlens=[0, 3, 9], w=2, sinks=[1, 1]), paint(one.row_table[0].numpy(), 9)
    )


def test_heads_may_have_scalars_of_their_own() -> None:
    mask = cmir.compile(window())
    cu = torch.tensor([0, 3, 9])
    w = torch.tensor([[2, 3], [4, 1]])  # [heads, sequences]
    desc = mask.describe(rows=9, cu_seqlens=cu, w=w[None], sinks=0)
    assert desc.batch == (1, 2) and desc.row_table is not None
    for head in range(2):
        want = mask.dense(rows=9, cu_seqlens=cu, w=w[head], sinks=0)
        np.testing.assert_array_equal(paint(desc.row_table[head].numpy(), 9), want)


def test_a_free_table_is_shared_or_a_pair() -> None:
    mask = zoo.load("causal_document")
    document = torch.tensor([0, 0, 1, 1, 1, 2])
    arguments: dict[str, Any] = {"rows": 7, "cu_seqlens": torch.tensor([0, 4, 4, 7])}
    shared = check(mask, {**arguments, "document": document})
    pair = torch.cat([document[:4], document[:3]]), torch.tensor([0, 4, 4, 7], dtype=torch.int32)
    np.testing.assert_array_equal(check(mask, {**arguments, "document": pair}), shared)
    nothing = torch.zeros(0, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)  # an empty table reads 0 everywhere
    causal = zoo.load("causal").describe(**arguments)
    unread = mask.describe(**arguments, document=nothing)
    assert torch.equal(unread.to_dense(), causal.to_dense())
    with pytest.raises(cmir.MetadataError, match=r"`document\[i\] is an entry of document, in every .* at row 0"):
        unread.check()
    with pytest.raises(cmir.MetadataError, match="`document nondecreasing, in every sequence` at entry 2"):
        mask.describe(**arguments, document=(torch.tensor([0, 1, 1, 0, 1, 1, 1]), pair[1])).check()
    for cu in ([0, 5, 4, 7], [-1, 4, 4, 7], [0, 4, 4, 8]):
        desc = mask.describe(**arguments, document=(pair[0], torch.tensor(cu)))
        with pytest.raises(cmir.MetadataError, match=r"`0 <= cu\[s\] <= cu\[s \+ 1\] <= length of table 'document'`"):
            desc.check()
    for wrong in ((pair[0],), (pair[0], pair[1][:3]), (pair[0][None], pair[1]), (pair[0], [0, 4, 4, 7])):
        with pytest.raises(cmir.MetadataError, match="'document': expected a pair of int32 or int64 tensors"):
            mask.describe(**arguments, document=wrong)
    with pytest.raises(cmir.MetadataError, match="'document': expected an int32 or int64 tensor"):
        mask.describe(**arguments, document=[0, 1])


def test_no_two_sequences_share_a_table_that_a_fact_ties_to_one() -> None:
    mask = limits()
    arguments: dict[str, Any] = {"rows": 7, "cu_seqlens": torch.tensor([0, 4, 7]), "keys": 2}
    related = "relates its entries to one sequence, so no two sequences may share"
    for ask in (mask.describe, mask.dense, functools.partial(mask.intervals, "cols")):
        with pytest.raises(cmir.MetadataError, match=related):
            ask(**arguments, limit=torch.tensor([0, 3]))
    check(mask, {**arguments, "cu_seqlens": torch.tensor([0, 4]), "limit": torch.tensor([0, 3])})
    pair = torch.tensor([0, 3, 1, 4]), torch.tensor([0, 2, 4])
    broken = r"`limit\[e\] <= rows for e in \[0, keys\), in every sequence` at entry 3"
    with pytest.raises(cmir.MetadataError, match=broken):
        mask.describe(**arguments, limit=pair).check()


def test_the_packed_form_is_cached() -> None:
    mask = zoo.load("causal")
    assert mask.packed is mask.packed
    assert mask.packed.source() == cmir.CompiledMask.packed.func(mask).source()  # from the cache
    with pytest.raises(cmir.CmirError, match="packed already"):
        _ = mask.packed.packed
    with pytest.raises(cmir.CmirError, match="give cu_seqlens to the dense of the mask it was made from"):
        mask.packed.dense(rows=1, cu_rows=[0], cu_cols=[0], longest=3)


def test_a_layout_is_of_one_sequence() -> None:
    spec = cmir.MaskSpec("causal")
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.i)
    mask = cmir.compile(spec, layout=cmir.layouts.Residue(2))
    for ask in (mask.describe, mask.dense, mask.intervals):
        with pytest.raises(cmir.CmirError, match="'causal' has a layout, the order of one sequence's tokens"):
            ask(rows=4, cu_seqlens=torch.tensor([0, 2, 4]))


@pytest.mark.parametrize("name", ["causal", "shared_prompt", "window"])
def test_max_seqlen_makes_a_descriptor_smaller_and_changes_nothing_else(name: str) -> None:
    mask = MASKS[name]()
    rng = np.random.default_rng(5)
    arguments = draw_pack(mask, rng, 40, (3, 3))
    dense = mask.dense(**arguments)
    wide = mask.describe(**arguments, tile=TILE).check()
    tight = mask.describe(**arguments, tile=TILE, max_seqlen=12).check()
    assert tight.area.tolist() == [int(dense.sum())]
    check_tiles(tight, dense)
    if "cu_seqlens_k" not in arguments:
        # 16 rows and the 12 of a sequence on each side: at most 40 columns, 4 tiles wherever they start.
        assert tight.widths == (4, 4)
        assert tight.nbytes < wide.nbytes
    q, k = torch.randn(1, 2, arguments["rows"], 16), torch.randn(1, 2, arguments["cols"], 16)
    assert torch.equal(cmir.attention(q, k, k, tight), cmir.attention(q, k, k, wide))
    # A promise for one call is none for the next.
    assert mask.describe(**arguments, tile=TILE).widths == wide.widths


HSTU: dict[str, Any] = {
    "rows": 8,
    "cu_seqlens": torch.tensor([0, 3, 8]),
    "history": torch.tensor([1, 2]),
    "start": torch.tensor([0, 1, 2, 0, 0, 2, 3, 3]),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cu_seqlens": torch.tensor([1, 3, 8])}, r"`cu_seqlens\[0\] == 0`, where cu_seqlens\[0\] = 1$"),
        ({"cu_seqlens": torch.tensor([0, -3, 8])}, "`cu_seqlens nondecreasing` at entry 0"),
        ({"cu_seqlens": torch.tensor([0, 9, 8])}, "`cu_seqlens nondecreasing` at entry 1"),
        ({"cu_seqlens": torch.tensor([0, 3, 9])}, r"`cu_seqlens\[-1\] <= rows`, where cu_seqlens\[2\] = 9"),
        ({"cu_seqlens": torch.tensor([0, 3, 2**40])}, rf"`cu_seqlens\[-1\] <= rows`, where cu_seqlens\[2\] = {2**40}"),
        ({"max_seqlen": 4}, r"`cu_seqlens\[s \+ 1\] - cu_seqlens\[s\] <= max_seqlen` at entry 1"),
        ({"cu_seqlens_k": torch.tensor([2, 3, 8]), "cols": 8}, r"`cu_seqlens_k\[0\] == 0`"),
        ({"cu_seqlens_k": torch.tensor([0, 3, 8]), "cols": 7}, r"`cu_seqlens_k\[-1\] <= cols`"),
        ({"cu_seqlens_k": torch.tensor([0, 4, 8]), "cols": 8}, "`rows == cols, in every sequence` at entry 0"),
        ({"history": torch.tensor([1, 6])}, "`history <= rows, in every sequence` at entry 1"),
        ({"history": torch.tensor([-1, 2])}, "`0 <= history, in every sequence` at entry 0"),
        (
            {"start": torch.tensor([0, 1, 2, 0, 0, 1, 3, 3])},
            r"`history <= start\[i\] for i in \[history, rows\), in every sequence` at row 5",
        ),
        ({"start": torch.tensor([0, 2, 2, 0, 0, 2, 3, 3])}, r"`start\[i\] <= i .*` at row 1"),
        ({"start": torch.tensor([0, 1, 2, 0, 0, 2, 3, 2])}, r"`start nondecreasing over .*` at row 6"),
    ],
)
def test_broken_facts_are_named_with_their_places(changes: dict[str, Any], message: str) -> None:
    mask = zoo.load("hstu")
    mask.describe(**HSTU).check()
    arguments = {**HSTU, **changes}
    desc = mask.describe(**arguments)
    with pytest.raises(cmir.MetadataError, match=message):
        desc.check()
    # Wrong as it is, every end lies within its axis, and the kernels run.
    for table, length in ((desc.row_table, desc.cols), (desc.col_table, desc.rows)):
        assert table is not None
        assert ((table >= 0) & (table <= length)).all()
    q = torch.randn(1, 1, desc.rows, 16)
    k = torch.randn(1, 1, desc.cols, 16)
    assert cmir.attention(q, k, k, desc).isfinite().all()
    if "max_seqlen" not in changes:
        with pytest.raises(cmir.MetadataError):
            mask.dense(**arguments)


def test_any_integers_are_safe() -> None:
    """Whatever the metadata are, ends lie within their axes, and attention over them ends and is finite."""
    mask, rng = zoo.load("hstu"), np.random.default_rng(8)
    broken = 0
    for _ in range(6):
        wild = dict(HSTU)
        for name in ("cu_seqlens", "history", "start"):
            value = HSTU[name]
            anything = torch.from_numpy(rng.choice([rng.integers(-(2**62), 2**62), rng.integers(-9, 20)], len(value)))
            wild[name] = torch.where(torch.from_numpy(rng.random(len(value)) < 0.4), anything, value)
        desc = mask.describe(**wild, tile=TILE)
        for table in (desc.row_table, desc.col_table):
            assert table is not None and ((table >= 0) & (table <= 8)).all()
        q = torch.randn(1, 1, 8, 16, requires_grad=True)
        out = cmir.attention(q, q, q, desc)
        assert out.isfinite().all() and torch.autograd.grad(out.sum(), q)[0].isfinite().all()
        broken += bool(desc.status.any())
    assert broken


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cu_seqlens": [0, 3, 8]},
            r"'cu_seqlens': expected an int32 or int64 tensor \[S \+ 1\], .*; got \[0, 3, 8\] of type list; write "
            r"torch\.as_tensor\(cu_seqlens, dtype=torch\.int32\)$",
        ),
        ({"cu_seqlens": torch.tensor([[0, 3, 8]])}, r"got int64 of shape \[1, 3\]"),
        ({"cu_seqlens": torch.tensor([])}, r"got float32 of shape \[0\]"),
        ({"cu_seqlens": None, "cu_seqlens_k": torch.tensor([0, 8])}, "go with cu_seqlens; it was not given"),
        ({"cu_seqlens": None, "max_seqlen": 8}, "go with cu_seqlens; it was not given"),
        ({"cu_seqlens_k": torch.tensor([0, 3, 8])}, "cu_seqlens_k needs cols"),
        ({"cu_seqlens_k": torch.tensor([0, 8]), "cols": 8}, "'cu_seqlens_k': expected as many entries as .* 3; got 2"),
        ({"max_seqlen": -1}, "'max_seqlen': expected an int of at least 0; got -1"),
        ({"max_seqlen": torch.tensor(4)}, "'max_seqlen': expected an int"),
        ({"history": torch.tensor([1, 2, 3])}, "'history': expected an int, or .* each of the 2 sequences; got int64"),
        ({"history": 1.5}, "'history': expected an int, or .*; got 1.5 of type float"),
        ({"history": -1}, "break the fact '0 <= history': history=-1"),
        ({"start": torch.arange(7)}, "'start': expected .* one entry for each of the 8 rows"),
        ({"histroy": 3}, "no metadatum 'histroy', did you mean 'history'"),
        ({"start": None}, "'start'"),
        ({"rows": -1}, "'rows': expected an int from 0"),
        ({"rows": 2.0}, "'rows': expected an int from 0"),
    ],
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmir.MetadataError, match=message):
        zoo.load("hstu").describe(**{**HSTU, **changes})


def test_a_missing_metadatum_is_named() -> None:
    arguments = {k: v for k, v in HSTU.items() if k != "start"}
    for ask in (zoo.load("hstu").describe, zoo.load("hstu").dense, zoo.load("hstu").intervals):
        with pytest.raises(cmir.MetadataError, match="needs metadatum 'start': one entry per row"):
            ask(**arguments)
        with pytest.raises(cmir.MetadataError, match=r"needs metadata 'history': an int .*; they were not given$"):
            ask(**{k: v for k, v in arguments.items() if k != "history"})


@pytest.mark.parametrize("name", ["cu_seqlens", "cu_seqlens_k", "max_seqlen"])
def test_names_of_arguments_are_not_for_metadata(name: str) -> None:
    spec = cmir.MaskSpec("m")
    n = spec.scalar(name)
    spec.region("all", 0, spec.rows, visible=spec.j < n)
    with pytest.raises(cmir.SpecError, match=f"metadata '{name}' has the name of an argument of describe"):
        cmir.compile(spec)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cu_seqlens": [0, 4, 3]}, r"cu_seqlens of mask 'hstu': expected ints that start at 0"),
        ({"cu_seqlens_k": [0, 8], "cols": 8}, "'cu_seqlens_k' .*: expected as many ints as cu_seqlens has, 3"),
        ({"history": [1, 2, 3]}, r"'history' .*: expected .* \(2 of them\); got int64 of shape \[3\]"),
        ({"history": [4, 2]}, "sequence 0: mask 'hstu': the metadata break the fact 'history <= rows'"),
        ({"history": [1.5, 2]}, "'history' .*: expected .*; got float64"),
        ({"cu_seqlens": []}, "expected at least one entry"),
    ],
)
def test_the_oracle_checks_its_arguments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmir.MetadataError, match=message):
        zoo.load("hstu").dense(**{**HSTU, **changes})
