# pyright: basic
"""What a predicate asks of the tensors that it captures: values are refused where they are read, lengths are kept, told
and compared with those of other tensors."""

import linecache
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir.errors import MetadataError, SpecError
from cmir.frontend.trace import FORMS

DOC: Any = torch.tensor([3, 3, 3, 3, 4, 4, 5, 5])
BATCH = torch.arange(16).reshape(2, 8)
LIMIT: Any = torch.tensor(5)


def helper(t):
    return t[0].item() + 1  # READ


def of_helper(b, h, q, k):
    return q >= k + helper(DOC)


def of_branch(b, h, q, k):
    if DOC[0] > 2:  # READ
        return q >= k
    return q > k


def of_caught(b, h, q, k):
    try:
        limit = int(DOC[0])  # READ
    except Exception:
        limit = 3
    return q >= k + limit


def of_caught_index(b, h, q, k):
    try:
        return q >= k if q > 3 else k == 0  # READ
    except RuntimeError:
        return q >= k


READS = {
    "int": (lambda b, h, q, k: k < int(DOC[0]), "int()"),
    "int of a scalar": (lambda b, h, q, k: k < int(LIMIT), "int()"),
    "float": (lambda b, h, q, k: k < float(DOC[0]), "float()"),
    "bool": (lambda b, h, q, k: (q >= k) & bool(DOC[0]), "bool() or a branch on it"),
    "item": (lambda b, h, q, k: k < DOC[0].item(), "item()"),
    "item of what it makes": (lambda b, h, q, k: k < (DOC + 1)[0].item(), "item()"),
    "tolist": (lambda b, h, q, k: k < DOC.tolist()[0], "tolist()"),
    "index": (lambda b, h, q, k: k < [5, 6, 7, 8][DOC[0]], "an index of a Python sequence"),
    "in": (lambda b, h, q, k: (q >= k) & (7 in DOC), "in"),
    "equal": (lambda b, h, q, k: k <= q + torch.equal(DOC, DOC.clamp(max=10)), "equal()"),
    "numpy": (lambda b, h, q, k: k < int(DOC.numpy()[0]), "numpy()"),
    "array": (lambda b, h, q, k: k < int(np.asarray(DOC)[0]), "__array__()"),
    "text": (lambda b, h, q, k: k < len(f"{DOC}"), "printing it"),
    "iteration": (lambda b, h, q, k: k < sum(int(x) for x in DOC), "int()"),
    "clamp": (lambda b, h, q, k: q.clamp(LIMIT, 7) < k, "handing it to clamp() as a number"),
    "clamp at an entry": (lambda b, h, q, k: q.clamp(2, DOC[0]) < k, "handing it to clamp() as a number"),
    "a multiple": (lambda b, h, q, k: torch.add(q, k, alpha=LIMIT) < 9, "handing it to add() as a number"),
    "full": (lambda b, h, q, k: torch.full((), LIMIT) < k, "handing it to full() as a number"),
    "full_like": (lambda b, h, q, k: torch.full_like(q, DOC[0] + 1) < k, "handing it to full_like() as a number"),
    "new_full": (lambda b, h, q, k: q.new_full((), LIMIT) < k, "handing it to new_full() as a number"),
    "a size": (lambda b, h, q, k: q < k + torch.zeros(LIMIT).dim(), "handing it to zeros() as a number"),
    "helper": (of_helper, "item()"),
    "branch": (of_branch, "bool() or a branch on it"),
    "caught": (of_caught, "int()"),
}


def line_of(error: SpecError) -> str:
    assert error.location is not None
    return linecache.getline(error.location.file, error.location.line)


@pytest.mark.parametrize("name", READS)
def test_values_of_captured_tensors_are_refused_where_they_are_read(name: str) -> None:
    predicate, how = READS[name]
    known = "LIMIT" if "LIMIT" in predicate.__code__.co_names else "DOC"
    with pytest.raises(SpecError) as raised:
        cmir.from_mask_mod(predicate)
    assert raised.value.message == (
        f"the mask_mod reads a value of the captured tensor '{known}' by {how}: the compiled mask would keep it, "
        f"whatever tensor it is given; index the tensor where its value is used, {known}[b] or {known}[q_idx], or, for "
        "a constant, read the number outside and capture it"
    )
    line = line_of(raised.value)
    assert "# READ" in line if predicate.__name__ != "<lambda>" else f'"{name}": (lambda' in line


