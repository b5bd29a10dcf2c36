"""The hooks of a mask that is tested by bits: the columns near a row, the rule of a pair, and what decides whole tiles.

The rule comes in two parts, so that kernels compute what is of the row alone once, and not for every column that they
ask about:

    own = pair_rows(i)       every value that reads no column and is used by the rest
    pair_visible(own, i, j)  the rest
    byte_visible(own, i, j)  the rest for columns j to j + 7, a bit each (`cmir.lowering.bytes`)
    own = tile_rows(i)       the same on ranges (`cmir.lowering.bounds`), of the rows of a tile
    tiles_visible(own, j)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from cmir.dialects.descriptor import HoldsOp, HullOp, PairOp, PreprocessOp
from cmir.lowering.bounds import Bounds, Reads, reads_of
from cmir.lowering.bytes import Bytes
from cmir.lowering.ssa import INDENT, Statements
from cmir.lowering.widths import Widths

OWN = "own"
"""The values of the rows, as the second part gets them."""

_ASKED = [
    f"{INDENT}# pair: every column is asked",
    f"{INDENT}see = pair_visible(",
    *(f"{INDENT * 2}{argument}," for argument in (OWN, "i", "eight(j, cols)", "z", "rows", "cols", "META")),
    f"{INDENT})",
    f"{INDENT}return packed(see)",
]
"""The body of `byte_visible` where no byte is made without asking about its columns."""


def hook_bodies(preprocess: PreprocessOp) -> dict[str, list[str]]:
    """The body of every hook, its lines; of a mask that is tested by slots, what is never called."""
    hull, pair = preprocess.hull, preprocess.pair
    if hull is None or pair is None:
        untested = [f"{INDENT}# its slots say all of this mask: no bits"]
        returned = {
            "row_hull": "tl.zeros_like(i), tl.zeros_like(i)",
            "pair_rows": "(i,)",
            "pair_visible": "j < 0",
            "byte_visible": "tl.zeros_like(j)",
            "tile_rows": "(i,)",
            "tiles_visible": "tl.min(j, axis=0) < 0, tl.min(j, axis=0) >= 0",
        }
        return {hook: [*untested, f"{INDENT}return {text}"] for hook, text in returned.items()}
    return {"row_hull": _hull(preprocess, hull), **_pair(preprocess, pair), **_tiles(preprocess, pair)}


def _hull(preprocess: PreprocessOp, hull: HullOp) -> list[str]:
    statements = Statements(preprocess, [(hull.body.block.args[0], "row", "i")], "i")
    statements.block(hull.body.block)
    ((lo, hi),) = hull.endpoints.slots
    ends = ", ".join(f"tl.zeros_like(i) + {statements.name(end)}" for end in (lo, hi))
    preamble = [INDENT + line for line in statements.preamble()]
    return [*widen("i"), *preamble, *statements.lines, f"{INDENT}return {ends}"]


def _statements(preprocess: PreprocessOp, pair: PairOp) -> Statements:
    i, j = pair.body.block.args
    return Statements(preprocess, [(i, "row", "i"), (j, "col", "j")], "i", Widths())


def _pair(preprocess: PreprocessOp, pair: PairOp) -> dict[str, list[str]]:
    i, j = pair.body.block.args
    statements = _statements(preprocess, pair)
    reads: dict[SSAValue, Reads] = {i: "row", j: "column"}
    rows: list[str] = []
    rest: list[str] = []
    for op in pair.body.block.ops:
        if op is not pair.holds:
            reads_here = reads_of(op, reads)
            reads |= dict.fromkeys(op.results, reads_here)
            statements.lines = rows if reads_here in ("nothing", "row") else rest
            statements.one(op)
    constant = constant_of(pair.holds)
    seen = statements.name(pair.holds.condition) if constant is None else f"tl.full([], {int(constant)}, tl.int1)"
    of_rows = [*rows]
    bytes_ = Bytes(statements, reads, of_rows)
    byte = bytes_.byte(pair.body.block, pair.holds.condition) if constant is None else str(-int(constant))
    asked = _ASKED if byte is None else [*bytes_.lines, f"{INDENT}return {byte}"]
    rows = [*(INDENT + line for line in statements.preamble()), *(rows if byte is None else of_rows)]
    own, taken = _handed(rows, [*rest, seen, *asked])
    return {
        "pair_rows": [*rows, f"{INDENT}return {own}"],
        "pair_visible": [*taken, *rest, f"{INDENT}return {seen}"],
        "byte_visible": asked if byte is None else [*taken, *asked],
    }


def _tiles(preprocess: PreprocessOp, pair: PairOp) -> dict[str, list[str]]:
    i, j = pair.body.block.args
    statements = _statements(preprocess, pair)
    bounds = Bounds(statements, i, j)
    bounds.block(pair.body.block)
    chance = bounds.chance(pair.holds.condition)
    rest = [f"{INDENT}every = tl.min(j, axis=0) >= 0", *statements.lines]
    ends = ", ".join("every" if c is None else f"every & ({c})" for c in (chance.holds, chance.fails))
    rows = [*(INDENT + line for line in statements.preamble()), *bounds.rows]
    own, taken = _handed(rows, [*rest, ends])
    return {"tile_rows": [*rows, f"{INDENT}return {own}"], "tiles_visible": [*taken, *rest, f"{INDENT}return {ends}"]}


def _handed(rows: Sequence[str], rest: Sequence[str]) -> tuple[str, list[str]]:
    """What the first part returns of what it computes, a tuple, and the line with which the second part takes it."""
    made = [name[1] for line in rows if (name := re.match(r"\s+(\w+) = ", line))]
    used = {word for line in rest for word in re.findall(r"\w+", line.partition("  #")[0])}
    names = [name for name in dict.fromkeys(made) if name in used]
    if not names:
        return "(i,)", []
    taken = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    return taken, [f"{INDENT}{taken} = {OWN}"]


def widen(index: str) -> list[str]:
    """Indices and lengths as int64: an end such as `i + r` must not wrap where r stands for "no limit"."""
    return [f"{INDENT}{name} = wide({name})" for name in (index, "rows", "cols") if name]


def constant_of(holds: HoldsOp) -> bool | None:
    """What a condition is, if that is known."""
    match holds.condition.owner:
        case ConstantOp(value=IntegerAttr() as attr):
            return attr.value.data != 0
        case _:
            return None
