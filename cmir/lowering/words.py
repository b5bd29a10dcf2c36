"""Prints the visibility test of a Hopper kernel: the source of its `prepare_*`, `words_*` and `select_*` hooks, and of
`hull_backward`, the rows between which the keys of a tile see all that they see.

A warpgroup owns 64 FIXED positions (query rows in the forward pass, keys in the backward pass) and walks over N MOVING
ones. It never compares a pair: what it sees of a tile becomes words of one bit a pair, and one select reads them
(skeletons/hopper.py has the three forms). Two producers make the words:

    intervals   bits [lo - start, hi - start) of a word, clamped: two differences and two shifts a slot
    memory      the words that the preprocess kernel packed

- *words* of the FIXED axis: line words. Endpoints are loaded once, in `prepare_*`, as counts of the columns that a
  thread has below them; slots are united by `or`.
- *live words*: many slots of which a tile has few. The tile's own, from the live word of its list entry, are loaded and
  united in a loop.
- a table of the MOVING axis, where the FIXED one is unbounded: across words, one of the endpoints of every column.
- *bits*: packed words of the rows, read as packed words by rows, as across words by columns.

`words_*` runs a tile ahead of its use, so that what it loads is there in time; `select_*` gets what it returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from cmir.dialects.attention import WordRole
from cmir.lowering.visibility import Axis

OWN_AXIS: dict[WordRole, Axis] = {"forward": "rows", "backward": "cols"}
"""The axis whose positions are FIXED in a kernel."""


AT_ONCE = 3
"""Live slots whose endpoints are loaded together: about as many as a tile has."""


NO_HULL = ("return 0, rows",)
"""Where it is not known which rows the keys of a tile see."""


def word_axis(kernel: WordRole, row_slots: int | None, col_slots: int | None) -> Axis:
    """Whose table `kernel` makes its words of: its own axis's wherever that is bounded (None: it is not)."""
    own = OWN_AXIS[kernel]
    other: Axis = "cols" if own == "rows" else "rows"
    return own if {"rows": row_slots, "cols": col_slots}[own] is not None else other


