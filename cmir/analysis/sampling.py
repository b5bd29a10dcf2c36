"""Draw metadata that satisfy the facts of a spec: small, varied, with the edge cases that masks have.

A claim about all metadata is most cheaply refuted by an example, and tests need examples by the hundred. Scalars are
drawn between the bounds that the facts give them; tables are drawn by structure (segment starts, segment ends, sorted,
arbitrary), because packed batches have structure and uniform noise would hardly ever satisfy their facts. Every draw is
checked against all facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING

from cmir.analysis.facts import Fact, Facts, first_violation
from cmir.analysis.linear import inequalities
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, const, free_names, le, lookup, var, walk
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

TRIES = 60
SAMPLES = 32
PAIRS = 1 << 22
"""Of a draw of which a whole mask is looked at: facts may ask for long sequences."""
STRUCTURED = 0.5  # how often tables are filled by structure first


@dataclass(frozen=True)
class Draw:
    """One choice of metadata: `rows`, `cols` and scalars as integers, tables as `TableValue`."""

    env: Mapping[str, Value]

    @property
    def pairs(self) -> int:
        """Of a row and a column."""
        return int(self.env["rows"]) * int(self.env["cols"])


@lru_cache(maxsize=16)  # every pass asks for those of the same facts
def sample(facts: Facts, count: int = SAMPLES, seed: int = 0, size: int = 40) -> tuple[Draw, ...]:
    """Up to `count` draws (fewer, possibly none, where the facts are hard to satisfy by drawing)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    # Mostly `size`, some tiny, some large enough for the constants of the rule (a window of 128) to matter.
    sizes = cycle((max(size // 5, 2), size, min(3 * facts.scale, 1000) + size, size))
    out: list[Draw] = []
    failures = 0  # in a row
    while len(out) < count and failures < TRIES:
        env = draw(facts, rng, next(sizes))
        failures = failures + 1 if env is None else 0
        out += [Draw(env)] if env is not None else []
    return tuple(out)


def draw(
    facts: Facts, rng: np.random.Generator, size: int = 40, given: Mapping[str, Value] | None = None
) -> dict[str, Value] | None:
    """One choice of metadata with lengths of about `size`, or None when this try broke a fact.

    What `given` gives (lengths, scalars, tables) is taken as it is; the rest is drawn around it.
    """
    env: dict[str, Value] = dict(given or {})
    known_tables = {p.name for p in facts.parameters if p.is_table}
    scalar_facts = [f.condition for f in facts.facts if f.over is None and not free_names(f.condition) & known_tables]
    scalar_facts += [le(ZERO, ROWS), le(ZERO, COLS)]  # which every spec takes for granted
    names = ["rows", "cols", *(p.name for p in facts.parameters if not p.is_table)]
    order = names if rng.random() < 0.6 else [*rng.permutation(names)]
    for name in map(str, order):
        if name in env:
            continue
        default = (0, size) if name in ("rows", "cols") else (-2, size)
        bounds = _bounds(var(name), scalar_facts, env, default)
        if bounds is None:
            return None
        env[name] = _pick(rng, *bounds)
    packing = _Packing(rng, bool(rng.random() < STRUCTURED))
    for p in facts.parameters:
        if p.is_table and p.name not in env:
            table = _draw_table(facts, p.name, env, size, packing)
            if table is None:
                return None
            env[p.name] = table
    return env if first_violation(facts, env) is None else None


def _pick(rng: np.random.Generator, lo: int, hi: int) -> int:
    """Uniform, the ends more often than the rest, the lower one (a length of 0) less often than the upper one."""
    k = int(rng.integers(0, 12))
    return lo if k == 0 else hi if k < 4 else int(rng.integers(lo, hi + 1))


def _bounds(
    atom: Expr, conditions: list[Expr], env: Mapping[str, Value], default: tuple[int, int]
) -> tuple[int, int] | None:
    """What the facts whose other names are already drawn leave for one scalar."""
    domain = NumpyDomain()
    lo, hi = None, None
    for form in inequalities(conditions):
        c, rest = form.coefficient(atom), form.without(atom)
        if c == 0 or any(not free_names(a) <= env.keys() for a, _ in rest.terms):
            continue
        value = rest.constant + sum(k * int(evaluate(a, env, domain)) for a, k in rest.terms)
        if c > 0:  # c * x + value >= 0
            lo = max(-(value // c), lo if lo is not None else -(value // c))
        else:
            hi = min(value // -c, hi if hi is not None else value // -c)
    width = default[1] - default[0]
    low = lo if lo is not None else min(default[0], hi) if hi is not None else default[0]
    high = hi if hi is not None else max(default[1], low + width if lo is not None and low > default[1] else low)
    return (low, high) if low <= high else None


def _draw_table(
    facts: Facts,
    name: str,
    env: dict[str, Value],
    size: int,
    packing: _Packing,
) -> TableValue | None:
    """A table by the first structure, in random order, whose entries satisfy the facts that are decidable by now."""
    import numpy as np

    kind = facts.kind(name)
    length = {"row": env["rows"], "col": env["cols"]}.get(kind, _pick(packing.rng, 0, size))
    relevant = [
        f
        for f in facts.facts
        if f.over is not None and name in free_names(f.condition) and _decidable(facts, f, {*env, name})
    ]
    known = tuple(p for p in facts.parameters if p.name in env or p.name == name)
    width = facts.entries(name)
    if width is None:
        return _draw_entries(Facts(facts.name, known, tuple(relevant), (), {}), name, length, env, packing)
    # One integer of every entry after another: facts bound it by those before it.
    table = TableValue(np.zeros((length, width), dtype=np.int64))
    for t in range(width):
        column = tuple(f for f in relevant if max(_numbers(f.condition, name, width)) <= t)
        drawn = _draw_entries(
            Facts(facts.name, known, column, (), {}), name, length, {**env, name: table}, packing, number=t
        )
        if drawn is None:
            return None
        table = drawn
    return table


def _numbers(e: Expr, table: str, width: int) -> list[int]:
    """Which integers of an entry an expression reads; the last one where that depends on metadata."""
    read = [t.args[1] for t in walk(e) if t.op == "lookup" and t.name == table]
    return [t.value if t.op == "const" else width - 1 for t in read]


def _draw_entries(
    facts: Facts, name: str, length: int, env: dict[str, Value], packing: _Packing, number: int | None = None
) -> TableValue | None:
    """A table, or number `number` of every entry of one, that satisfies `facts`."""
    import numpy as np

    lo, hi = _entry_bounds(name, length, facts.facts, env, number)
    if np.any(lo > hi):
        return None
    for maker in packing.makers(length):
        values = np.clip(maker(lo, hi), lo, hi).astype(np.int64)
        if number is not None:
            column, values = values, env[name].values.copy()
            values[:, number] = column
        table = TableValue(values)
        if first_violation(facts, {**env, name: table}) is None:
            packing.used(length, maker)
            return table
    return None


def _decidable(facts: Facts, fact: Fact, known: set[str]) -> bool:
    names = free_names(fact.condition)
    return all(p.name not in names or p.name in known for p in facts.parameters)


def _entry_bounds(
    name: str, length: int, relevant: Sequence[Fact], env: Mapping[str, Value], number: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Per entry, what facts of the form `t[i] <= e(i)` and `e(i) <= t[i]` leave; for `number`, of `t[i, number]`."""
    import numpy as np

    domain = NumpyDomain()
    big = max(int(env["rows"]), int(env["cols"]), 8)
    lo, hi = np.full(length, -2), np.full(length, big + 2)
    bounded = np.zeros((2, length), dtype=bool)
    for fact in relevant:
        assert fact.over is not None
        index, start, stop = fact.over
        if f"{name}_length" in free_names(stop):
            continue
        a, b = max(0, int(evaluate(start, env, domain))), min(length, int(evaluate(stop, env, domain)))
        if a >= b:
            continue
        here = {**env, index: np.arange(a, b)}
        entry = lookup(name, var(index), *([] if number is None else [const(number)]))
        for form in inequalities([fact.condition]):
            c, rest = form.coefficient(entry), form.without(entry)
            if abs(c) != 1 or any(not free_names(x) <= here.keys() for x, _ in rest.terms):
                continue
            if number is not None and any(k >= number for x, _ in rest.terms for k in _numbers(x, name, number + 1)):
                continue  # of another entry, which is not drawn yet
            value = (
                rest.constant
                + sum(k * evaluate(x, here, domain) for x, k in rest.terms)
                + np.zeros(b - a, dtype=np.int64)
            )
            if c > 0:
                lo[a:b] = np.where(bounded[0, a:b], np.maximum(lo[a:b], -value), -value)
                bounded[0, a:b] = True
            else:
                hi[a:b] = np.where(bounded[1, a:b], np.minimum(hi[a:b], value), value)
                bounded[1, a:b] = True
    return np.where(bounded[1] & ~bounded[0], np.minimum(lo, hi), lo), np.where(
        bounded[0] & ~bounded[1], np.maximum(lo, hi), hi
    )


Maker = Callable[["np.ndarray", "np.ndarray"], "np.ndarray"]


@dataclass
class _Packing:
    """What the tables of one draw share: per length, segments inside segments, each structure used once if possible."""

    rng: np.random.Generator
    structured: bool
    structures: dict[int, list[Maker]] = field(default_factory=dict[int, "list[Maker]"])

    def makers(self, length: int) -> list[Maker]:
        """Ways to fill a table, those to try first first."""
        if length not in self.structures:
            outer = _segments(self.rng, length)
            self.structures[length] = self._shuffled(_structures(length, outer, outer | _segments(self.rng, length)))
        structures, noise = self.structures[length], self._shuffled(_noise(self.rng, length))
        return structures + noise if self.structured else noise + structures

    def used(self, length: int, maker: Maker) -> None:
        """The next table had better be another one."""
        structures = self.structures[length]
        structures.sort(key=lambda m: m is maker)

    def _shuffled(self, makers: list[Maker]) -> list[Maker]:
        return [makers[int(k)] for k in self.rng.permutation(len(makers))]


def _noise(rng: np.random.Generator, length: int) -> list[Maker]:
    """Ways to fill a table between its bounds: anything, rising, falling, at its least, at its greatest."""
    import numpy as np

    def uniform(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        return rng.integers(lo, hi + 1) if length else lo

    return [
        uniform,
        lambda lo, hi: np.maximum.accumulate(uniform(lo, hi)),
        lambda lo, hi: np.minimum.accumulate(uniform(lo, hi)[::-1])[::-1],
        lambda lo, hi: lo,
        lambda lo, hi: hi,
    ]


def _structures(length: int, outer: np.ndarray, inner: np.ndarray) -> list[Maker]:
    """Ways to fill a table from where outer and inner segments begin, as the tables of packed batches are."""
    import numpy as np

    index = np.arange(length)

    def starts(cuts: np.ndarray) -> np.ndarray:
        return np.maximum.accumulate(np.where(cuts, index, 0))

    def ends(cuts: np.ndarray) -> np.ndarray:
        following = np.append(np.where(cuts, index, length)[1:], length) if length else index
        return np.minimum.accumulate(following[::-1])[::-1]

    s_outer, s_inner, e_outer, e_inner = starts(outer), starts(inner), ends(outer), ends(inner)
    counts = np.cumsum(outer) - 1, np.cumsum(inner) - 1
    heads = e_inner[s_outer]  # the end of the first inner segment of each outer one
    return [lambda lo, hi, t=t: t for t in (s_outer, s_inner, e_outer, e_inner, heads, heads, *counts)]


def _segments(rng: np.random.Generator, length: int) -> np.ndarray:
    """Where segments begin: always at 0."""

    cuts = rng.random(length) < rng.choice([0.05, 0.2, 0.5])
    cuts[:1] = True
    return cuts
