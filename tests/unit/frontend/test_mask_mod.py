# pyright: basic
"""FlexAttention predicates as specs: the same pairs as the predicate itself, for what people write."""

import types
from functools import partial, wraps

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, or_masks

import cmir
from cmir.errors import SpecError

N = 24
DOC = torch.tensor([0] * 7 + [1] * 5 + [2] * 12)
START = torch.tensor([0] * 7 + [7] * 5 + [12] * 12)
WINDOW = torch.tensor(5)
KEEP = torch.tensor([k % 5 != 3 for k in range(N)])


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(size):
    def sliding_window(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx).abs() <= size

    return sliding_window


def document(b, h, q_idx, kv_idx):
    return DOC[q_idx] == DOC[kv_idx]


def natten(b, h, q, k, width=6, radius=1):
    """attention-gym's: clamped centres, two dimensions."""
    qx, qy, kx, ky = q // width, q % width, k // width, k % width
    x = qx.clamp(radius, N // width - 1 - radius)
    y = qy.clamp(radius, width - 1 - radius)
    return ((x - kx).abs() <= radius) & ((y - ky).abs() <= radius)


def packed_like_transformers(b, h, q_idx, kv_idx):
    """How Hugging Face's masking_utils joins masks."""
    result = q_idx.new_ones((), dtype=torch.bool)
    for one in (causal, document):
        result = result & one(b, h, q_idx, kv_idx).to(result.device)
    return result


def chunked(b, h, q_idx, kv_idx):
    return (kv_idx // 8 == q_idx // 8) & (q_idx >= kv_idx)


def keys(b, h, q_idx, kv_idx):
    return KEEP[kv_idx] & (kv_idx <= q_idx)


def counted(b, h, q_idx, kv_idx):
    """Conditions as numbers, numbers as conditions."""
    return ((q_idx >= kv_idx).to(torch.int64) + (kv_idx < 3) * 2 + (q_idx % 2)).to(torch.bool) & (q_idx != kv_idx)


def chosen(b, h, q_idx, kv_idx):
    inside = torch.where(q_idx < 8, kv_idx < 8, torch.minimum(q_idx, torch.tensor(20)) >= kv_idx)
    return torch.logical_and(inside, ~((kv_idx == 2) ^ (q_idx > 4)))


def scalar_window(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx < WINDOW) & (kv_idx <= q_idx)


class Strided:
    def __init__(self, stride: int) -> None:
        self.stride = stride

    def __call__(self, b, h, q_idx, kv_idx):
        return (kv_idx <= q_idx) & ((q_idx - kv_idx) % self.stride == 0)


PREDICATES = {
    "causal": causal,
    "lambda": lambda b, h, q, k: q >= k,
    "window": window(4),
    "document": document,
    "document_causal": and_masks(document, causal),
    "prefix_lm": or_masks(causal, lambda b, h, q, k: k < 6),
    "natten": natten,
    "natten_partial": partial(natten, width=4, radius=1),
    "transformers": packed_like_transformers,
    "chunked": chunked,
    "keys": keys,
    "counted": counted,
    "chosen": chosen,
    "scalar_window": scalar_window,
    "everything": lambda b, h, q, k: q.new_ones((), dtype=torch.bool),
    "starts": lambda b, h, q, k: (START[q] <= k) & (k <= q),
    "method": Strided(3),
    "after_shift": lambda b, h, q, k: q + 4 >= k * 2 - 1,
}


BIG = torch.tensor([5, 5, 2**32 + 5, 2**32 + 5] * 6)
BYTES = torch.arange(N, dtype=torch.uint8) % 7
UNSIGNED = torch.tensor([3_000_000_000, 5, 4, 3] * 6, dtype=torch.uint32)
WIDE_UNSIGNED = torch.tensor([2**62, 5, 4, 3] * 6, dtype=torch.uint64)

PREDICATES |= {
    "large_ids": lambda b, h, q, k: BIG[q] == BIG[k],
    "the_one_before": lambda b, h, q, k: (DOC[q - 1] == DOC[k]) & (k <= q),
    "wraps": lambda b, h, q, k: START[k - q] <= k,
    "bytes": lambda b, h, q, k: BYTES[q].long() - 1 >= k % 8,
    "bytes_and_numbers": lambda b, h, q, k: (BYTES[q] == 3) | (BYTES[k] > 255) | (BYTES[q] < BYTES[k]),
    "unsigned": lambda b, h, q, k: UNSIGNED[q].long() > k,
    "wide_unsigned": lambda b, h, q, k: WIDE_UNSIGNED[q].long() > k,
    "first": lambda b, h, q, k: (DOC[0] == DOC[q]) | (k < torch.tensor(3)),
}


def pairs(mask_mod, rows: int, cols: int, b: int = 0, h: int = 0) -> np.ndarray:
    at = [torch.tensor(x) for x in (b, h)]
    return np.array([[bool(mask_mod(*at, torch.tensor(q), torch.tensor(k))) for k in range(cols)] for q in range(rows)])


@pytest.mark.parametrize("name", PREDICATES)
def test_the_spec_says_what_the_predicate_says(name: str) -> None:
    predicate = PREDICATES[name]
    spec = cmir.from_mask_mod(predicate)
    mask = cmir.compile(spec)
    want = pairs(predicate, N, N)
    assert np.array_equal(mask.dense(rows=N, **spec.captured), want)
    if mask.slots["rows"] is not None:
        lo, hi = mask.intervals("rows", rows=N, **spec.captured).transpose(1, 0, 2)
        j = np.arange(N)
        painted = ((lo[:, :, None] <= j) & (j < hi[:, :, None])).any(0) if len(lo) else np.zeros((N, N), bool)
        assert np.array_equal(painted, want)


def test_captured_data_can_be_given_anew() -> None:
    spec = cmir.from_mask_mod(and_masks(document, causal), name="packed", nondecreasing=["DOC"])
    mask = cmir.compile(spec)
    assert (spec.name, mask.slots, spec.hints) == ("packed", {"rows": 1, "cols": 1}, [])
    other = torch.tensor([0, 0, 4, 4, 4])
    want = [[other[q] == other[k] and k <= q for k in range(5)] for q in range(5)]
    assert np.array_equal(mask.dense(rows=5, DOC=other), np.array(want))
    desc = mask.describe(rows=5, DOC=other).check()
    assert desc.area.item() == 9
    with pytest.raises(cmir.MetadataError, match="DOC nondecreasing"):
        mask.describe(rows=3, DOC=torch.tensor([1, 0, 0])).check()


def test_hints_name_what_holds_and_is_not_declared() -> None:
    spec = cmir.from_mask_mod(document)
    assert len(spec.hints) == 1 and "'DOC' never falls" in spec.hints[0]
    assert "nondecreasing" not in str(spec)
    assert cmir.from_mask_mod(keys).hints == []


def test_facts_may_be_added_to_the_imported_spec() -> None:
    spec = cmir.from_mask_mod(scalar_window)
    spec.assume(spec.metadata["WINDOW"] >= 1)
    assert "1 <= WINDOW" in str(spec)


def test_sequences_and_heads() -> None:
    lengths = torch.tensor([3, 9])
    slopes = torch.tensor([1, 2, 4])
    table = torch.arange(2 * N).reshape(2, N) // 5
    flags = torch.tensor([[True, False, True], [False, True, True]])

    def mask_mod(b, h, q, k):
        near = (q - k < slopes[h] * 2) & (k <= q)
        return near & (k < lengths[b]) & (table[b, q] == table[b][k]) & (flags[b, h] | (k > 1))

    spec = cmir.from_mask_mod(mask_mod)
    assert {name: tuple(tensor.shape) for name, tensor in spec.captured.items()} == {
        "slopes": (1, 3), "lengths": (2,), "table": (2, N), "flags": (2, 3),
    }  # fmt: skip
    mask = cmir.compile(spec)
    for b in range(2):
        for h in range(3):
            own: dict = {"slopes": slopes[h], "lengths": lengths[b], "table": table[b], "flags": flags[b, h].int()}
            assert np.array_equal(mask.dense(rows=N, **own), pairs(mask_mod, N, N, b, h))


def test_booleans_are_described_as_they_are() -> None:
    pad = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])
    on = torch.tensor(True)
    spec = cmir.from_mask_mod(lambda b, h, q, k: pad[b, k] & on & (k <= q))
    assert [line.strip() for line in str(spec).splitlines() if "assume" in line] == [
        "maskspec.assume 0 <= pad[j] and pad[j] <= 1",
        "maskspec.assume 0 <= on and on <= 1",
    ]
    assert spec.hints == []
    mask = cmir.compile(spec)
    (remark,) = mask.remarks
    assert "mask 'mask_mod' is unbounded by rows: '0 < pad[j]' bounds no interval" in remark
    assert remark.endswith(
        "note: of pad, which is 0 or 1: for padding at the end write j < n, n a scalar; for padding at the start "
        "pad.nondecreasing() would bound it"
    )
    want = [[bool(pad[0, k]) and k <= q for k in range(5)] for q in range(5)]
    for number in (True, np.bool_(True), 1, on):
        assert mask.describe(rows=5, pad=pad, on=number).check().area.tolist() == [12, 14]
        assert np.array_equal(mask.dense(rows=5, pad=pad[0], on=number), want)
        assert np.array_equal(mask.dense(rows=5, pad=pad[0].numpy(), on=number), want)
    cu_seqlens = torch.tensor([0, 2, 5], dtype=torch.int32)
    pack = {
        "cu_seqlens": cu_seqlens,
        "on": torch.tensor([True, False]),
        "pad": (pad.flatten()[:8], torch.tensor([0, 3, 8])),
    }
    assert mask.describe(rows=5, **pack).check().area.item() == mask.dense(rows=5, **pack).sum() == 3
    with pytest.raises(cmir.MetadataError, match="break the fact 'on <= 1'"):
        mask.describe(rows=5, pad=pad, on=2)


