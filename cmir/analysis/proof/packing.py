"""What a packed table must show: at each sequence's rows and columns, what the table of one sequence shows of it.

    packed(i, j)  <=>  cu_rows[s] <= i < cu_rows[s + 1]  and  cu_cols[s] <= j < cu_cols[s + 1]  and
                       table(i - cu_rows[s], j - cu_cols[s]) with the metadata of sequence s,     for one s

Sequence s has its own scalars, its own rows of the tables per row, and its own part of a free table.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import z3

from cmir.analysis.facts import facts_of
from cmir.analysis.proof.claims import Claim, same
from cmir.analysis.proof.meaning import Env, Side, table_side
from cmir.analysis.proof.world import World
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp, length_name
from cmir.interp.domain import TableValue, Value
from cmir.interp.masks import table_mask
from cmir.interp.z3_domain import Z3Domain, Z3Table

if TYPE_CHECKING:
    import numpy as np


class Names:
    """What the metadata that packing adds are called."""

    def __init__(self, spec: SpecOp, packed: SpecOp) -> None:
        self.parameters = [p for p in spec.parameters if p.kind != "static"]
        names = [p.name for p in packed.parameters]
        free = [p.name for p in self.parameters if p.kind == "free"]
        added = names[len(self.parameters) :]
        self.parts = {name: (added[2 * n], added[2 * n + 1]) for n, name in enumerate(free)}
        self.cu_rows, self.cu_cols, self.longest = added[2 * len(free) :]

    @property
    def per_sequence(self) -> list[str]:
        """The tables with one entry per sequence."""
        ends = [name for part in self.parts.values() for name in part]
        return [p.name for p in self.parameters if p.kind == "scalar"] + ends


def packed_table(spec: SpecOp, table: TableOp, packed: SpecOp, after: TableOp) -> Claim:
    """The packed table shows what the table of one sequence shows of each."""
    names = Names(spec, packed)
    fixed, cu = ("i", names.cu_rows) if after.axis.data == "rows" else ("j", names.cu_cols)

    def given(world: World) -> list[Any]:
        """Every sequence has its scalars; the fixed index is in sequence `s`, or behind the last one."""
        env, domain = world.env, world.domain
        number, s = _sequences(env, names), domain.integer("s!")
        lengths = [env[n].length == number for n in names.per_sequence]
        lengths.append(env[names.cu_cols].length == number + 1)
        start, end = (env[cu].entries(domain.note(k)) for k in (s, s + 1))
        inside = z3.And(s >= 0, s < number, start <= env[fixed], env[fixed] < end)
        behind = z3.And(s == number, env[cu].entries(domain.note(number)) <= env[fixed])
        return [number >= 0, *lengths, z3.Or(inside, behind)]

    def parts(env: Env, domain: Z3Domain) -> list[Any]:
        s = domain.integer("s!")
        here = _sequence(env, names, s, domain)
        inside = z3.And(
            s < _sequences(env, names),
            *(z3.And(here[x] >= 0, here[x] < here[n]) for x, n in (("i", "rows"), ("j", "cols"))),
        )
        return [z3.And(inside, part) for part in table_side(table).parts(here, domain)]

    before = Side(f"@{table.sym_name.data} of each sequence", table, parts, lambda env: _mask(table, env, names))
    return same(before, table_side(after), facts_of(packed), given)


def _sequences(env: Env, names: Names) -> Any:
    return env[names.cu_rows].length - 1


def _sequence(env: Env, names: Names, s: Any, domain: Z3Domain) -> dict[str, Value]:
    """The metadata of sequence `s`, and row and column counted from its first ones."""

    def part(table: Z3Table, start: Any, end: Any) -> Z3Table:
        return Z3Table(lambda k, *t: table.entries(domain.note(start + k), *t), end - start, table.width)

    def ends(lower: str, upper: str, step: int) -> tuple[Any, Any]:
        return env[lower].entries(domain.note(s)), env[upper].entries(domain.note(s + step))

    rows, cols = ends(names.cu_rows, names.cu_rows, 1), ends(names.cu_cols, names.cu_cols, 1)
    out: dict[str, Value] = {
        "rows": rows[1] - rows[0],
        "cols": cols[1] - cols[0],
        "i": env["i"] - rows[0],
        "j": env["j"] - cols[0],
    }
    for p in names.parameters:
        if p.kind == "scalar":
            out[p.name] = env[p.name].entries(domain.note(s))
            continue
        start, end = ends(*names.parts[p.name], 0) if p.kind == "free" else rows if p.kind == "row" else cols
        out[p.name] = part(env[p.name], start, end)
        if p.kind == "free":
            out[length_name(p.name)] = end - start
    return out


def _mask(table: TableOp, env: Env, names: Names) -> np.ndarray:
    """bool [rows, cols]: the table of one sequence, run on each and put in its place."""
    import numpy as np

    mask = np.zeros((int(env["rows"]), int(env["cols"])), dtype=bool)
    for row, col, own in sequences(env, names):
        block = table_mask(table, own)
        mask[row : row + block.shape[0], col : col + block.shape[1]] = block
    return mask


def sequences(env: Env, names: Names) -> Iterator[tuple[int, int, dict[str, Value]]]:
    """First row, first column and metadata of every sequence of a pack."""
    rows, cols = env[names.cu_rows].values, env[names.cu_cols].values
    for s in range(len(rows) - 1):
        at = {"row": slice(rows[s], rows[s + 1]), "col": slice(cols[s], cols[s + 1])}
        own: dict[str, Value] = {"rows": int(rows[s + 1] - rows[s]), "cols": int(cols[s + 1] - cols[s])}
        for p in names.parameters:
            values = env[p.name].values
            if p.kind == "scalar":
                own[p.name] = int(values[s])
                continue
            if p.kind == "free":
                start, end = (int(env[n].values[s]) for n in names.parts[p.name])
                own[p.name] = TableValue(values[start:end])
            else:
                own[p.name] = TableValue(values[at[p.kind]])
        yield int(rows[s]), int(cols[s]), own
