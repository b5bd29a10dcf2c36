"""Claims about one stage, each as z3 questions that must have no solution, and as a search in NumPy for what breaks it.

The NumPy side shares nothing with the z3 side but the IR: it says what a counterexample is, in numbers.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import z3
from xdsl.ir import Operation

from cmir.analysis.facts import Facts, facts_of, first_violation
from cmir.analysis.proof.meaning import Env, Side, guard, held, rule_side, run_kernel, slots, with_constants
from cmir.analysis.proof.world import World
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.expr import Expr, I, and_, le, lt, or_, walk
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.interp.domain import NumpyDomain
from cmir.interp.evaluate import evaluate


@dataclass
class Claim:
    """What must hold after a pass; `what` says what is wrong if it does not."""

    what: str
    op: Operation
    world: Callable[[], World]
    questions: Callable[[World], list[Any]]
    """Conditions on the unknowns of a world of which none may have a solution."""
    counterexample: Callable[[Env], str | None]
    """Words for what is wrong with metadata given as NumPy values; None: nothing."""
    draws: Callable[[], Iterable[Env]] | None = None
    """Metadata to try it on; by default random ones that satisfy the facts of its world."""
    counterexample_at: Callable[[Env, int, int], str | None] | None = None
    """The same asked at one row and column: for lengths at which `counterexample` would take too long."""


def same(before: Side, after: Side, facts: Facts, given: Callable[[World], list[Any]] | None = None) -> Claim:
    """Both sides show the same pairs: no case of either is outside all cases of the other."""

    def questions(world: World) -> list[Any]:
        known = given(world) if given is not None else []
        old = before.parts(world.env, world.domain)
        met = len(world.domain.firsts)
        new = after.parts(world.env, world.domain)
        world.equate(known, met)
        out: list[Any] = []
        for cases, others in ((new, old), (old, new)):
            there = {other.get_id() for other in others}
            missed = z3.Not(z3.Or(world.domain.boolean(False), *others))
            out += [z3.And(*known, case, missed) for case in cases if case.get_id() not in there]
        return out

    def counterexample(env: Env) -> str | None:
        import numpy as np

        old, new = before.mask(env), after.mask(env)
        wrong = np.argwhere(old != new)
        if not len(wrong):
            return None
        i, j = map(int, wrong[0])
        return words(i, j, new[i, j])

    def words(i: int, j: int, shown: bool) -> str:
        shows, other = (after, before) if shown else (before, after)
        if before.name == after.name:
            return f"row {i} sees column {j} {'only after' if shown else 'no longer after'} the pass"
        return f"row {i} sees column {j} by {shows.name}, not by {other.name}"

    def at(env: Env, i: int, j: int) -> str | None:
        assert before.pair is not None and after.pair is not None
        shown = after.pair(env, i, j)
        return None if shown == before.pair(env, i, j) else words(i, j, shown)

    return Claim(
        f"{after.name} shows other pairs than {'it did' if before.name == after.name else before.name}",
        after.op,
        lambda: World(facts),
        questions,
        counterexample,
        counterexample_at=None if before.pair is None or after.pair is None else at,
    )


def regions_apart(spec: SpecOp) -> Claim:
    """No row is in two Regions."""
    regions = spec.regions_of_rows

    def questions(world: World) -> list[Any]:
        env = with_constants(spec, world.env, world.domain)
        inside = [guard(r, env, world.domain) for r in regions]
        return [z3.And(a, b) for a, b in combinations(inside, 2)]

    def counterexample(env: Env) -> str | None:
        import numpy as np

        statics = {p.name: p.value for p in spec.parameters if p.value is not None}
        here = {**env, **statics, "i": np.arange(int(env["rows"]))}
        inside = [_numpy(and_(le(r.lo.data, I), lt(I, r.hi.data)), here) for r in regions]
        for (a, in_a), (b, in_b) in combinations(zip(regions, inside, strict=True), 2):
            if len(both := np.flatnonzero(in_a & in_b)):
                return f"row {both[0]} is in Regions @{a.sym_name.data} and @{b.sym_name.data}"
        return None

    return Claim(
        f"Regions of @{spec.sym_name.data} overlap", spec, lambda: World(facts_of(spec), "i"), questions, counterexample
    )


def _numpy(e: Expr, env: Env) -> Any:
    """The value of an expression at every index of `env`."""
    import numpy as np

    shapes = [np.shape(env[name]) for name in ("i", "j") if name in env]
    return np.broadcast_to(evaluate(e, env, NumpyDomain()), np.broadcast_shapes(*shapes))


def facts_follow(before: SpecOp, after: SpecOp) -> Claim | None:
    """Every fact of `after` is one of `before`, or follows from those; None if there is nothing to ask."""
    old, new = facts_of(before), facts_of(after)
    known = {(f.condition, f.over) for f in old.facts}
    added = [f for f in new.facts if (f.condition, f.over) not in known]
    if not added:
        return None

    def questions(world: World) -> list[Any]:
        out: list[Any] = []
        for n, fact in enumerate(added):
            if fact.over is None:
                out.append(z3.Not(world.term(fact.condition)))
            else:
                at = world.natural(f"at!{n}")
                world.domain.note(at)
                out.append(z3.Not(world.at(fact, at)))
        return out

    def counterexample(env: Env) -> str | None:
        broken = first_violation(new, env)
        return None if broken is None else f"{broken[0].text} does not hold"

    what = f"a fact of @{after.sym_name.data} is new and does not follow from those there were"
    return Claim(what, after, lambda: World(old, ()), questions, counterexample)


# Tables.


def _spans(table: TableOp) -> Iterator[tuple[RegionOp, SpanOp]]:
    return ((region, span) for region in table.regions_of_table for span in region.spans)


def _at_fixed(table: TableOp, env: Env) -> dict[str, Any]:
    """`env` with every index that the table is read at."""
    import numpy as np

    from cmir.interp.masks import with_lengths

    length = int(env["rows" if table.fixed == "i" else "cols"])
    return {**with_lengths(env), table.fixed: np.arange(length, dtype=np.int64)}


def _nowhere(table: TableOp, facts: Facts, what: str, wrong: Sequence[tuple[str, Expr]]) -> Claim:
    """Conditions on a table's index that hold nowhere, each with words for where it does."""

    def questions(world: World) -> list[Any]:
        memo = dict[Expr, Any]()
        return [evaluate(e, world.env, world.domain, memo) for _, e in wrong]

    def counterexample(env: Env) -> str | None:
        import numpy as np

        here = _at_fixed(table, env)
        for words, e in wrong:
            if len(found := np.flatnonzero(_numpy(e, here))):
                return f"{words} at {table.fixed}={found[0]}"
        return None

    return Claim(what, table, lambda: World(facts, table.fixed), questions, counterexample)