def test_of_booleans_that_are_all_true_nothing_is_hinted() -> None:
    full, left = torch.ones(5, dtype=torch.bool), torch.tensor([False, False, True])
    assert cmir.from_mask_mod(lambda b, h, q, k: full[k]).hints == []
    assert "'left' never falls" in cmir.from_mask_mod(lambda b, h, q, k: left[k]).hints[0]


def test_what_a_module_holds_is_captured_too() -> None:
    config = types.ModuleType("config")
    vars(config)["limit"] = torch.tensor(3)
    spec = cmir.from_mask_mod(lambda b, h, q, k: q - k < vars(config)["limit"])
    (name,) = spec.captured
    want = [[q - k < 5 for k in range(6)] for q in range(6)]
    assert np.array_equal(cmir.compile(spec).dense(rows=6, **{name: 5}), np.array(want))


def test_names_that_describe_has_are_stepped_around() -> None:
    cu_seqlens = torch.tensor([3, 1, 4, 1])
    spec = cmir.from_mask_mod(lambda b, h, q, k: cu_seqlens[q] >= k)
    assert list(spec.captured) == ["cu_seqlens_"]
    assert cmir.compile(spec).describe(rows=4, tile=(16, 16), **spec.captured).check().area.item() == 12


def test_one_name_for_two_tensors() -> None:
    def inner(table):
        return lambda b, h, q, k: table[q] <= k

    spec = cmir.from_mask_mod(and_masks(inner(torch.arange(4)), inner(torch.arange(4) * 2)))
    assert sorted(spec.captured) == ["table", "table_2"]
    assert np.array_equal(
        cmir.compile(spec).dense(rows=4, **spec.captured), [[2 * q <= k for k in range(4)] for q in range(4)]
    )