def interval_hooks(
    kernel: WordRole, axis: Axis, slots: int, live: bool, comments: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The hooks of `kernel` for words of the table of `axis` with `slots` slots: hook name -> source.

    `comments` says for each slot what fills it, one string per Region and clause; it is printed where the slot is
    read. Raises ValueError if there is not one list per slot.
    """
    if len(comments) != slots:
        raise ValueError(f"{slots} slots, but comments for {len(comments)}")
    notes = [f"slot {slot}: {'; '.join(comment)}".removesuffix(": ") for slot, comment in enumerate(comments)]
    own = axis == OWN_AXIS[kernel]
    prepare = _own_endpoints(notes) if own and not live else ["return (n_table,)"]
    if own:
        word, none, position = "line_word({lo}, {hi}, start, N)", "no_line_word(N)", "lines(first, N)"
    else:
        word, none, position = "across_word({lo}, {hi}, first)", "no_across_word(N)", "columns(start, N)"
    if live:
        words = _live_words(notes, word, none, position)
    elif own:
        words = _united(notes, [f"ends_word(slots[{2 * k}], slots[{2 * k + 1}], start)" for k in range(slots)], none)
    else:
        ends = [("lo", "hi") for _ in notes]
        words = [f"position = {position}", "inside = position < n_table"] if slots else []
        words += _united(notes, [word.format(lo=lo, hi=hi) for lo, hi in ends], none, loads=True)
    hull = _own_hull(notes) if own and not live and slots else NO_HULL
    return _hooks(kernel, prepare, words, "select_lines" if own else "select_across", hull)


def packed_hooks(kernel: WordRole, comment: str) -> dict[str, str]:
    """The hooks of `kernel` for packed bits, `table` with `n_table` words a row: hook name -> source.

    Every listed tile has all of its words, so that nothing is masked: those past the last row or column are zero.
    """
    if OWN_AXIS[kernel] == "rows":
        words = [
            "row = packed_lines(first, N) * n_table + start // 32",
            "word = gl.arange(0, N // 32, gl.SliceLayout(0, packed_layout(N)))",
            "return gl.load(table + row[:, None] + word[None, :])",
        ]
        select = "select_packed"
    else:
        words = [
            "word = first // 32 + gl.arange(0, 2, gl.SliceLayout(1, across_layout()))",
            "return gl.load(table + (columns(start, N) * n_table)[None, :] + word[:, None])",
        ]
        select = "select_across"
    return _hooks(kernel, ["return (n_table,)"], [f"# bits: {comment}", *words], select)


def _hooks(
    kernel: WordRole, prepare: Sequence[str], words: Sequence[str], select: str, hull: Sequence[str] = NO_HULL
) -> dict[str, str]:
    parts = {
        f"prepare_{kernel}": ("table, first, n_table, N: gl.constexpr", prepare),
        f"words_{kernel}": ("slots, table, first, start, n_table, live, N: gl.constexpr", words),
        f"select_{kernel}": ("score, words, N: gl.constexpr", [f"return {select}(score, words, N)"]),
    }
    if kernel == "backward":
        parts["hull_backward"] = ("table, first, n_table, rows", hull)
    return {
        name: "\n".join(["@gluon.jit", f"def {name}({parameters}):", *(f"    {line}" for line in body)]) + "\n"
        for name, (parameters, body) in parts.items()
    }


def _load(end: int, slot: str) -> str:
    return f"gl.load(table + (2 * {slot} + {end}) * n_table + position, mask=inside, other=0)"


def _own_endpoints(notes: Sequence[str]) -> list[str]:
    if not notes:
        return ["return (n_table,)"]
    body = ["position = lines(first, N)", "inside = position < n_table"]
    for slot, note in enumerate(notes):
        body.append(f"# {note}")
        body += [f"{name}{slot} = line_ends({_load(end, str(slot))}, N)" for end, name in enumerate(("lo", "hi"))]
    return [*body, f"return {', '.join(f'lo{slot}, hi{slot}' for slot in range(len(notes)))}"]


def _own_hull(notes: Sequence[str]) -> list[str]:
    body = [
        "position = first + gl.arange(0, KEYS, gl.BlockedLayout([1], [32], [4], [0]))",
        "inside = position < n_table",
    ]
    for slot, note in enumerate(notes):
        low, high = "gl.where(lo < hi, lo, rows)", "gl.where(lo < hi, hi, 0)"
        if slot:
            low, high = f"gl.minimum(low, {low})", f"gl.maximum(high, {high})"
        body += [f"# {note}", f"lo = {_load(0, str(slot))}", f"hi = {_load(1, str(slot))}"]
        body += [f"low = {low}", f"high = {high}"]
    return [*body, "return gl.min(low, 0), gl.max(high, 0)"]


def _united(notes: Sequence[str], words: Sequence[str], none: str, loads: bool = False) -> list[str]:
    body: list[str] = []
    for slot, (note, word) in enumerate(zip(notes, words, strict=True)):
        ends = [f"lo = {_load(0, str(slot))}", f"hi = {_load(1, str(slot))}"] if loads else []
        body += [f"# {note}", *ends, f"seen {'|=' if slot else '='} {word}"]
    return [*(body or [f"seen = {none}"]), "return seen"]


def _live_words(notes: Sequence[str], word: str, none: str, position: str) -> list[str]:
    """Slots are taken by threes, whose loads are in flight together: one after another would wait for each."""
    ends: list[str] = []
    for k in range(AT_ONCE):
        ends.append(f"    real = position < gl.where(slot + {k} < end, n_table, 0)")
        for end, name in enumerate(("lo", "hi")):
            where = f"table + (2 * slot + {2 * k + end}) * n_table + position"
            ends.append(f"    {name}{k} = gl.load({where}, mask=real, other=0)")
    return [
        *(f"# {note}" for note in notes),
        f"position = {position}",
        f"seen = {none}",
        "entry = gl.load(live)",
        "end = (entry >> 12) & 0xFFF",
        f"for slot in range(entry & 0xFFF, end, {AT_ONCE}):",
        *ends,
        *(f"    seen |= {word.format(lo=f'lo{k}', hi=f'hi{k}')}" for k in range(AT_ONCE)),
        "return seen",
    ]