def ends_inside(table: TableOp, facts: Facts) -> Claim:
    """The ends of a span that holds something lie inside the other axis."""
    least, most = table.bounds
    wrong = [
        (
            f"[{span.lo.data}, {span.hi.data}) is outside",
            and_(held(region, table.fixed), span.nonempty, or_(lt(span.lo.data, least), lt(most, span.hi.data))),
        )
        for region, span in _spans(table)
    ]
    return _nowhere(table, facts, f"a span of @{table.sym_name.data} leaves the axis", wrong)


def overlaps(table: TableOp) -> list[tuple[tuple[str, int, int], str, Expr]]:
    """Where two slots that `fuse` does not list overlap: (region, slot, slot), words, the condition on the index."""
    wrong: list[tuple[tuple[str, int, int], str, Expr]] = []
    for region in table.regions_of_table:
        for (m, a), (n, b) in combinations(enumerate(region.spans), 2):
            if (m, n) not in region.fused:
                meet = and_(lt(a.lo.data, b.hi.data), lt(b.lo.data, a.hi.data))
                both = and_(held(region, table.fixed), a.nonempty, b.nonempty, meet)
                name = region.sym_name.data
                wrong.append(((name, m, n), f"slots {m} and {n} of @{name} overlap", both))
    return wrong


