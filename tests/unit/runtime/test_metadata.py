# pyright: basic
"""What metadata are accepted, how they are packed, and what is said about those that do not fit."""

import numpy as np
import pytest
import torch

from cmir.errors import MetadataError
from cmir.runtime.metadata import MAX_LENGTH, pack
from cmir.signature import Parameter, Signature

SIGNATURE = Signature(
    "demo",
    (Parameter("history", "scalar"), Parameter("start", "row"), Parameter("stop", "col"), Parameter("extra", "free")),
    1,
    1,
)


def given(**changes):
    metadata = {"history": 3, "start": ints(5), "stop": ints(7), "extra": ints(4)}
    metadata.update(changes)
    return {name: value for name, value in metadata.items() if value is not None}


def ints(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def read(tensor, stride, z: int, length: int) -> list[int]:
    """What a kernel reads of mask z: `length` adjacent entries from a raw pointer."""
    return torch.as_strided(tensor, (length,), (1,), tensor.storage_offset() + z * stride).tolist()


def test_ints_and_shared_tables() -> None:
    packed = pack(SIGNATURE, 5, 7, given())
    history, history_stride, history_pointer, start, start_stride, *_ = packed.arguments
    assert (history, history_stride, history_pointer) == (3, 0, False)
    assert start_stride == 0
    assert isinstance(start, torch.Tensor)
    assert packed.arguments[-2:] == (0, 4)
    assert (packed.batch, packed.masks, packed.entries, packed.device) == ((), 1, 4, torch.device("cpu"))


@pytest.mark.parametrize(
    ("history", "start", "batch"),
    [
        (torch.tensor(9), ints(5), ()),
        (ints(3), ints(5), (3,)),
        (ints(3), ints(3, 5), (3,)),
        (ints(1), ints(3, 5), (3,)),
        (5, ints(1, 5), (1,)),
        (ints(3, 2), ints(3, 5), (3, 2)),
        (ints(3), ints(1, 2, 5), (3, 2)),
        (ints(1, 2), ints(3, 1, 5), (3, 2)),
        (5, ints(3, 2, 5), (3, 2)),
        (ints(2, 3).T, ints(5), (3, 2)),
        (5, ints(5, 3).T, (3,)),
        (5, ints(2, 3, 5).transpose(0, 1), (3, 2)),
        (ints(1, dtype=torch.int64).expand(3), ints(6, 5)[::2], (3,)),
        (5, ints(3, 9)[:, 2:7], (3,)),
        (5, ints(3, 10)[:, ::2], (3,)),
        (5, ints(3, 4, 5)[:, 1:3], (3, 2)),
        (5, ints(5).expand(3, 2, 5), (3, 2)),
        (5, ints(3, 5)[:, None].expand(3, 2, 5), (3, 2)),
    ],
)
def test_every_mask_reads_its_own(history, start: torch.Tensor, batch: tuple[int, ...]) -> None:
    packed = pack(SIGNATURE, 5, 7, given(history=history, start=start))
    assert packed.batch == batch
    full = (*batch, 1, 1)[:2]

    def expected(value: torch.Tensor, tail: int) -> torch.Tensor:
        lead = value.shape[: value.dim() - tail]
        spread = value.reshape(*lead, *[1] * (2 - len(lead)), *value.shape[len(lead) :])
        return spread.expand(*full, *value.shape[len(lead) :]).flatten(0, 1)

    scalar, scalar_stride, pointer, table, table_stride = packed.arguments[:5]
    for z in range(packed.masks):
        assert read(table, table_stride, z, 5) == expected(start, 1)[z].tolist()
        if pointer:
            assert read(scalar, scalar_stride, z, 1) == [int(expected(history, 0)[z])]
        else:
            assert scalar == history


LISTS = Signature("lists", (Parameter("sel", "row", 3), Parameter("pair", "free", 2)), 1, None)


@pytest.mark.parametrize(
    ("sel", "batch"),
    [
        (ints(5, 3), ()),
        (ints(2, 5, 3), (2,)),
        (ints(2, 4, 5, 3), (2, 4)),
        (ints(2, 3, 5).transpose(1, 2), (2,)),  # numbers are not adjacent
        (ints(2, 5, 6)[..., :3], (2,)),  # entries are not
        (ints(3).expand(2, 5, 3), (2,)),
        (ints(2, 9, 3)[:, 2:7], (2,)),
    ],
)
def test_every_mask_reads_its_own_lists(sel: torch.Tensor, batch: tuple[int, ...]) -> None:
    packed = pack(LISTS, 5, 7, {"sel": sel, "pair": ints(4, 2)})
    assert (packed.batch, packed.entries) == (batch, 4)
    table, stride, pair, pair_stride, length = packed.arguments
    assert (pair_stride, length) == (0, 4)
    assert read(pair, 0, 0, 8) == list(range(8))
    for z, mine in enumerate(sel.reshape(-1, 5, 3)):
        assert read(table, stride, z, 15) == mine.flatten().tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sel": ints(5, 4)},
            r"'sel': expected an int32 or int64 tensor \[rows, 3\], \[B, rows, 3\] or \[B, H, rows, 3\], that is 3 "
            r"integers in each entry; got int32 tensor \[5, 4\] on cpu$",
        ),
        ({"sel": ints(5)}, r"'sel': expected an int32 .* \[B, H, rows, 3\]; got int32 tensor \[5\] on cpu$"),
        ({"sel": ints(3, 5)}, r"'sel': .* that is 3 integers in each entry; got int32 tensor \[3, 5\] on cpu$"),
        ({"sel": ints(6, 3)}, r"'sel': .* that is one entry for each of the 5 rows; got int32 tensor \[6, 3\] on cpu$"),
        ({"pair": ints(0, 2)}, r"'pair': expected .* \[n, 2\], .* with n >= 1; got int32 tensor \[0, 2\] on cpu$"),
    ],
)
def test_bad_lists(changes: dict, message: str) -> None:
    with pytest.raises(MetadataError, match=message):
        pack(LISTS, 5, 7, {"sel": ints(5, 3), "pair": ints(4, 2)} | changes)