def refusals():
    def branches(b, h, q, k):
        return q >= k if q > 3 else k > 1

    def item(b, h, q, k):
        return q.item() >= k

    weights = torch.rand(N)
    matrix = torch.zeros(N, N, dtype=torch.bool)
    return {
        "branch": (branches, "looks at a value: its control flow depends on"),
        "item": (item, "or it calls .item()"),
        "float": (lambda b, h, q, k: weights[q] > 0.5, "or booleans; it captures a tensor of torch.float32"),
        "division": (lambda b, h, q, k: q / 2 > k, r"write // \(rounding down\), not /"),
        "matrix": (lambda b, h, q, k: matrix[q, k], "a matrix is no metadatum"),
        "whole": (lambda b, h, q, k: DOC.sum() > q, "used without an index for each dimension"),
        "batch": (lambda b, h, q, k: k < b, "'b' may only index captured tensors"),
        "order": (lambda b, h, q, k: matrix[q, b] & (k < 3), "indexed by b, then h, then a position"),
        "sine": (lambda b, h, q, k: torch.sin(q) > k, "the rule language has nothing for torch's sin"),
        "bits": (lambda b, h, q, k: (q & 1) == (k & 1), "'&' takes conditions, not integers"),
        "integer": (lambda b, h, q, k: q - k, "it returns an integer; a mask_mod returns a condition"),
        "narrow": (lambda b, h, q, k: BYTES[q] - 1 >= k, "it computes in torch.uint8, which wraps"),
        "tuple": (lambda b, h, q, k: (q >= k, q < 3), "a mask_mod returns one 0-d bool tensor"),
        "nothing": (lambda b, h, q, k: None, "a mask_mod returns one 0-d bool tensor"),
        "one_dimension": (lambda b, h, q, k: q.unsqueeze(0) >= k, "a mask_mod returns one 0-d bool tensor"),
        "dimensions": (lambda b, h, q, k: DOC[q, k] > k, "does not run on four 0-d tensors"),
        "flags": (lambda b, h, q, k: DOC[b > 0] > k, "does not run on four 0-d tensors"),
        "end": (lambda b, h, q, k: DOC[-1] > k, "from its end; write the place from its start"),
        "product": (lambda b, h, q, k: q * k > 4, "multipl"),
        "wide": (
            lambda b, h, q, k: DOC[q] - 2**40 >= k,
            "the mask_mod cannot be imported: it uses the number 1099511627776, and numbers of a rule have 32 bits; "
            r"capture it as a scalar, limit = torch.tensor\(1099511627776\), made outside",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", refusals())
def test_what_cannot_be_imported_is_refused_where_it_is_defined(name: str) -> None:
    predicate, message = refusals()[name]
    with pytest.raises(SpecError, match=message) as raised:
        cmir.from_mask_mod(predicate)
    assert raised.value.location is not None
    assert raised.value.location.file == __file__


def test_wide_numbers_are_captured() -> None:
    limit = torch.tensor(2**40)
    spec = cmir.from_mask_mod(lambda b, h, q, k: DOC[q] + limit - k > 2**31 - 1)
    assert cmir.compile(spec).dense(rows=N, **spec.captured).all()


def decorated(function):
    @wraps(function)
    def called(*arguments):
        return function(*arguments)

    return called


@decorated
@torch.no_grad()
# Refused at the line below this one.
def nothing_of_decorated(b, h, q, k):
    return None


def test_the_definition_is_below_its_decorators() -> None:
    with pytest.raises(SpecError) as raised:
        cmir.from_mask_mod(nothing_of_decorated)
    assert "def nothing_of_decorated" in str(raised.value).splitlines()[1]


def test_arguments_of_the_importer() -> None:
    with pytest.raises(TypeError, match=r"mask_mod: expected a function of \(b, h, q_idx, kv_idx\), got int"):
        cmir.from_mask_mod(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SpecError, match="captures no table 'docs' to be nondecreasing; its tables: DOC"):
        cmir.from_mask_mod(document, nondecreasing=["docs"])