def slots_apart(table: TableOp, facts: Facts) -> Claim:
    """Two slots that `fuse` does not list never overlap."""
    what = f"slots of @{table.sym_name.data} overlap and are not fused"
    return _nowhere(table, facts, what, [(words, e) for _, words, e in overlaps(table)])


def searches(table: TableOp, facts: Facts) -> Claim | None:
    """The condition of a `first` is false, then true; None if there is no `first`."""
    terms = dict.fromkeys(
        (region, t)
        for region, span in _spans(table)
        for e in (span.lo.data, span.hi.data, span.condition)
        for t in walk(e)
        if t.op == "first"
    )
    if not terms:
        return None

    def questions(world: World) -> list[Any]:
        out: list[Any] = []
        for n, (region, t) in enumerate(terms):
            lo, hi = (world.term(e) for e in t.args[:2])
            a, b = (world.domain.note(world.domain.integer(f"{which}!{n}")) for which in ("earlier", "later"))
            yes, no = world.term(t.args[2], {t.name: a}), world.term(t.args[2], {t.name: b})
            out.append(z3.And(world.term(held(region, table.fixed)), lo <= a, a < b, b < hi, yes, z3.Not(no)))
        return out

    def counterexample(env: Env) -> str | None:
        import numpy as np

        domain, here = NumpyDomain(), _at_fixed(table, env)
        here[table.fixed] = here[table.fixed][:, None]
        for region, t in terms:
            k = np.arange(int(max(env["rows"], env["cols"])) + 1)[None, :]
            lo, hi, inside = (evaluate(e, here, domain) for e in (*t.args[:2], held(region, table.fixed)))
            holds = np.broadcast_to(evaluate(t.args[2], {**here, t.name: k}, domain), (len(here[table.fixed]), k.size))
            falls = inside & (lo <= k[:, :-1]) & (k[:, 1:] < hi) & holds[:, :-1] & ~holds[:, 1:]
            if len(found := np.argwhere(falls)):
                n, at = map(int, found[0])
                return f"{t} holds at {t.name}={at} and not at {t.name}={at + 1}, where {table.fixed}={n}"
        return None

    return Claim(
        f"@{table.sym_name.data} searches for what does not move one way",
        table,
        lambda: World(facts, table.fixed),
        questions,
        counterexample,
    )


def symmetric(spec: SpecOp, op: Operation) -> Claim:
    """Where there are as many rows as columns, row i sees column j iff row j sees column i."""
    side = rule_side(spec)

    def questions(world: World) -> list[Any]:
        env, domain = world.env, world.domain
        square = env["rows"] == env["cols"]
        there = side.parts({**env, "i": env["j"], "j": env["i"]}, domain)
        missed = z3.Not(z3.Or(domain.boolean(False), *there))
        # Mirrored twice, a pair is what it was: one direction is enough.
        return [z3.And(square, case, missed) for case in side.parts(env, domain)]

    def counterexample(env: Env) -> str | None:
        import numpy as np

        mask = side.mask(env)
        if mask.shape[0] != mask.shape[1] or not len(wrong := np.argwhere(mask & ~mask.T)):
            return None
        i, j = map(int, wrong[0])
        return f"row {i} sees column {j}, row {j} does not see column {i}"

    what = f"the rule of @{spec.sym_name.data} is not symmetric"
    return Claim(what, op, lambda: World(facts_of(spec)), questions, counterexample)


# Preprocess kernels.


