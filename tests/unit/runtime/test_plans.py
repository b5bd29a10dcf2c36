# pyright: basic
"""`describe` checks a form of arguments once; what it must look at every time, it does."""

import numpy as np
import pytest
import torch

import cmir
from cmir.errors import MetadataError
from cmir.runtime import describing


@pytest.fixture
def mask():
    spec = cmir.MaskSpec("planned")
    i, j, rows = spec.i, spec.j, spec.rows
    window = spec.scalar("window")
    start = spec.table("start", per="row")
    spec.assume(window >= 1, window <= rows)
    spec.region("all", 0, rows, visible=(start[i] <= j) & (j <= i) & (i - j < window))
    compiled = cmir.compile(spec)
    compiled._describer.plans.clear()
    return compiled


def starts(*values: int, dtype=torch.int32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def check(mask, descriptor, **metadata) -> None:
    rows = metadata.pop("rows")
    table = descriptor.check().row_table[0]
    assert np.array_equal(table.numpy(), mask.intervals(rows=rows, **metadata))


def test_values_may_change_from_call_to_call(mask) -> None:
    for window in (1, 3, 4):
        for start in (starts(0, 0, 2, 2), starts(0, 1, 1, 3)):
            check(mask, mask.describe(rows=4, window=window, start=start), rows=4, window=window, start=start)
    assert len(mask._describer.plans) == 1


def test_each_form_has_its_own(mask) -> None:
    calls = [
        dict(rows=4, window=2, start=starts(0, 0, 2, 2)),
        dict(rows=3, window=2, start=starts(0, 0, 2)),
        dict(rows=3, window=2, start=starts(0, 0, 2, dtype=torch.int64)),
        dict(rows=3, window=torch.tensor(2), start=starts(0, 0, 2)),
    ]
    for _ in range(2):
        for call in calls:
            check(mask, mask.describe(**call), **call)
    assert len(mask._describer.plans) == len(calls)
    assert mask.describe(**calls[0], tile=(16, 64)).tile == (16, 64)
    assert mask.describe(**calls[0]).tile == (32, 32)


def test_batches_of_one_form(mask) -> None:
    first = mask.describe(rows=2, window=torch.tensor([1, 2]), start=torch.tensor([[0, 0], [0, 1]])).check()
    second = mask.describe(rows=2, window=torch.tensor([2, 2]), start=torch.tensor([[0, 0], [0, 0]])).check()
    assert (first.batch, second.batch) == ((2,), (2,))
    assert (first.area.tolist(), second.area.tolist()) == ([2, 2], [3, 3])


def test_values_that_break_something_are_still_found(mask) -> None:
    good = dict(rows=4, window=2, start=starts(0, 0, 2, 2))
    mask.describe(**good)
    with pytest.raises(MetadataError, match="break the fact"):
        mask.describe(**good | {"window": 5})
    with pytest.raises(MetadataError, match="break the fact"):
        mask.describe(**good | {"window": 2**40})
    with pytest.raises(MetadataError, match="'window': expected an int, or"):
        mask.describe(**good | {"window": 2.0})
    with pytest.raises(MetadataError, match="'rows': expected an int"):
        mask.describe(**good | {"rows": True})
    with pytest.raises(MetadataError, match="no metadatum 'windows'"):
        mask.describe(**good, windows=2)
    check(mask, mask.describe(**good | {"window": np.int64(3)}), **good | {"window": 3})
    check(mask, mask.describe(**good | {"window": True}), **good | {"window": 1})


def test_metadata_that_had_to_be_copied_are_copied_every_time(mask) -> None:
    for wide in (torch.tensor([0, 9, 0, 9, 2, 9, 2, 9]), torch.tensor([0, 9, 1, 9, 1, 9, 3, 9])):
        check(mask, mask.describe(rows=4, window=4, start=wide[::2]), rows=4, window=4, start=wide[::2])
    assert not mask._describer.plans


def test_no_more_forms_are_kept_than_stated_and_no_tensor(mask, monkeypatch) -> None:
    monkeypatch.setattr(describing, "MAX_PLANS", 3)
    for rows in range(1, 9):
        mask.describe(rows=rows, window=1, start=torch.zeros(rows, dtype=torch.int32))
    assert len(mask._describer.plans) == 3
    assert not any(isinstance(x, torch.Tensor) for plan in mask._describer.plans.values() for x in plan.between)


def test_a_tile_of_floats_is_no_tile_of_ints() -> None:
    """16.0 == 16, and both have one hash: a plan for the one must not serve the other."""
    mask = cmir.zoo.load("causal")
    mask.describe(rows=8, tile=(16, 16))
    with pytest.raises(cmir.MetadataError, match=r"expected a tile of two of .*; got \(16\.0, 16\)"):
        mask.describe(rows=8, tile=(16.0, 16))  # pyright: ignore[reportArgumentType]
