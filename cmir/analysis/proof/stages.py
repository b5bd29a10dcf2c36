"""What a pass must have kept, read off the module before and after it, whichever pass it was: ours or anyone's.

a spec whose rule changed       the old rule and the new one show the same pairs, in the new order of tokens if it
                                had a layout; no fact is new unless it follows from the old ones; Regions disjoint
a table that is new or changed  it shows the pairs of the table there was, or of the rule; ends of spans that hold
                                something lie inside the other axis; slots that `fuse` does not list never overlap;
                                the condition of a `first` is false, then true, as binary search needs it
a spec that was packed          its tables show of each sequence what the table of one sequence shows
`symmetric`                     where rows == cols, row i sees column j iff row j sees column i
a preprocess kernel             its slots (pairs) show what the tables show, are disjoint, and clamped whatever the
                                metadata; it checks every fact as it is stated

Specs are compared by name, and what stands beside one by what it is for. Of a spec that is new or gone, a table or
kernel that is gone, two where there is one to read, nothing can be claimed: `unsaid` says so. Facts may be dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cmir.analysis.facts import Facts, facts_of
from cmir.analysis.proof.claims import (
    Claim,
    ends_inside,
    facts_follow,
    kernel_checks,
    kernel_slots_apart,
    kernel_slots_safe,
    regions_apart,
    same,
    searches,
    slots_apart,
    symmetric,
)
from cmir.analysis.proof.layouts import laid_out_side
from cmir.analysis.proof.meaning import Env, pairs_side, rule_side, slots_side, table_side
from cmir.analysis.proof.packing import packed_table
from cmir.dialects.attention import TestsOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import AXES, TableOp
from cmir.dialects.maskspec import SpecOp


@dataclass(frozen=True)
class Stage:
    """What a module says of one spec."""

    spec: SpecOp
    tables: dict[str, TableOp]
    tests: TestsOp | None
    preprocess: PreprocessOp | None


def stages_of(module: ModuleOp) -> dict[str, Stage]:
    """The specs of a module by name, each with what stands beside it."""
    out: dict[str, Stage] = {}
    for spec in (op for op in module.walk() if isinstance(op, SpecOp)):
        mine = [op for op in module.walk() if getattr(op, "spec", None) == spec.sym_name]
        out[spec.sym_name.data] = Stage(
            spec,
            {op.axis.data: op for op in mine if isinstance(op, TableOp)},
            next((op for op in mine if isinstance(op, TestsOp)), None),
            next((op for op in mine if isinstance(op, PreprocessOp)), None),
        )
    return out


def unsaid(before: ModuleOp, after: ModuleOp) -> list[str]:
    """In words, what a pass did of which nothing says whether it kept what is visible."""
    old, new = _things(before), _things(after)
    kept = {spec for spec, what in old.keys() & new.keys() if what == "spec"}
    gone = [
        name for key, names in old.items() if key not in new and (key[0] in kept or key[1] == "spec") for name in names
    ]
    added = [name for key, names in new.items() if key not in old and key[1] == "spec" for name in names]
    changes = [f"{_are(names)} {state}" for names, state in ((gone, "gone"), (added, "new")) if names]
    why = "nothing says that they are the same" if gone and added else "there is nothing to compare with"
    out = [f"{' and '.join(changes)}: {why}"] if changes else []
    twice = [(what, names) for (_, what), names in new.items() if len(names) > 1]
    out += [f"{_are(names)} each a {what}: nothing says which is meant" for what, names in twice]
    stages = stages_of(before)
    for name, stage in stages_of(after).items():
        if name in stages and (kernel := stage.preprocess) and _changed(stages[name].preprocess, kernel):
            bare = [axis for axis in AXES if axis not in stage.tables and _computes(kernel, axis)]
            out += [f"@{kernel.sym_name.data} computes {axis} of which there is no table" for axis in bare]
    return out


def _computes(kernel: PreprocessOp, axis: str) -> bool:
    return kernel.slots_of(axis) is not None or (axis == "rows" and kernel.pair is not None)


def _are(names: list[str]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _things(module: ModuleOp) -> dict[tuple[str, str], list[str]]:
    """By spec and by what they are to it: the names of specs, and of what later passes read of them."""
    out: dict[tuple[str, str], list[str]] = {}
    for op in module.walk():
        match op:
            case SpecOp():
                key = op.sym_name.data, "spec"
            case TableOp():
                key = op.spec.data, f"{op.axis.data} table of @{op.spec.data}"
            case PreprocessOp():
                key = op.spec.data, f"kernel of @{op.spec.data}"
            case _:
                continue
        out.setdefault(key, []).append(f"@{op.sym_name.data}")
    return out


def claims_of(pass_name: str, before: ModuleOp, after: ModuleOp) -> Iterator[Claim]:
    """What must hold after a pass that made `after` of `before`."""
    old, new = stages_of(before), stages_of(after)
    for name, stage in new.items():
        if name in old:
            for claim in _of_spec(pass_name, old[name], stage):
                # Random metadata are drawn for one sequence.
                yield replace(claim, draws=claim.draws or (tuple[Env, ...] if stage.spec.is_packed else None))


def _changed(before: Operation | None, after: Operation | None) -> bool:
    return after is not None and (before is None or str(before) != str(after))


def _of_spec(pass_name: str, old: Stage, new: Stage) -> Iterator[Claim]:
    spec, packed_now = new.spec, new.spec.is_packed and not old.spec.is_packed
    if pass_name == "check-regions":
        yield regions_apart(spec)
    if packed_now:
        for axis, table in new.tables.items():
            if axis in old.tables:
                yield from packed_table(old.spec, old.tables[axis], spec, table)
    elif _changed(old.spec, spec):
        yield from _of_rule(old.spec, spec)
    # What may be assumed is what was stated before the pass, but for the facts of a new order and of a pack.
    facts = facts_of(spec if packed_now or old.spec.layouts else old.spec)
    for axis, table in new.tables.items():
        if _changed(before := old.tables.get(axis), table) and not packed_now:
            yield same(rule_side(spec) if before is None else table_side(before), table_side(table), facts)
            yield from _of_table(table, facts)
    if new.tests is not None and new.tests.symmetric is not None and _changed(old.tests, new.tests):
        yield symmetric(spec, new.tests)
    if new.preprocess is not None and _changed(old.preprocess, new.preprocess):
        yield from _of_kernel(new, new.preprocess, facts)


def _of_rule(old: SpecOp, new: SpecOp) -> Iterator[Claim]:
    if len(new.regions_of_rows) > 1 and _guards(old) != _guards(new):
        yield regions_apart(new)
    if old.layouts and not new.layouts:
        yield same(laid_out_side(old), rule_side(new), facts_of(new))
        return
    yield same(rule_side(old), rule_side(new), facts_of(old))
    if (claim := facts_follow(old, new)) is not None:
        yield claim


def _guards(spec: SpecOp) -> list[tuple[str, str]]:
    return [(str(r.lo.data), str(r.hi.data)) for r in spec.regions_of_rows]


def _of_table(table: TableOp, facts: Facts) -> Iterator[Claim]:
    yield ends_inside(table, facts)
    if table.slots is not None:
        yield slots_apart(table, facts)
    if (claim := searches(table, facts)) is not None:
        yield claim


def _of_kernel(stage: Stage, preprocess: PreprocessOp, facts: Facts) -> Iterator[Claim]:
    for axis, table in stage.tables.items():
        if preprocess.slots_of(axis) is not None:
            yield same(table_side(table), slots_side(preprocess, axis), facts)
            yield kernel_slots_apart(preprocess, table, facts)
            yield kernel_slots_safe(preprocess, axis, facts)
    if preprocess.pair is not None and "rows" in stage.tables:
        yield same(table_side(stage.tables["rows"]), pairs_side(preprocess), facts)
    for n in range(len(facts.facts)):
        yield kernel_checks(preprocess, facts, n)