def test_a_tensor_without_a_name() -> None:
    with pytest.raises(SpecError, match=r"reads a value of a captured tensor by int\(\).*used, t\[b\] or t\[q_idx\]"):
        cmir.from_mask_mod(lambda b, h, q, k: k < int(globals()["DOC"][0]))


def test_a_branch_on_an_index_is_refused_where_it_stands_and_whoever_catches_it() -> None:
    with pytest.raises(SpecError, match="looks at a value: its control flow depends on an index") as raised:
        cmir.from_mask_mod(of_caught_index)
    assert "# READ" in line_of(raised.value)


def test_what_is_no_value_of_a_captured_tensor() -> None:
    def mask_mod(b, h, q, k):
        assert q.dim() == 0 and DOC.dim() == 1 and not DOC.is_floating_point() and DOC.device == q.device
        own = int(torch.tensor(2))  # a number of its own
        return (q >= k + own) & (DOC[q] == DOC[k])

    spec = cmir.from_mask_mod(mask_mod)
    assert list(spec.captured) == ["DOC"] and not spec.fixed
    assert {"dim", "is_floating_point"} <= FORMS


def pairs(mask_mod, rows: int, b: int = 0) -> np.ndarray:
    at = torch.tensor(b), torch.tensor(0)
    return np.array([[bool(mask_mod(*at, torch.tensor(q), torch.tensor(k))) for k in range(rows)] for q in range(rows)])