def test_empty_tables_still_have_memory_to_point_at() -> None:
    packed = pack(SIGNATURE, 0, 0, given(start=ints(0), stop=ints(3, 0)))
    assert packed.batch == (3,)
    start = packed.arguments[3]
    assert isinstance(start, torch.Tensor)
    assert start.numel() == 1
    assert packed.arguments[4] == 0


def test_all_ints_go_where_device_says() -> None:
    signature = Signature("ints", (Parameter("n", "scalar"),), 1, 1)
    assert pack(signature, 1, 1, {"n": 1}, device="meta").device == torch.device("meta")
    assert pack(signature, 1, 1, {"n": 1}, device="cpu").device == torch.device("cpu")


TABLE = r"an int32 or int64 tensor \[rows\], \[B, rows\] or \[B, H, rows\]"
SCALAR = r"an int, or an int32 or int64 tensor \[\], \[B\] or \[B, H\]"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"history": None}, f"mask 'demo' needs metadatum 'history': {SCALAR}; it was not given$"),
        (
            {"history": None, "start": None},
            f"mask 'demo' needs metadata 'history': {SCALAR}; 'start': {TABLE}; they were not given$",
        ),
        (
            {"histroy": 3},
            "mask 'demo' has no metadatum 'histroy', did you mean 'history'? It takes history, start, stop, extra$",
        ),
        ({"xyz": 3}, r"mask 'demo' has no metadatum 'xyz'\. It takes history, start, stop, extra$"),
        ({"history": 1.5}, rf"argument 'history': expected {SCALAR}; got 1\.5 of type float; write torch\.as_tensor"),
        ({"history": True}, f"argument 'history': expected {SCALAR}; got True of type bool"),
        ({"history": 2**31}, "argument 'history': expected an int within int32; got 2147483648$"),
        (
            {"history": torch.tensor(1.0)},
            rf"'history': expected {SCALAR}; got float32 tensor \[\] on cpu; write history\.to\(torch\.int32\)$",
        ),
        (
            {"history": torch.tensor(True)},
            rf"'history': expected {SCALAR}; got bool tensor \[\] on cpu; write history\.to\(torch\.int32\)$",
        ),
        ({"history": ints(1, 2, 3)}, rf"'history': expected {SCALAR}; got int32 tensor \[1, 2, 3\] on cpu$"),
        ({"start": 3}, f"argument 'start': expected {TABLE}; got 3$"),
        (
            {"start": np.zeros(5, np.int32)},
            rf"'start': expected {TABLE}; got ndarray; write torch\.as_tensor\(start, dtype=torch\.int32\)$",
        ),
        ({"start": [1, 2, 3, 4, 5]}, rf"'start': expected {TABLE}; got \[1, 2, 3, 4, 5\] of type list; write torch"),
        (
            {"start": ints(6)},
            rf"'start': expected {TABLE}, that is one entry for each of the 5 rows; got int32 tensor \[6\] on cpu$",
        ),
        ({"stop": ints(2, 5)}, r"'stop': .* for each of the 7 cols; got int32 tensor \[2, 5\] on cpu$"),
        (
            {"start": ints(5).to(torch.int16)},
            rf"'start': expected {TABLE}; got int16 tensor \[5\] on cpu; write start\.to\(torch\.int32\)$",
        ),
        ({"start": torch.tensor(3)}, rf"'start': expected {TABLE}; got int64 tensor \[\] on cpu$"),
        (
            {"start": ints(5).to_sparse()},
            rf"'start': expected {TABLE}, dense; got sparse_coo int32 tensor \[5\] on cpu$",
        ),
        ({"extra": ints(0)}, r"'extra': expected .* \[n\], .* with n >= 1; got int32 tensor \[0\] on cpu$"),
        (
            {"start": ints(5).to("meta")},
            r"'stop': expected a tensor on meta, where 'start' is; got int32 tensor .* cpu$",
        ),
        (
            {"start": ints(2, 5), "stop": ints(3, 7)},
            "'stop': expected 2 sequences, as 'start' has, or 1; got 3$",
        ),
        (
            {"history": ints(2, 4), "start": ints(2, 3, 5)},
            "'start': expected 4 heads, as 'history' has, or 1; got 3$",
        ),
        ({"history": ints(0)}, "'history': expected 1 or more sequences; got 0$"),
        ({"history": ints(256, 256)}, r"at most 65535 masks fit one descriptor; got a batch of \(256, 256\)$"),
    ],
)
def test_bad_metadata(changes: dict, message: str) -> None:
    with pytest.raises(MetadataError, match=message.replace("?", r"\?")):
        pack(SIGNATURE, 5, 7, given(**changes))


@pytest.mark.parametrize(
    ("rows", "cols", "name", "shown"),
    [
        (-1, 7, "rows", "-1"),
        (5, MAX_LENGTH + 1, "cols", "1073741825"),
        (5.0, 7, "rows", "5.0 of type float"),
        (True, 7, "rows", "True of type bool"),
        (5, torch.tensor(7), "cols", r"int64 tensor \[\] on cpu"),
        (np.int64(5), 7, "rows", "int64"),
    ],
)
def test_bad_lengths(rows, cols, name: str, shown: str) -> None:
    message = f"mask 'demo', argument '{name}': expected an int from 0 to 1073741824; got {shown}"
    with pytest.raises(MetadataError, match=message):
        pack(SIGNATURE, rows, cols, given())


def test_device_against_tensors() -> None:
    with pytest.raises(MetadataError, match="'start': expected a tensor on meta, where device= is; got int32 tensor"):
        pack(SIGNATURE, 5, 7, given(), device="meta")
    assert pack(SIGNATURE, 5, 7, given(), device="cpu").device == torch.device("cpu")
