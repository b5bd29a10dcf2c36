"""Clauses are followed back to the lines that a user wrote, and forward into every stage."""

from viewing import lowered

from cmir.view.load import lower
from cmir.view.provenance import clause_lines, keys_of_lines, keys_of_source


def clauses_of_mask(name: str) -> dict[str, tuple[int, ...]]:
    mask = lowered(name)
    return clause_lines(mask.surface, mask.spec)


def test_a_clause_is_made_of_the_comparisons_that_give_its_literals():
    # zoo/hstu.mlir: 9 and 17 are j <= i, 14 is j < history, 16 is start[i] <= j
    assert clauses_of_mask("hstu") == {"history.0": (9,), "candidate.0": (14,), "candidate.1": (16, 17)}


def test_values_of_exists_come_from_its_body():
    lines = clauses_of_mask("tree_any_order")
    assert lines["all.1"] == lines["all.4"] == (11,)


def test_every_clause_comes_from_somewhere():
    for name in ("hstu_meta", "clear", "gemma3", "strided", "block_diffusion", "vertical_slash"):
        assert all(clauses_of_mask(name).values())


def test_clauses_as_text_are_their_own_lines():
    text = (
        "maskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i and i - j < 4\n"
        "    maskspec.clause j < 2 and j <= i\n  }\n}\n"
    )
    mask = lower(text, "m.mlir")
    found = clause_lines(mask.surface, mask.spec)
    assert found["all.0"] == (3, 4)  # the second shares a literal of it
    keys = keys_of_source(text, mask.surface, found)
    assert keys[1] == ("all",) and "all.0" in keys[2] and "all.1" in keys[3] and keys[4] == ()


def test_a_rule_in_another_order_of_tokens_comes_from_its_region():
    text = (
        "maskspec.spec @m() {\n  maskspec.layout rows, cols = zigzag(of = 2)\n"
        "  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i\n  }\n}\n"
    )
    mask = lower(text, "m.mlir")
    assert {*clause_lines(mask.surface, mask.spec).values()} <= {(3, 4), (4,)}


def test_every_stage_names_the_clauses():
    stages = {stage.name: keys_of_lines(stage.text) for stage in lowered("hstu").stages}
    assert [*stages] == [
        *("--dnf-normalize", "--extract-intervals", "--canonicalize-intervals", "--merge-slots", "--transpose"),
        *("--choose-axis", "--lower-descriptor", "--lower-attention", "-t triton"),
    ]
    for keys in stages.values():
        assert {"history.0", "candidate.0", "candidate.1"} <= {k for line in keys for k in line}


def test_a_comment_speaks_of_the_line_after_it():
    assert keys_of_lines("    # slot 0: region a clause 1\n    seen |= x\n    y\n") == [("a.1",), ("a.1",), ()]


def test_only_line_feeds_end_a_line():
    text = (
        "// a\u2028b\x0c\x0bc\nmaskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n"
        "    maskspec.clause j <= i\n  }\n}\n"
    )
    mask = lower(text, "m.mlir")
    keys = keys_of_source(text, mask.surface, clause_lines(mask.surface, mask.spec))
    assert keys == [(), (), ("all",), ("all.0",), (), ()]
