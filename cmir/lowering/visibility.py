"""Prints the visibility test of an attention kernel: the source of its `prepare_*` and `visible_*` hooks.

The kernel owns FIXED positions (rows for `forward` and `dq`, columns for `dkv`) and walks over MOVING ones of the other
axis. It may test the interval table of either axis; one unsigned compare says whether a slot holds a position p:

    lo <= p < hi   iff   (p - lo) <u (hi - lo)          (also right for the empty slot, lo == hi)

- *unrolled*: every slot is tested. A table of the FIXED axis is loaded once, in `prepare_*`; one of the MOVING axis
  with every block.
- *live*: for many slots of which a tile has few. A visit takes up to `LIVE_SLOTS` of the tile's live slots from `begin`
  on, keeps at each position of the table's axis the intervals that meet the block (up to three; the descriptor says how
  many at `most`, and the kernel visits the tile again for more, see skeletons/steps.py), and compares with those alone.
- *bits*: no table but the words that the preprocess kernel packed. A row needs one word for every 32 columns of the
  block; the word of a column is chosen by its place in the block, which the GPU's compiler knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Kernel = Literal["forward", "dq", "dkv"]
Axis = Literal["rows", "cols"]

UNROLLED_SLOTS = 4
"""Most slots of a table that are tested one by one; a table with more is tested live."""

LIVE_SLOTS = 6
"""Live slots that one visit of a tile takes."""

NEAR_SLOTS = 2
"""As many of them are looked at without asking whether there are more."""

FIXED_AXIS: dict[Kernel, Axis] = {"forward": "rows", "dq": "rows", "dkv": "cols"}
"""The axis that a kernel's programs own; its tile lists run over the other one."""


def needs_live_test(slots: int) -> bool:
    """Whether a table of so many slots is better tested live than unrolled."""
    return slots > UNROLLED_SLOTS


def table_axis(kernel: Kernel, row_slots: int | None, col_slots: int | None) -> Axis:
    """Whose table `kernel` tests: the cheaper one; its own axis's at equal cost. None: unbounded, there is no table."""
    own = FIXED_AXIS[kernel]
    other: Axis = "cols" if own == "rows" else "rows"
    slots: dict[Axis, int | None] = {"rows": row_slots, "cols": col_slots}
    return min((own, other), key=lambda axis: _test_cost(slots[axis], axis == own))


def _test_cost(slots: int | None, fixed: bool) -> float:
    """Instructions that testing a table adds to a step, relatively: counted in compiled kernels for Hopper.

    A table of the moving axis costs more: its endpoints are loaded again with every block, and there are more of them
    in a thread's part of a block.
    """
    if slots is None:
        return math.inf
    tested = LIVE_SLOTS if needs_live_test(slots) else slots
    if fixed:
        return 2 * tested if tested == slots else 15
    return 2 + 5 * tested if tested == slots else 26