def kernel_slots_safe(preprocess: PreprocessOp, axis: str, facts: Facts) -> Claim:
    """Whatever the metadata, facts broken or not, 0 <= lo <= hi <= the length of the other axis."""
    fixed, limit = ("i", "cols") if axis == "rows" else ("j", "rows")

    def questions(world: World) -> list[Any]:
        ends = slots(preprocess, axis, world.env[fixed], world.env, world.domain)
        return [z3.Or(lo < 0, hi < lo, hi > world.env[limit]) for lo, hi in ends]

    def counterexample(env: Env) -> str | None:
        from cmir.interp.preprocess import slot_table

        table = slot_table(preprocess, axis, env)
        wrong = (table[:, 0] < 0) | (table[:, 1] < table[:, 0]) | (table[:, 1] > int(env[limit]))
        return "an endpoint is out of range" if wrong.any() else None

    what = f"slots of {axis} of @{preprocess.sym_name.data} leave the axis"
    none = replace(facts, facts=(), monotone=())
    return Claim(what, preprocess, lambda: World(none, fixed, searched=True), questions, counterexample)


def kernel_slots_apart(preprocess: PreprocessOp, table: TableOp, facts: Facts) -> Claim:
    """No position is in two slots, given that those of the table are as apart as it says."""
    axis = table.axis.data
    fixed = "i" if axis == "rows" else "j"

    def questions(world: World) -> list[Any]:
        ends = slots(preprocess, axis, world.env[fixed], world.env, world.domain)
        met, memo = len(world.domain.firsts), dict[Expr, Any]()
        given = {pair: z3.Not(evaluate(e, world.env, world.domain, memo)) for pair, _, e in overlaps(table)}
        world.equate([], met)
        fused = any(region.fused for region in table.regions_of_table)
        out: list[Any] = []
        for (m, a), (n, b) in combinations(enumerate(ends), 2):
            # Two slots are two spans of the table, unless slots are united on the way.
            apart = list(given.values()) if fused else [g for (_, *pair), g in given.items() if pair == [m, n]]
            out.append(z3.And(*apart, a[0] < a[1], b[0] < b[1], a[0] < b[1], b[0] < a[1]))
        return out

    def counterexample(env: Env) -> str | None:
        from cmir.interp.preprocess import slot_table

        table = slot_table(preprocess, axis, env)
        for (m, a), (n, b) in combinations(enumerate(table), 2):
            if ((a[0] < a[1]) & (b[0] < b[1]) & (a[0] < b[1]) & (b[0] < a[1])).any():
                return f"slots {m} and {n} overlap"
        return None

    what = f"slots of {axis} of @{preprocess.sym_name.data} overlap"
    return Claim(what, preprocess, lambda: World(facts, fixed), questions, counterexample)


def kernel_checks(preprocess: PreprocessOp, facts: Facts, n: int) -> Claim:
    """Check number n of a kernel passes exactly where fact n holds, given that those before it do."""
    fact = facts.facts[n]
    op = next((op for op in preprocess.facts if op.number.data == n + 1), None)

    def questions(world: World) -> list[Any]:
        if op is None:
            return [world.domain.boolean(True)]
        if fact.over is None:
            want, index = world.term(fact.condition), []
        else:
            index = [world.domain.note(world.natural("at!"))]
            want = world.at(fact, index[0])
        (holds,) = run_kernel(preprocess, op.body, index if op.body.block.args else [], world.env, world.domain)
        there = z3.And(index[0] < world.longest(op.over.data)) if index else world.domain.boolean(True)
        return [z3.And(there, holds, z3.Not(want)), z3.And(there, want, z3.Not(holds))]

    def counterexample(env: Env) -> str | None:
        from cmir.interp.preprocess import status_word

        # Checks after those of the facts say more than the facts do.
        status, broken = status_word(preprocess, env), first_violation(facts, env)
        reported = status != 0 and status >> 32 <= len(facts.facts)
        if reported == (broken is not None):
            return None
        return "the kernel reports a fact that holds" if broken is None else f"the kernel misses {broken[0].text}"

    earlier = replace(facts, facts=facts.facts[:n])
    what = f"fact {n + 1} of @{preprocess.sym_name.data} is not checked as it is stated: {fact.text}"
    return Claim(what, op or preprocess, lambda: World(earlier, ()), questions, counterexample)
