# pyright: basic
"""What `desc.check()` says of metadata that break a fact: which, where it was declared, at which sequence, head and
row, and the values there. Free tables that are too short are found like broken facts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmir
from cmir import zoo

TILE = (16, 16)
START = np.array([0, 0, 0, 3, 3, 5, 5, 7])


def ints(values: Any) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.int32)


def refused(mask: cmir.CompiledMask, **arguments: Any) -> str:
    """What check says of a descriptor that must not pass; and that CMIR_CHECK=1 says the same at once."""
    desc = mask.describe(**arguments, tile=TILE)
    with pytest.raises(cmir.MetadataError) as found:
        desc.check()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMIR_CHECK", "1")
        with pytest.raises(cmir.MetadataError) as at_once:
            mask.describe(**arguments, tile=TILE)
    assert str(found.value) == str(at_once.value)
    return str(found.value)


def test_the_fact_its_place_the_head_the_row_and_the_values() -> None:
    start = np.tile(START, (2, 3, 1))
    start[1, 2, 5] = 6
    message = refused(zoo.load("hstu"), rows=8, history=ints([3]), start=ints(start))
    assert message == (
        "mask 'hstu': the metadata of mask 5 (sequence 1, head 2) break the declared fact `start[i] <= i for i in "
        f"[history, rows)` at row 5, where start[5] = 6 (declared at {zoo.path('hstu')}:5:3)"
    )


def test_scalars_and_lengths_are_shown() -> None:
    message = refused(zoo.load("hstu"), rows=8, history=ints([3, 9]), start=ints(START))
    assert "of mask 1 break the declared fact `history <= rows`, where history = 9, rows = 8 (declared at" in message


def test_neighbours_of_a_monotone_table() -> None:
    message = refused(zoo.load("document"), rows=4, document=ints([0, 2, 1, 3]))
    assert "`document nondecreasing` at entry 1, where document[1] = 2, document[2] = 1 (declared at" in message


def test_facts_of_python_have_the_place_of_the_python() -> None:
    spec = cmir.MaskSpec("here")
    t = spec.table("t", per="col")
    spec.assume(t[spec.j] <= spec.j)
    spec.region("all", 0, spec.rows, visible=t[spec.j] <= spec.i)
    message = refused(cmir.compile(spec), rows=4, t=ints([0, 1, 7, 0]))
    assert f"`t[j] <= j` at column 2, where t[2] = 7 (declared at {Path(__file__)}:" in message


def test_facts_of_a_pack_show_what_the_user_gave() -> None:
    arguments = {"rows": 8, "cu_seqlens": ints([0, 3, 8]), "start": ints([0, 1, 2, 0, 0, 2, 3, 3])}
    message = refused(zoo.load("hstu"), history=ints([1, 6]), **arguments)
    assert "`history <= rows, in every sequence` at entry 1, where history[1] = 6 (declared at" in message
    arguments["cu_seqlens"] = ints([0, 5, 4])
    message = refused(zoo.load("hstu"), history=ints([1, 1]), **arguments)
    assert "`cu_seqlens nondecreasing` at entry 1, where cu_seqlens[1] = 5, cu_seqlens[2] = 4" in message


def test_values_that_were_changed_since_are_not_taken_for_those_that_broke() -> None:
    start = ints(START)
    start[5] = 6
    desc = zoo.load("hstu").describe(rows=8, history=ints(3), start=start, tile=TILE)
    start[5] = 5
    with pytest.raises(cmir.MetadataError, match=r"start\[5\] = 5; the metadata have been changed since"):
        desc.check()


@pytest.mark.parametrize("length", [1, 3, 7])
def test_a_free_table_that_is_too_short(length: int) -> None:
    document = ints(np.arange(8) // 3)
    zoo.load("document").describe(rows=8, document=document, tile=TILE).check()
    message = refused(zoo.load("document"), rows=8, document=document[:length])
    assert message == (
        f"mask 'document': the metadata break the fact `document[i] is an entry of document` at row {length}, where "
        f"length of document = {length}"
    )
    with pytest.raises(cmir.MetadataError, match=f"is an entry of document' at row {length}"):
        zoo.load("document").dense(rows=8, document=document[:length])


def test_a_sequence_of_a_pack_has_too_few_entries() -> None:
    document = ints([0, 0, 1, 0, 1, 1, 2])
    given: dict[str, Any] = {"rows": 7, "cu_seqlens": ints([0, 3, 7])}
    zoo.load("document").describe(document=(document, ints([0, 3, 7])), **given, tile=TILE).check()
    message = refused(zoo.load("document"), document=(document[:6], ints([0, 3, 6])), **given)
    assert "`document[i] is an entry of document, in every sequence` at row 6" in message


def limits(rule: Any) -> cmir.CompiledMask:
    """A mask over a free table `f` and a scalar `n`."""
    spec = cmir.MaskSpec("limits")
    f, n = spec.table("f", per="free"), spec.scalar("n")
    spec.region("all", 0, spec.rows, visible=rule(spec, f, n, spec.i, spec.j))
    return cmir.compile(spec)


@pytest.mark.parametrize(
    ("rule", "enough"),
    [
        (lambda spec, f, n, i, j: j < f[i], 8),
        (lambda spec, f, n, i, j: j < f[i + 1], 9),
        (lambda spec, f, n, i, j: j < f[i - 1], 7),  # before the first entry the nearest one is meant
        (lambda spec, f, n, i, j: (i < n) & (j < f[i]), 5),  # read where i < n alone
        (lambda spec, f, n, i, j: (j <= i) & (i <= f[j]), 8),  # no row sees a column past the last row
        (lambda spec, f, n, i, j: (j <= n) & (f[j] <= i), 6),
        (lambda spec, f, n, i, j: j < spec.where(i < n, f[i], 3), 5),
        (lambda spec, f, n, i, j: j < f[n], 6),
        (lambda spec, f, n, i, j: j < f[i // 4], 2),
    ],
)
def test_as_many_entries_as_the_rule_reads_and_no_more(rule: Any, enough: int) -> None:
    mask, f = limits(rule), np.arange(20) % 6
    for length in range(1, 12):
        given: dict[str, Any] = {"rows": 8, "cols": 10, "n": 5, "f": ints(f[:length])}
        desc = mask.describe(**given, tile=TILE)
        if length >= enough:
            desc.check()
            assert desc.area.tolist() == [int(mask.dense(**given).sum())]
        else:
            with pytest.raises(cmir.MetadataError, match="is an entry of f"):
                desc.check()


def test_nothing_is_asked_of_a_table_where_there_are_no_rows() -> None:
    limits(lambda spec, f, n, i, j: j < f[n]).describe(rows=0, cols=4, n=9, f=ints([1]), tile=TILE).check()
