"""Masks that the zoo does not have, written in Python: bounded where theory says so, and right always."""

from collections.abc import Callable

import pytest
from draws import check_intervals, draws

import cmir

Slots = tuple[int | None, int | None]


def packed_prefix_lm() -> tuple[cmir.MaskSpec, Slots]:
    """Packed documents, each a prefix that sees itself both ways and a causal rest."""
    spec = cmir.MaskSpec("packed_prefix_lm")
    i, j, rows, cols = spec.i, spec.j, spec.rows, spec.cols
    start, prefix = spec.table("start", per="row"), spec.table("prefix", per="row")
    spec.assume(rows == cols, start[i] >= 0, start[i] <= i, start[start[i]] == start[i], start.nondecreasing())
    spec.assume(start[i] <= prefix[i], prefix[i] <= cols, prefix[i] == prefix[start[i]], prefix.nondecreasing())
    spec.assume((prefix[i - 1] <= i) | (start[i] < i), rows=(1, rows))  # a prefix ends in its document
    spec.region("all", 0, rows, visible=(start[i] <= j) & ((j <= i) | (j < prefix[i])))
    # A row past a prefix that would reach into the next document sees what the rule says all the same.
    return spec, (1, 1)


def chunks_with_sinks() -> tuple[cmir.MaskSpec, Slots]:
    """A chunk of 8, causally, and the first 3 tokens of all."""
    spec = cmir.MaskSpec("chunks_with_sinks")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=(j <= i) & ((i // 8 == j // 8) | (j < 3)))
    return spec, (2, 1)


def frames_or_causal() -> tuple[cmir.MaskSpec, Slots]:
    """Frame causal in other words: what is before, and one's own frame."""
    spec = cmir.MaskSpec("frames_or_causal")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=(j <= i) | (i // 6 == j // 6))
    return spec, (1, 1)


def dilated_documents() -> tuple[cmir.MaskSpec, Slots]:
    """Every third key of the last ten, in packed documents."""
    spec = cmir.MaskSpec("dilated_documents")
    i, j = spec.i, spec.j
    start = spec.table("start", per="row")
    spec.assume(spec.rows == spec.cols, start[i] >= 0, start[i] <= i, start.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(start[i] <= j) & (j <= i) & (i - j < 10) & ((i - j) % 3 == 0))
    return spec, (4, 4)


def neighbourhood_3d() -> tuple[cmir.MaskSpec, Slots]:
    """Video: a token of 4 x 5 x 6 sees the 3 x 3 x 3 around it, cut off at the edges."""
    spec = cmir.MaskSpec("neighbourhood_3d")
    i, j = spec.i, spec.j
    frames, height, width = spec.static("frames", 4), spec.static("height", 5), spec.static("width", 6)
    spec.assume(spec.rows == frames * height * width, spec.cols == spec.rows)
    t = abs(i // (height * width) - j // (height * width)) <= 1
    y = abs(i // width % height - j // width % height) <= 1
    x = abs(i % width - j % width) <= 1
    spec.region("all", 0, spec.rows, visible=t & y & x)
    return spec, (9, 9)


def growing_window() -> tuple[cmir.MaskSpec, Slots]:
    """Row i sees the last w[i] keys; a window grows by one key a row at most, so that what left it stays out."""
    spec = cmir.MaskSpec("growing_window")
    i, j = spec.i, spec.j
    w = spec.table("w", per="row")
    spec.assume(w[i + 1] <= w[i] + 1, rows=(0, spec.rows - 1))
    spec.region("all", 0, spec.rows, visible=(j <= i) & (i - j < w[i]))
    return spec, (1, 1)


def any_window() -> tuple[cmir.MaskSpec, Slots]:
    """The same without the fact: a key can come back any number of times."""
    spec = cmir.MaskSpec("any_window")
    i, j = spec.i, spec.j
    w = spec.table("w", per="row")
    spec.region("all", 0, spec.rows, visible=(j <= i) & (i - j < w[i]))
    return spec, (1, None)


def hidden_spans() -> tuple[cmir.MaskSpec, Slots]:
    """QK-sparse by row: the span [s, e) that row i stands in is hidden from it; outside of spans s = e = i + 1."""
    spec = cmir.MaskSpec("hidden_spans")
    i, j = spec.i, spec.j
    s, e = spec.table("s", per="row"), spec.table("e", per="row")
    spec.assume(i < e[i], s.nondecreasing(), e.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(j <= i) & ~((s[i] <= j) & (j < e[i])))
    return spec, (1, 1)


def look_back_blocks() -> tuple[cmir.MaskSpec, Slots]:
    """Block-local attention that looks one block back (Reformer, local attention in T5's long variants)."""
    spec = cmir.MaskSpec("look_back_blocks")
    i, j = spec.i, spec.j
    spec.region("all", 0, spec.rows, visible=(j <= i) & spec.exists(0, 1, lambda d: j // 7 == i // 7 - d))
    return spec, (1, 1)


def transfusion() -> tuple[cmir.MaskSpec, Slots]:
    """Transfusion: causal, and images see themselves both ways."""
    spec = cmir.MaskSpec("transfusion")
    i, j, cols = spec.i, spec.j, spec.cols
    image, end = spec.table("image", per="row"), spec.table("image_end", per="row")
    spec.assume(spec.rows == cols, image[i] >= 0, image[i] <= i, i < end[i], end[i] <= cols)
    spec.assume(image.nondecreasing(), end.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(j <= i) | ((image[i] <= j) & (j < end[i])))
    return spec, (1, 1)


def sorted_buckets() -> tuple[cmir.MaskSpec, Slots]:
    """Reformer's hash buckets after sorting: a bucket sees itself and the one before."""
    spec = cmir.MaskSpec("sorted_buckets")
    i, j = spec.i, spec.j
    bucket = spec.table("bucket", per="free")
    spec.assume(bucket.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(bucket[j] <= bucket[i]) & (bucket[i] <= bucket[j] + 1))
    return spec, (1, 1)


def two_level_prompt() -> tuple[cmir.MaskSpec, Slots]:
    """A pack is a prompt, then questions, each with answers: an answer sees the prompt, its question and itself."""
    spec = cmir.MaskSpec("two_level_prompt")
    i, j = spec.i, spec.j
    prompt_end = spec.scalar("prompt_end")
    question, question_end, own = (spec.table(name, per="row") for name in ("question", "question_end", "own"))
    answers = (prompt_end, spec.rows)
    spec.assume(spec.rows == spec.cols, prompt_end >= 0, prompt_end <= spec.rows)
    spec.assume(prompt_end <= question[i], question[i] <= own[i], own[i] <= i, rows=answers)
    spec.assume(question[i] <= question_end[i], question_end[i] == question_end[question[i]], rows=answers)
    spec.assume(question[question[i]] == question[i], rows=answers)
    spec.assume(*(table.nondecreasing(over=answers) for table in (question, question_end, own)))
    in_question = (question[i] <= j) & (j < question_end[i])
    spec.region("all", prompt_end, spec.rows, visible=(j <= i) & ((j < prompt_end) | in_question | (own[i] <= j)))
    return spec, (3, 1)


MASKS: list[Callable[[], tuple[cmir.MaskSpec, Slots]]] = [
    *(packed_prefix_lm, chunks_with_sinks, frames_or_causal, dilated_documents, neighbourhood_3d, growing_window),
    *(any_window, hidden_spans, look_back_blocks, transfusion, sorted_buckets, two_level_prompt),
]


@pytest.mark.parametrize("make", MASKS, ids=lambda make: make.__name__)
def test_masks_of_a_users_own(make: Callable[[], tuple[cmir.MaskSpec, Slots]]) -> None:
    spec, slots = make()
    mask = cmir.compile(spec)
    for metadata in draws(mask, 60, size=30):
        check_intervals(mask, metadata)
    assert tuple(mask.slots.values()) == slots
