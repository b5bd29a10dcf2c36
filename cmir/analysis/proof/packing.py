"""What a packed table must show: at each sequence's rows and columns, what the table of one sequence shows of it.

    packed(i, j)  <=>  cu_rows[s] <= i < cu_rows[s + 1]  and  cu_cols[s] <= j < cu_cols[s + 1]  and
                       table(i - cu_rows[s], j - cu_cols[s]) with the metadata of sequence s,     for one s

Sequence s has its own scalars, its own rows of the tables per row, and its own part of a free table.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import z3

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.proof.claims import Claim, ends_inside, same
from cmir.analysis.proof.meaning import Env, Side, held, table_side
from cmir.analysis.proof.world import Domain, World
from cmir.analysis.sampling import sample
from cmir.dialects.expr import Expr, and_, substitute, var
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp, length_name
from cmir.interp.domain import TableValue, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import table_mask
from cmir.interp.z3_domain import Z3Table

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


def packed_table(spec: SpecOp, table: TableOp, packed: SpecOp, after: TableOp) -> Iterator[Claim]:
    """Span by span, the packed table shows what the table of one sequence shows of each.

    The sequence that a packed table looks for at its index is proved to be the one that holds it, once; then it is
    taken as given. So what was proved of the spans of one sequence (that slots are apart, that searches find what
    they search for) holds of the packed ones too.
    """
    names, facts = Names(spec, packed), facts_of(packed)
    fixed, cu = ("i", names.cu_rows) if after.axis.data == "rows" else ("j", names.cu_cols)
    name, owner = after.where or ("", None)

    def given(world: World) -> list[Any]:
        """Every sequence has its scalars; the fixed index is in sequence `s`, or behind the last one."""
        env, domain = world.env, world.domain
        number, s = _sequences(env, names), domain.integer("s!")
        lengths = [env[n].length == number for n in names.per_sequence]
        lengths.append(env[names.cu_cols].length == number + 1)
        start, end = (env[cu].entries(domain.read(cu, k)) for k in (s, s + 1))
        inside = z3.And(s >= 0, s < number, start <= env[fixed], env[fixed] < end)
        behind = z3.And(s == number, env[cu].entries(domain.read(cu, number)) <= env[fixed])
        return [number >= 0, *lengths, z3.Or(inside, behind)]

    def parts(world: World) -> list[Any]:
        """Rows, columns and entries of sequence `s` lie within those of the pack."""
        env, domain, s = world.env, world.domain, world.domain.integer("s!")

        def entry(name: str, k: Any) -> Any:
            return env[name].entries(domain.read(name, k))

        out: list[Any] = []
        for name, length in ((names.cu_rows, "rows"), (names.cu_cols, "cols")):
            start, end = entry(name, s), entry(name, s + 1)
            out.append(z3.And(start >= 0, start <= end, end <= env[length]))
        for table, (lower, upper) in names.parts.items():
            out.append(z3.And(entry(lower, s) >= 0, entry(upper, s) <= env[table].length))
        return [z3.Implies(s < _sequences(env, names), within) for within in out]

    def within(world: World) -> list[Any]:
        return [z3.And(*given(world), z3.Not(part)) for part in parts(world)]

    def finds(world: World) -> list[Any]:
        assert owner is not None
        s, (lo, hi, condition) = world.domain.integer("s!"), owner.args
        a, b = (world.domain.read(cu, world.domain.integer(n)) for n in ("earlier!", "later!"))
        yes, no = world.term(condition, {owner.name: a}), world.term(condition, {owner.name: b})
        falls = z3.And(world.term(lo) <= a, a < b, b < world.term(hi), yes, z3.Not(no))
        return [z3.And(*given(world), world.term(owner) != s), z3.And(*given(world), falls)]

    def spans(of: TableOp, where: Mapping[Expr, Expr]) -> list[Expr]:
        parts = ((region, span) for region in of.regions_of_table for span in region.spans)
        return [substitute(and_(held(r, of.fixed), span.contains(of.moving)), where) for r, span in parts]

    def same_spans(world: World) -> list[Any]:
        env, domain = world.env, world.domain
        s, known = domain.integer("s!"), [*given(world), *parts(world)]
        here = _sequence(env, names, s, domain)
        inside = z3.And(
            s < _sequences(env, names),
            *(z3.And(here[x] >= 0, here[x] < here[n]) for x, n in (("i", "rows"), ("j", "cols"))),
        )
        own = [z3.And(inside, evaluate(e, here, domain)) for e in spans(table, {})]
        met = len(domain.firsts)
        new = [world.term(e, {name: s}) for e in spans(after, {} if owner is None else {owner: var(name)})]
        if len(own) != len(new):
            return [domain.boolean(True)]
        world.equate([*known, inside], met)
        return [z3.And(*known, a != b) for a, b in zip(own, new, strict=True)]

    shown = Side(
        f"@{table.sym_name.data} of each sequence", table, lambda env, domain: [], lambda env: _mask(table, env, names)
    )
    claim = same(shown, table_side(after), facts)
    draws = lambda: packs(facts_of(spec), names)  # noqa: E731
    what = f"a sequence of @{after.sym_name.data} leaves the rows and columns of the pack"
    yield replace(claim, what=what, questions=within, draws=draws)
    if owner is not None:
        what = f"@{after.sym_name.data} does not find the sequence of its index"
        yield replace(claim, what=what, questions=finds, draws=draws)
    yield replace(claim, questions=same_spans, draws=draws)
    yield replace(ends_inside(after, facts), draws=draws)


def _sequences(env: Env, names: Names) -> Any:
    return env[names.cu_rows].length - 1


def _sequence(env: Env, names: Names, s: Any, domain: Domain) -> dict[str, Value]:
    """The metadata of sequence `s`, and row and column counted from its first ones."""

    def entry(name: str, k: Any) -> Any:
        return env[name].entries(domain.read(name, k))

    def part(table: Z3Table, start: Any, end: Any) -> Z3Table:
        return Z3Table(lambda k, *t: table.entries(domain.read(table.name, start + k), *t), end - start, table.width)

    def ends(lower: str, upper: str, step: int) -> tuple[Any, Any]:
        return entry(lower, s), entry(upper, s + step)

    rows, cols = ends(names.cu_rows, names.cu_rows, 1), ends(names.cu_cols, names.cu_cols, 1)
    out: dict[str, Value] = {
        "rows": rows[1] - rows[0],
        "cols": cols[1] - cols[0],
        "i": env["i"] - rows[0],
        "j": env["j"] - cols[0],
    }
    for p in names.parameters:
        if p.kind == "scalar":
            out[p.name] = entry(p.name, s)
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


def packs(facts: Facts, names: Names, each: int = 3) -> Iterator[dict[str, Value]]:
    """Random packs of some sequences each."""
    import numpy as np

    drawn = [draw.env for draw in sample(facts, count=60, seed=5, size=6)]
    for n in range(0, len(drawn), each):
        own = drawn[n : n + each]

        def joined(values: Sequence[Any]) -> TableValue:
            return TableValue(np.concatenate([np.asarray(v, dtype=np.int64) for v in values]))

        def ends(lengths: Sequence[int]) -> TableValue:
            return TableValue(np.cumsum([0, *lengths]))

        cu = {axis: ends([int(env[axis]) for env in own]) for axis in ("rows", "cols")}
        out: dict[str, Value] = {names.cu_rows: cu["rows"], names.cu_cols: cu["cols"]}
        out |= {axis: int(cu[axis].values[-1]) + n % 2 for axis in cu}  # now and then a row and a column behind
        out[names.longest] = max(int(np.diff(c.values).max()) for c in cu.values())
        for p in names.parameters:
            values = [env[p.name].values if p.is_table else [env[p.name]] for env in own]
            if p.kind == "free":
                at = ends([len(v) for v in values]).values
                out |= dict(zip(names.parts[p.name], (TableValue(at[:-1]), TableValue(at[1:])), strict=True))
            blank = np.zeros((n % 2 if p.kind in ("row", "col") else 0, *([p.entries] if p.entries else [])))
            out[p.name] = joined([*values, blank])
        yield out


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