def visibility_hooks(
    kernel: Kernel, axis: Axis, slots: int, live: bool, comments: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The two hooks of `kernel` for the table of `axis` with `slots` slots: hook name -> source.

    `comments` says for each slot what fills it, one string per Region and clause; it is printed where the slot is
    tested. Raises ValueError if there is not one list per slot.
    """
    if len(comments) != slots:
        raise ValueError(f"{slots} slots, but comments for {len(comments)}")
    notes = [f"slot {slot}: {'; '.join(comment)}".removesuffix(": ") for slot, comment in enumerate(comments)]
    fixed = axis == FIXED_AXIS[kernel]
    if live:
        prepare = _NOTHING if fixed else ["return (tl.min(fixed),)"]
        visible = _live_test(fixed, notes)
    elif fixed:
        prepare, visible = _hoisted_slots(notes), _hoisted_test(notes)
    else:
        prepare, visible = _NOTHING, _moving_test(notes)
    return {
        f"prepare_{kernel}": _function(f"prepare_{kernel}", "table, fixed, n_table", prepare),
        f"visible_{kernel}": _function(
            f"visible_{kernel}", "slots, table, fixed, moving, start, n_table, begin, end, most", visible
        ),
    }


def bits_hooks(kernel: Kernel, comment: str) -> dict[str, str]:
    """The two hooks of `kernel` for packed bits, `table` with `n_table` words a row: hook name -> source.

    Every listed tile has all of its words, so that nothing is masked: those past the last row or column are zero.
    """
    if FIXED_AXIS[kernel] == "rows":
        prepare, columns, down, across = "fixed * n_table", "moving", "[:, None]", "[None, :]"
        first = "table + slots[0] + start // 32"
    else:
        prepare, columns, down, across = "tl.min(fixed) // 32", "fixed", "[None, :]", "[:, None]"
        first = "table + moving * n_table + slots[0]"
    visible = [
        f"# bits: {comment}",
        f"first = {first}",
        f"place = tl.arange(0, {columns}.shape[0])",
        f"word = tl.load(first){down} + tl.zeros_like(place){across}",
        f"for k in tl.static_range(1, {columns}.shape[0] // 32):",
        f"    word = tl.where((place // 32 == k){across}, tl.load(first + k){down}, word)",
        f"return ((word >> ({columns} % 32){across}) & 1) != 0",
    ]
    return {
        f"prepare_{kernel}": _function(f"prepare_{kernel}", "table, fixed, n_table", [f"return ({prepare},)"]),
        f"visible_{kernel}": _function(
            f"visible_{kernel}", "slots, table, fixed, moving, start, n_table, begin, end, most", visible
        ),
    }


_NOTHING = ["return (n_table,)"]

_EMPTY = "tl.zeros([fixed.shape[0], moving.shape[0]], tl.int1)"

# (position tested, how a vector of slot endpoints is spread over [FIXED, MOVING]), by whether the table's axis is fixed
_ORIENTATION = {True: ("moving[None, :]", "[:, None]"), False: ("fixed[:, None]", "[None, :]")}


def _function(name: str, parameters: str, body: Sequence[str]) -> str:
    return "\n".join(["@triton.jit", f"def {name}({parameters}):", *(f"    {line}" for line in body)]) + "\n"


def _load(end: int, slot: str, index: str, mask: str) -> str:
    return f"tl.load(table + (2 * {slot} + {end}) * n_table + {index}, mask={mask}, other=0)"


def _inside(position: str, lo: str, width: str) -> str:
    return f"({position} - {lo}).to(tl.uint32, bitcast=True) < {width}"


def _hoisted_slots(notes: Sequence[str]) -> list[str]:
    if not notes:
        return _NOTHING
    body = ["inside = fixed < n_table"]
    for slot, note in enumerate(notes):
        body.append(f"# {note}")
        body.append(f"lo{slot} = {_load(0, str(slot), 'fixed', 'inside')}")
        body.append(f"width{slot} = ({_load(1, str(slot), 'fixed', 'inside')} - lo{slot}).to(tl.uint32, bitcast=True)")
    values = [f"lo{slot}, width{slot}" for slot in range(len(notes))]
    return [*body, f"return {', '.join(values)}"]


def _hoisted_test(notes: Sequence[str]) -> list[str]:
    position, spread = _ORIENTATION[True]
    body = [f"position = {position}", f"seen = {_EMPTY}"]
    for slot, note in enumerate(notes):
        test = _inside("position", f"slots[{2 * slot}]{spread}", f"slots[{2 * slot + 1}]{spread}")
        body += [f"# {note}", f"seen |= {test}"]
    return [*body, "return seen"]


def _moving_test(notes: Sequence[str]) -> list[str]:
    position, spread = _ORIENTATION[False]
    body = [f"position = {position}", "inside = moving < n_table", f"seen = {_EMPTY}"]
    for slot, note in enumerate(notes):
        body.append(f"# {note}")
        body.append(f"lo = {_load(0, str(slot), 'moving', 'inside')}")
        body.append(f"width = ({_load(1, str(slot), 'moving', 'inside')} - lo).to(tl.uint32, bitcast=True)")
        body.append(f"seen |= {_inside('position', f'lo{spread}', f'width{spread}')}")
    return [*body, "return seen"]


def _live_test(fixed: bool, notes: Sequence[str]) -> list[str]:
    position, spread = _ORIENTATION[fixed]
    index = "fixed" if fixed else "moving"
    low, length = ("start", "moving.shape[0]") if fixed else ("slots[0]", "fixed.shape[0]")
    names = ", ".join(f"{end}{k}" for k in range(3) for end in ("lo", "hi"))

    def keep(first: int, stop: int, indent: str) -> list[str]:
        return [
            f"{indent}for offset in tl.static_range({first}, {stop}):",
            f"{indent}    {names} = keep_slot(",
            f"{indent}        table, {index}, begin + offset, stop, n_table, low, high, {names}",
            f"{indent}    )",
        ]

    def test(k: int) -> str:
        return _inside("position", f"lo{k}{spread}", f"width{k}{spread}")

    return [
        *(f"# {note}" for note in notes),
        f"position = {position}",
        f"low = {low}",
        f"high = low + {length}",
        f"stop = tl.minimum(end, begin + slots_a_visit(most, {LIVE_SLOTS}))",
        *(f"{name} = tl.zeros_like({index})" for name in names.split(", ")),
        *keep(0, NEAR_SLOTS, ""),
        f"if stop - begin > {NEAR_SLOTS}:",
        *keep(NEAR_SLOTS, LIVE_SLOTS, "    "),
        *(f"width{k} = (hi{k} - lo{k}).to(tl.uint32, bitcast=True)" for k in range(3)),
        f"seen = {test(0)}",
        "if most > 1:",
        f"    seen |= {test(1)}",
        "if most > 2:",
        f"    seen |= {test(2)}",
        "return seen",
    ]
