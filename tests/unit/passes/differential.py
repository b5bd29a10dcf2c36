"""Every stage means the same mask: run the passes one by one and compare each with the surface rule."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cmir.analysis.facts import Facts, facts_of, first_violation
from cmir.analysis.reads import reads_of
from cmir.analysis.sampling import Draw, sample
from cmir.dialects.attention import ROLES, KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.errors import Remark, listening
from cmir.interp.domain import TableValue, Value
from cmir.interp.masks import paint, spec_mask, table_intervals, table_mask
from cmir.interp.preprocess import NO_INDEX, kernel_mask, slot_table, status_word
from cmir.tools.driver import parse, run_pipeline

PASSES = (
    "check-regions",
    "dnf-normalize",
    "extract-intervals",
    "canonicalize-intervals",
    "merge-slots",
    "transpose",
)


def spec_in(module: ModuleOp) -> SpecOp:
    return next(op for op in module.walk() if isinstance(op, SpecOp))


def tables_in(module: ModuleOp) -> list[TableOp]:
    return [op for op in module.walk() if isinstance(op, TableOp)]


def stages(text: str) -> Iterator[tuple[str, ModuleOp]]:
    """The module after each pass, from the surface on; always the same object."""
    module = parse(text, "spec.mlir")
    yield "surface", module
    for name in PASSES:
        run_pipeline(module, [name])
        yield name, module


def changed(module: ModuleOp, before: list[Operation]) -> tuple[list[SpecOp], list[TableOp]]:
    """The spec and the tables that no earlier stage had, which are noted in `before`: what a pass leaves as it was is
    compared once. Tables are of their spec: where that is new, so are they."""

    def is_new(op: Operation) -> bool:
        return not any(op.is_structurally_equivalent(old) for old in before)

    specs = [op for op in [spec_in(module)] if is_new(op)]
    tables = [op for op in tables_in(module) if specs or is_new(op)]
    before += [op.clone() for op in (*specs, *tables)]
    return specs, tables


def check(text: str, count: int = 20, size: int = 12, tile: tuple[int, int] = (4, 3)) -> ModuleOp:
    """The last stage. Asserts that every stage agrees with the surface rule and is read back as it was printed.

    Kernels, of tiles of `tile`, are checked as they are chosen, and as they test bits.
    """
    surface = spec_in(parse(text, "surface.mlir"))
    draws = sample(facts_of(surface), count=count, seed=1, size=size)
    masks = [spec_mask(surface, d.env) for d in draws]
    module, before = None, list[Operation]()
    for stage, module in stages(text):
        printed = str(module)
        assert str(parse(printed, "printed.mlir")) == printed, f"after {stage}"
        specs, tables = changed(module, before)
        for draw, mask in zip(draws, masks, strict=True):
            where = f"after {stage}, where {words(draw)}:\n{printed}"
            for spec in specs:
                assert np.array_equal(spec_mask(spec, draw.env), mask), f"the spec {where}"
            for table in tables:
                check_table(table, draw, mask, where)
    assert module is not None
    check_kernels(module, draws, masks, tile)
    return module


def check_table(table: TableOp, draw: Draw, mask: np.ndarray, where: str) -> None:
    assert np.array_equal(table_mask(table, draw.env), mask), f"{table.sym_name.data} {where}"
    if table.slots is None:
        return
    by_row = mask if table.axis.data == "rows" else mask.T
    intervals = table_intervals(table, draw.env)
    assert np.array_equal(paint(intervals, by_row.shape[1]), by_row), f"intervals of {table.sym_name.data} {where}"
    lo, hi = intervals[:, 0], intervals[:, 1]
    clamped = (lo >= 0).all() and (lo <= hi).all() and (hi <= by_row.shape[1]).all()
    assert clamped, f"ends of {table.sym_name.data} {where}"
    assert np.array_equal((hi - lo).sum(axis=0), by_row.sum(axis=1)), f"slots of {table.sym_name.data} meet {where}"


def words(draw: Draw) -> str:
    shown = {k: v.values.tolist() if hasattr(v, "values") else int(v) for k, v in draw.env.items()}
    return ", ".join(f"{k}={v}" for k, v in shown.items())


def check_kernels(module: ModuleOp, draws: Sequence[Draw], masks: Sequence[np.ndarray], tile: tuple[int, int]) -> None:
    """Lowers the last stage of `check` on, to kernels, and compares what they mean with the masks of the draws."""
    by_bits = module.clone()
    run_pipeline(by_bits, ["choose-axis{test=bits}", "lower-descriptor", "lower-attention"])
    check_lowered(by_bits, draws, masks, tile)
    said: list[Remark] = []
    with listening(said.append):
        run_pipeline(module, ["choose-axis", "lower-descriptor", "lower-attention"])
    assert all(remark.render() for remark in said)
    check_lowered(module, draws, masks, tile)


def wanted_status(spec: SpecOp, draw: Draw) -> int:
    """The first broken fact and where; of a draw that satisfies them all, the first entry of a free table that the rule
    reads but that is not there."""
    declared = facts_of(spec)
    checked = replace(declared, facts=(*declared.facts, *reads_of(spec)))
    broken = first_violation(checked, draw.env)
    if broken is None:
        return 0
    fact, index = broken
    return (checked.facts.index(fact) + 1) << 32 | (NO_INDEX if index is None else index)


WILD = (-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1)


def garbage(facts: Facts, rng: np.random.Generator, size: int) -> Draw:
    """Any int32 as metadata; of free tables one entry at least."""
    env: dict[str, Value] = {"rows": int(rng.integers(0, size)), "cols": int(rng.integers(0, size))}

    def ints(*shape: int) -> np.ndarray:
        near, far = rng.integers(-3, size + 3, shape), rng.choice(WILD, shape)
        return np.where(rng.random(shape) < rng.choice([0, 0.2, 1]), far, near)

    for p in facts.parameters:
        length = {"row": int(env["rows"]), "col": int(env["cols"])}.get(p.kind, int(rng.integers(1, size)))
        shape = (length,) if p.entries is None else (length, p.entries)
        env[p.name] = TableValue(ints(*shape)) if p.is_table else int(ints())
    return Draw(env)


def check_garbage(module: ModuleOp, count: int = 8, size: int = 12) -> int:
    """Of kernels that `check` made: whatever the metadata are, the status names the fact that NumPy finds broken first,
    ends lie within their axis, and tiles are those of the ends. How many draws broke a fact."""
    spec, rng, found = spec_in(module), np.random.default_rng(3), 0
    preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    printed = str(module)
    for _ in range(count):
        draw = garbage(facts_of(spec), rng, size)
        where = f"where {words(draw)}:\n{printed}"
        status = status_word(preprocess, draw.env)
        assert status == wanted_status(spec, draw), f"status {where}"
        found += status != 0
        for axis, other in (("rows", "cols"), ("cols", "rows")):
            if preprocess.slots_of(axis) is not None:
                lo, hi = slot_table(preprocess, axis, draw.env).transpose(1, 0, 2)
                length = int(draw.env[other])
                assert ((lo >= 0) & (lo <= hi) & (hi <= length) | (lo == 0) & (hi == 0)).all(), f"{axis} {where}"
        for kernel in kernels:
            assert kernel_mask(kernel, preprocess, draw.env, (4, 3)).shape == (draw.env["rows"], draw.env["cols"])
    return found


def check_lowered(module: ModuleOp, draws: Sequence[Draw], masks: Sequence[np.ndarray], tile: tuple[int, int]) -> None:
    tables = {table.axis.data: table for table in tables_in(module)}
    printed = str(module)
    assert str(parse(printed, "printed.mlir")) == printed, "after lower-attention"
    preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    assert [k.role.data for k in kernels] == list(ROLES)
    for draw, mask in zip(draws, masks, strict=True):
        where = f"where {words(draw)}:\n{printed}"
        assert status_word(preprocess, draw.env) == wanted_status(spec_in(module), draw), f"status {where}"
        for axis, table in tables.items():
            if preprocess.slots_of(axis) is None:
                continue
            # Where one table serves both axes it is that of rows.
            shared = preprocess.symmetric is not None and draw.env["rows"] == draw.env["cols"]
            want = table_intervals(tables["rows"] if shared else table, draw.env)
            got = slot_table(preprocess, axis, draw.env)
            # A mask without slots gets a table all the same, of one slot that is always empty.
            assert np.array_equal(got[: len(want)], want) and not got[len(want) :].any(), f"{axis} {where}"
        for kernel in kernels:
            got = kernel_mask(kernel, preprocess, draw.env, tile)
            assert np.array_equal(got, mask), f"{kernel.role.data} with tiles of {tile} {where}"