SHAPES = {
    "shape": (lambda b, h, q, k: (k < DOC.shape[0] - 3) & (DOC[q] == DOC[k]), {"DOC_size": 8}),
    "len": (lambda b, h, q, k: (k < len(DOC) - 3) & (DOC[q] == DOC[k]), {"DOC_size": 8}),
    "numel": (lambda b, h, q, k: (k < torch.numel(DOC) - 3) & (DOC[q] == DOC[k]), {"DOC_size": 8}),
    "derived": (lambda b, h, q, k: (k < len(BATCH[0]) - 3) & (BATCH[b, q] >= k), {"BATCH_batch": 2, "BATCH_size": 8}),
    "one dimension": (lambda b, h, q, k: (k < BATCH.size(-1) - 3) & (BATCH[b, q] >= k), {"BATCH_size": 8}),
    "named": (lambda b, h, q, k: (k < BATCH.size(dim=1) - 3) & (BATCH[b, q] >= k), {"BATCH_size": 8}),
    "sequences": (lambda b, h, q, k: (k < len(BATCH)) & (BATCH[b, q] >= k), {"BATCH_batch": 2}),
    "heads": (lambda b, h, q, k: (k < len(BATCH)) & (BATCH[h, q] >= k), {"BATCH_heads": 2}),
    "all": (lambda b, h, q, k: (k < BATCH.shape[-1]) & (BATCH[b, q] >= k), {"BATCH_batch": 2, "BATCH_size": 8}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_lengths_are_kept_told_and_facts(name: str) -> None:
    predicate, lengths = SHAPES[name]
    spec = cmir.from_mask_mod(predicate)
    table = "DOC" if "DOC_size" in lengths else "BATCH"
    assert spec.looked and {n: x for n, x in spec.captured.items() if n != table} == lengths
    assert spec.fixed == [
        f"{said.partition(': note: ')[0]}: note: the mask_mod asks for the shape of '{table}'; the mask keeps it: "
        f"{size} == {length}\n" + said.partition("\n")[2]
        for said, (size, length) in zip(spec.fixed, lengths.items(), strict=True)
    ]
    assert all(__file__ in said and f'"{name}"' in said for said in spec.fixed)
    mask = cmir.compile(spec)
    if table == "DOC":
        assert np.array_equal(mask.dense(rows=8, DOC=DOC), pairs(predicate, 8))
    desc = mask.describe(rows=8, **{table: spec.captured[table]}).check()
    batch = 1 if name == "heads" or table == "DOC" else 2
    want = [pairs(predicate, 8, b) for b in range(batch)]
    assert np.array_equal(desc.to_dense()[:, 0].numpy(), np.array(want))


def test_other_lengths_are_refused() -> None:
    mask = cmir.compile(cmir.from_mask_mod(SHAPES["shape"][0]))
    other = torch.tensor([0, 0, 1, 1, 1])
    with pytest.raises(MetadataError, match="break the fact 'DOC_size == 8': rows=5, cols=5, DOC_size=5"):
        mask.describe(rows=5, DOC=other)
    for values in (other, other.tolist(), other.numpy()):
        with pytest.raises(MetadataError, match="break the fact 'DOC_size == 8'"):
            mask.dense(rows=5, DOC=values)
    for ask in (mask.describe, mask.dense, mask.intervals):
        with pytest.raises(MetadataError) as raised:
            ask(rows=5, DOC=other, DOC_size=8)
        assert str(raised.value) == (
            "mask '<lambda>', argument 'DOC_size': expected 5, the length of 'DOC'; got 8; it need not be given"
        ).replace("<lambda>", mask.name)
    with pytest.raises(MetadataError, match="DOC_size == 8"):
        mask.explain(0, 0, rows=5, DOC=other)
    both = cmir.compile(cmir.from_mask_mod(SHAPES["sequences"][0]))
    with pytest.raises(MetadataError, match="BATCH_batch == 2"):
        both.describe(rows=8, BATCH=torch.zeros(3, 8, dtype=torch.int64))


def test_a_loop_over_the_entries_of_a_table() -> None:
    starts, ends = torch.tensor([0, 4, 5]), torch.tensor([3, 5, 9])

    def within(b, h, q, k):
        seen = k == q
        for n in range(len(starts)):
            seen = seen | ((starts[n] <= k) & (k < ends[n]) & (starts[n] <= q) & (q < ends[n]))
        return seen

    spec = cmir.from_mask_mod(within)
    assert list(spec.captured) == ["starts", "ends", "starts_size"] and len(spec.fixed) == 1
    assert not any("from its end" in hint for hint in spec.hints)
    mask = cmir.compile(spec)
    assert np.array_equal(mask.dense(rows=9, starts=starts, ends=ends), pairs(within, 9))
    with pytest.raises(MetadataError, match="break the fact 'starts_size == 3'"):
        mask.describe(rows=9, starts=torch.tensor([0, 4, 5, 6]), ends=torch.tensor([3, 5, 6, 9]))


def before(b, h, q, k):
    return DOC[q - 1] == DOC[k]


def test_lengths_of_tables_that_are_read_from_their_end_need_not_be_given() -> None:
    mask = cmir.compile(cmir.from_mask_mod(before))
    for length in (3, 6):
        doc = torch.arange(length) // 2
        want = doc.roll(1)[:, None] == doc
        assert torch.equal(mask.describe(rows=length, DOC=doc).check().to_dense()[0, 0], want)
        assert np.array_equal(mask.dense(rows=length, DOC=doc), want)
    with pytest.raises(MetadataError, match="argument 'DOC_size': expected 6, the length of 'DOC'; got 8"):
        mask.describe(rows=6, DOC=doc, DOC_size=8)


def test_and_those_of_the_sequences_of_a_pack_are_those_of_each() -> None:
    mask = cmir.compile(cmir.from_mask_mod(before))
    cu = torch.tensor([0, 4, 7])
    doc = torch.tensor([0, 1, 1, 0, 2, 0, 2])
    want = torch.zeros(7, 7, dtype=torch.bool)
    for part in (slice(0, 4), slice(4, 7)):
        want[part, part] = doc[part].roll(1)[:, None] == doc[part]
    given = {"rows": 7, "cu_seqlens": cu, "DOC": (doc, cu)}
    assert torch.equal(mask.describe(**given).check().to_dense()[0, 0], want)
    assert np.array_equal(mask.dense(**given), want)


def test_a_mask_of_the_same_text_whose_lengths_are_its_own() -> None:
    """What is known of lengths is no part of the text of a spec, and yet of the mask."""
    imported, bare = cmir.from_mask_mod(before), cmir.from_mask_mod(before)
    bare.sizes = {}
    assert str(imported) == str(bare)
    assert cmir.compile(imported).dense(rows=2, DOC=[1, 2]).sum() == 2
    with pytest.raises(MetadataError, match="needs metadatum 'DOC_size'"):
        cmir.compile(bare).dense(rows=2, DOC=[1, 2])
