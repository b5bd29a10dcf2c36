"""Metadata from a command line: parsed, completed by a draw, and refused with the argument's name."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from viewing import lowered

from cmir.analysis.facts import facts_of, first_violation
from cmir.errors import CmirError, MetadataError
from cmir.view.metadata import complete, parse_metadata


def test_forms(tmp_path: Path):
    table, everything = tmp_path / "table.json", tmp_path / "all.json"
    table.write_text("[1, 2]")
    everything.write_text('{"a": 1, "b": [[1, 2]]}')
    assert parse_metadata(["h=24", "s=0,0,3", "t=[[1,2],[3,4]]", f"f=@{table}", "one=5,"[:-1]]) == {
        "h": 24,
        "s": [0, 0, 3],
        "t": [[1, 2], [3, 4]],
        "f": [1, 2],
        "one": 5,
    }
    assert parse_metadata([f"@{everything}", "c=-3"]) == {"a": 1, "b": [[1, 2]], "c": -3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h", "--meta h: expected NAME=INT, NAME=INT,INT,.., NAME=@FILE.json or @FILE.json"),
        ("h=x", "--meta h=x: expected an int, ints with commas, JSON or @FILE.json after '='"),
        ("h=1,,2", "--meta h=1,,2: expected an int, ints with commas, JSON or @FILE.json after '='"),
        ("h=[1", "--meta h=[1: expected an int, ints with commas, JSON or @FILE.json after '='"),
        ("h=@missing.json", "--meta h=@missing.json: cannot read 'missing.json': No such file or directory"),
        ("1h=2", "--meta 1h=2: expected NAME=INT, NAME=INT,INT,.., NAME=@FILE.json or @FILE.json"),
    ],
)
def test_texts_that_are_refused(text: str, message: str):
    with pytest.raises(CmirError) as raised:
        parse_metadata([text])
    assert str(raised.value) == message


def test_files_that_are_refused(tmp_path: Path):
    path = tmp_path / "f.json"
    path.write_text("{")
    with pytest.raises(CmirError, match="is not JSON"):
        parse_metadata([f"h=@{path}"])
    path.write_text("[1]")
    with pytest.raises(CmirError, match="expected a JSON object"):
        parse_metadata([f"@{path}"])
    with pytest.raises(CmirError, match="'h' is given twice"):
        parse_metadata(["h=1", "h=2"])


@pytest.mark.parametrize("name", ["hstu", "shared_prompt", "topk_blocks", "vertical_slash", "flamingo", "clear"])
def test_what_is_left_out_is_drawn_around_what_is_given(name: str):
    facts = facts_of(lowered(name).spec)
    for seed in range(5):
        drawn = complete(facts, None, None, {}, seed)
        assert first_violation(facts, drawn.env) is None
        # What is printed gives the same again.
        words = drawn.arguments()
        pairs = dict(zip(words[::2], words[1::2], strict=True))
        texts = [b for a, b in zip(words[::2], words[1::2], strict=True) if a == "--meta"]
        again = complete(facts, int(pairs["--rows"]), int(pairs["--cols"]), parse_metadata(texts), seed=99)
        assert again.drawn == () and again.env.keys() == drawn.env.keys()
        for key, value in drawn.env.items():
            same = again.env[key]
            assert np.array_equal(getattr(value, "values", value), getattr(same, "values", same))


def test_what_is_drawn_is_said_and_long_values_are_cut():
    facts = facts_of(lowered("hstu").spec)
    assert complete(facts, 5, None, {"history": 5}, 4).said(4).startswith("drawn: --meta start=")
    drawn = complete(facts, 1000, None, {"history": 10}, 4)
    line = drawn.said(4)
    (value,) = drawn.arguments()[1:]
    shown = line.removeprefix("drawn: --meta ").partition("..  (")[0]
    assert value.startswith(shown) and shown.endswith(",") and 380 < len(shown) <= 400
    assert line.endswith("..  (a value is cut; --seed 4 draws the same)")
    two = replace(drawn, env={**drawn.env, "history": drawn.env["start"]}, drawn=("start", "history"))
    assert two.said(7).endswith("  (2 values are cut; --seed 7 draws the same)")


def test_given_values_are_kept():
    facts = facts_of(lowered("hstu").spec)
    found = complete(facts, 20, None, {"history": 9}, 4)
    assert (found.env["rows"], found.env["cols"], found.env["history"]) == (20, 20, 9)
    assert found.drawn == ("start",)


@pytest.mark.parametrize(
    ("rows", "given", "message"),
    [
        (9, {"history": 20}, "the metadata break the fact 'history <= rows': history=20, rows=9"),
        (9, {"histry": 2}, "no metadatum 'histry', did you mean 'history'?"),
        (9, {"history": [1]}, r"metadatum 'history' of mask 'hstu': expected an int, got int64 of shape \(1,\)"),
        (9, {"start": 3}, "metadatum 'start' of mask 'hstu': expected a 1-D sequence of 9 ints, one per row, got 3"),
        (
            2,
            {"start": [[1, 2], [3, 4]]},
            r"expected a 1-D sequence of 2 ints, one per row, got int64 of shape \(2, 2\)",
        ),
        (4, {"history": 2, "start": [0, 0, 1, 3]}, "the metadata break the fact 'history <= start"),
        (4, {"start": [0, 0]}, "expected a 1-D sequence of 4 ints, one per row, got int64 of shape"),
        (None, {"history": 2**40}, "metadatum 'history' of mask 'hstu': expected an int of 32 bits, got 1099511627776"),
        (None, {"history": 2**30}, "no metadata that satisfy the facts were found"),
    ],
)
def test_values_that_are_refused(rows: int | None, given: dict[str, object], message: str):
    with pytest.raises(MetadataError, match=message):
        complete(facts_of(lowered("hstu").spec), rows, None, json.loads(json.dumps(given)))


def test_a_table_says_how_many_rows_there_are():
    found = complete(facts_of(lowered("hstu").spec), None, None, {"start": [0, 0, 0, 3, 3]})
    assert (found.env["rows"], found.env["cols"]) == (5, 5)
    assert found.drawn == ("rows", "cols", "history")


def test_too_many_pairs_are_refused_before_they_are_drawn():
    with pytest.raises(CmirError, match="pairs are too many to look at"):
        complete(facts_of(lowered("hstu").spec), 2**30, None, {})
