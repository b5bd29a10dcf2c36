"""Random packs: sequences that satisfy the facts of a spec, their metadata one after another, and what must hold."""

from collections.abc import Mapping, Sequence

import numpy as np
from differential import check_table, spec_in, tables_in
from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.facts import Facts, facts_of, first_violation
from cmir.analysis.reads import is_read
from cmir.analysis.sampling import Draw, draw
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.maskspec import SpecOp
from cmir.interp.domain import TableValue, Value
from cmir.interp.masks import packed_mask, table_intervals
from cmir.interp.preprocess import kernel_mask, slot_table, status_word
from cmir.tools.driver import parse, run_pipeline

Env = Mapping[str, Value]


class FewDrawsError(AssertionError):
    """The facts are too hard to satisfy by drawing: nothing was compared."""


def draw_sequences(facts: Facts, rng: np.random.Generator, count: int, size: int, shared: bool = False) -> list[Env]:
    """Metadata of `count` sequences of about `size` rows at most; if `shared`, all have the first's free tables."""
    out: list[Env] = []
    for _ in range(500 * count):
        if len(out) == count:
            break
        # Small sizes now and then, so that there are sequences of no rows or no columns where the facts allow them.
        env = draw(facts, rng, int(rng.choice([1, 2, size])))
        if env is None:
            continue
        if out and shared:
            env = {**env, **{p.name: out[0][p.name] for p in facts.parameters if p.kind == "free"}}
            if first_violation(facts, env) is not None:
                continue
        out.append(env)
    return out


def pack_env(
    facts: Facts, sequences: Sequence[Env], tail: tuple[int, int] = (0, 0), shared: bool = False
) -> dict[str, Value]:
    """What the packed form of a spec is given, as values of the NumPy interpreter."""

    def lengths(what: str) -> list[int]:
        return [int(env[what]) for env in sequences]

    def table(values: Sequence[int] | np.ndarray) -> TableValue:
        return TableValue(np.asarray(values, dtype=np.int64))

    out: dict[str, Value] = {
        "rows": sum(lengths("rows")) + tail[0],
        "cols": sum(lengths("cols")) + tail[1],
        "cu_rows": table([0, *np.cumsum(lengths("rows"))]),
        "cu_cols": table([0, *np.cumsum(lengths("cols"))]),
        "longest": max([*lengths("rows"), *lengths("cols")], default=0),
    }
    for p in facts.parameters:
        if p.kind == "scalar":
            out[p.name] = table(lengths(p.name) or [0])
        elif p.kind == "free":
            parts = [env[p.name].values for env in sequences[: 1 if shared else None]]
            ends = np.cumsum([0, *map(len, parts)])
            blank = np.zeros((0 if parts and ends[-1] else 1, *([p.entries] if p.entries else [])))
            out[p.name] = table(np.concatenate([*parts, blank]))
            out[f"{p.name}_from"], out[f"{p.name}_to"] = table(ends[:-1] if parts else [0]), table(ends[-len(parts) :])
        else:
            pad = tail[0 if p.kind == "row" else 1]
            parts = [env[p.name].values for env in sequences]
            out[p.name] = table(np.concatenate([*parts, np.full((pad, *([p.entries] if p.entries else [])), -7)]))
    return out


def places(sequences: Sequence[Env]) -> list[tuple[int, int, Env]]:
    """The first row and column of every sequence, with its metadata."""
    rows = np.cumsum([0, *(int(env["rows"]) for env in sequences)])
    cols = np.cumsum([0, *(int(env["cols"]) for env in sequences)])
    return [(int(r), int(c), env) for r, c, env in zip(rows, cols, sequences, strict=False)]


def check_pack(
    surface: SpecOp,
    packed: ModuleOp,
    kernels: ModuleOp,
    printed: str,
    sequences: list[Env],
    tail: tuple[int, int],
    shared: bool,
) -> None:
    """Tables, kernels and facts of the packed form, on one pack."""
    env = pack_env(facts_of(surface), sequences, tail, shared)
    want = packed_mask(surface, places(sequences), int(env["rows"]), int(env["cols"]))
    where = f"where {sequences}, tail {tail}:\n{printed}"
    for table in tables_in(packed):
        check_table(table, Draw(env), want, where)
    facts, preprocess = facts_of(spec_in(packed)), next(op for op in kernels.walk() if isinstance(op, PreprocessOp))
    broken = first_violation(facts, env)
    assert broken is None or is_read(broken[0].text), where  # drawn tables may be too short for the rule
    assert status_word(preprocess, env) >> 32 == (0 if broken is None else facts.facts.index(broken[0]) + 1), where
    for table in tables_in(packed):
        axis = table.axis.data
        if preprocess.slots_of(axis) is not None:
            intervals = table_intervals(table, env)
            slots = slot_table(preprocess, axis, env)
            assert np.array_equal(slots[: len(intervals)], intervals) and not slots[len(intervals) :].any(), where
    for kernel in (op for op in kernels.walk() if isinstance(op, KernelOp)):
        assert np.array_equal(kernel_mask(kernel, preprocess, env, (4, 3)), want), f"{kernel.role.data} {where}"


def lower(text: str) -> tuple[SpecOp, ModuleOp, ModuleOp]:
    """The surface spec, and its packed form as tables and as kernels."""
    surface, module = parse(text, "surface.mlir"), parse(text, "surface.mlir")
    run_pipeline(module, ["lower-intervals", "transpose", "choose-axis"])  # as the runtime does before it packs
    counts = {t.axis.data: t.slots for t in tables_in(module)}
    run_pipeline(module, ["pack"])
    assert {t.axis.data: t.slots for t in tables_in(module)} == counts
    printed = str(module)
    packed = parse(printed, "packed.mlir")
    assert str(packed) == printed
    run_pipeline(module, ["lower-descriptor", "lower-attention"])
    return spec_in(surface), packed, module


def check_packs(text: str, draws: int, shared: bool = True, size: int = 9) -> int:
    """Compare the packed form of a spec with its sequences on random packs; how many of those had no rows."""
    surface, packed, lowered = lower(text)
    printed = str(packed)
    rng = np.random.default_rng(7)
    facts = facts_of(surface)
    empty = 0
    for _ in range(draws):
        count = int(rng.integers(0, 6))
        share = shared and bool(rng.integers(0, 2))
        sequences = draw_sequences(facts, rng, count, size, share)
        if len(sequences) < count and not share:
            raise FewDrawsError(f"{len(sequences)} of {count} sequences were drawn that satisfy the facts of\n{text}")
        empty += sum(int(env["rows"]) == 0 for env in sequences)
        tail = tuple(map(int, rng.integers(0, 6, 2) * rng.integers(0, 2, 2)))
        check_pack(surface, packed, lowered, printed, sequences, (tail[0], tail[1]), share)
    return empty
