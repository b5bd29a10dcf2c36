"""Who is visible at row i, column j, as z3 terms: rules as they were written, tables, preprocess kernels.

A `Side` is one stage's account of a mask: the cases in which (i, j) is visible, in z3, and the whole mask in NumPy.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import z3
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import (
    Interpreter,
    PythonValues,
    ReturnedValues,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation, Region

from cmir.analysis.proof.world import Domain
from cmir.analysis.rules import constant_tables
from cmir.dialects.descriptor import EndpointsOp, FirstOp, HoldsOp, LengthOp, PreprocessOp
from cmir.dialects.expr import Expr, and_, le, lt, var
from cmir.dialects.interval import RegionOp as TableRegionOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import RegionOp, SpecOp
from cmir.interp.domain import TableValue, Value
from cmir.interp.evaluate import evaluate
from cmir.interp.rule import RuleFunctions, run_rule

if TYPE_CHECKING:
    import numpy as np

Env = Mapping[str, Value]


@dataclass(frozen=True)
class Side:
    """`parts(env, domain)`: cases in which (env["i"], env["j"]) is visible; `mask(env)`: bool [rows, cols];
    `pair(env, i, j)`: one entry of it, of lengths whose whole mask would be too large too."""

    name: str
    op: Operation
    parts: Callable[[Env, Domain], list[Any]]
    mask: Callable[[Env], np.ndarray]
    pair: Callable[[Env, int, int], bool] | None = None


def rule_side(spec: SpecOp) -> Side:
    """The rule of a spec, Region by Region."""
    from cmir.interp.masks import spec_mask, spec_pair

    def parts(env: Env, domain: Domain) -> list[Any]:
        full = with_constants(spec, env, domain)
        return [part for region in spec.regions_of_rows for part in rule_parts(region, full, domain)]

    return Side(
        f"the rule of @{spec.sym_name.data}",
        spec,
        parts,
        lambda env: spec_mask(spec, env),
        lambda env, i, j: spec_pair(spec, env, i, j),
    )


def table_side(table: TableOp) -> Side:
    """The spans of a table."""
    from cmir.interp.masks import table_mask, table_pair

    def parts(env: Env, domain: Domain) -> list[Any]:
        memo = dict[Expr, Value]()
        return [
            evaluate(and_(held(region, table.fixed), span.contains(table.moving)), env, domain, memo)
            for region in table.regions_of_table
            for span in region.spans
        ]

    return Side(
        f"@{table.sym_name.data}",
        table,
        parts,
        lambda env: table_mask(table, env),
        lambda env, i, j: table_pair(table, env, i, j),
    )


def slots_side(preprocess: PreprocessOp, axis: str) -> Side:
    """The slots that a preprocess kernel stores for one axis."""
    from cmir.interp.masks import paint
    from cmir.interp.preprocess import slot_table

    def parts(env: Env, domain: Domain) -> list[Any]:
        at, moving = (env["i"], env["j"]) if axis == "rows" else (env["j"], env["i"])
        return [z3.And(lo <= moving, moving < hi) for lo, hi in slots(preprocess, axis, at, env, domain)]

    def mask(env: Env) -> np.ndarray:
        by_row = axis == "rows"
        out = paint(slot_table(preprocess, axis, env), int(env["cols" if by_row else "rows"]))
        return out if by_row else out.T

    return Side(f"the {axis} slots of @{preprocess.sym_name.data}", preprocess, parts, mask)


def pairs_side(preprocess: PreprocessOp) -> Side:
    """The pairs that a preprocess kernel keeps as bits: those in the hull of their row for which `pair` holds."""
    from cmir.interp.preprocess import pair_mask

    def parts(env: Env, domain: Domain) -> list[Any]:
        assert preprocess.hull is not None and preprocess.pair is not None
        lo, hi = run_kernel(preprocess, preprocess.hull.body, [env["i"]], env, domain)
        (holds,) = run_kernel(preprocess, preprocess.pair.body, [env["i"], env["j"]], env, domain)
        return [z3.And(lo <= env["j"], env["j"] < hi, holds)]

    return Side(f"the pairs of @{preprocess.sym_name.data}", preprocess, parts, lambda env: pair_mask(preprocess, env))


def with_constants(spec: SpecOp, env: Env, domain: Domain) -> dict[str, Value]:
    """`env` with the values of statics and the tables of constants of a spec."""
    import numpy as np

    statics = {p.name: domain.const(p.value) for p in spec.parameters if p.value is not None}
    tables = {
        name: TableValue(np.asarray(v, dtype=np.int64), base) for name, (base, v) in constant_tables(spec).items()
    }
    return {**env, **statics, **tables}


def rule_parts(region: RegionOp, env: Env, domain: Domain) -> list[Any]:
    """The cases of one Region's rule; `env` has the statics and the tables of constants."""
    inside = guard(region, env, domain)
    if region.is_normal:
        memo = dict[Expr, Value]()
        rules = [evaluate(c.condition.data, env, domain, memo) for c in region.clauses]
    else:
        rules = list(_cases(run_rule(region, env, domain)))
    return [z3.And(inside, rule) for rule in rules]


def guard(region: RegionOp, env: Env, domain: Domain) -> Any:
    """Whether a Region holds row `env["i"]`."""
    lo, hi = (evaluate(e.data, env, domain) for e in (region.lo, region.hi))
    return z3.And(lo <= env["i"], env["i"] < hi)


def held(region: TableRegionOp, fixed: str) -> Expr:
    """Whether a region of a table holds its index."""
    return and_(le(region.lo.data, var(fixed)), lt(var(fixed), region.hi.data))


def _cases(rule: Any) -> Iterator[Any]:
    """The operands of a disjunction, and of those that are operands of it."""
    if z3.is_or(rule):
        for operand in rule.children():
            yield from _cases(operand)
    else:
        yield rule


@register_impls
class KernelFunctions(RuleFunctions):
    """The meaning of the ops of a preprocess kernel in the z3 domain."""

    @impl(FirstOp)
    def run_first(self, interpreter: Interpreter, op: FirstOp, args: PythonValues) -> PythonValues:
        scope = interpreter._ctx  # pyright: ignore[reportPrivateUsage]

        def body(index: Value) -> Value:
            # Asked after the code around it has returned: with the values that were in sight here.
            interpreter._ctx = scope  # pyright: ignore[reportPrivateUsage]
            return interpreter.run_ssacfg_region(op.body, (index,), "first")[0]

        return (self.domain.quantify("first", "", args[0], args[1], self.env, body),)

    @impl(LengthOp)
    def run_length(self, interpreter: Interpreter, op: LengthOp, args: PythonValues) -> PythonValues:
        return (args[0].length,)

    @impl_terminator(EndpointsOp)
    def run_endpoints(self, interpreter: Interpreter, op: EndpointsOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()

    @impl_terminator(HoldsOp)
    def run_holds(self, interpreter: Interpreter, op: HoldsOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()


def run_kernel(preprocess: PreprocessOp, body: Region, index: list[Any], env: Env, domain: Domain) -> list[Any]:
    """What the code of a part of a preprocess kernel returns at an index."""
    interpreter = Interpreter(ModuleOp([]))
    interpreter.register_implementations(KernelFunctions(domain, env))
    interpreter.set_values(zip(preprocess.body.block.args, (env[n.data] for n in preprocess.names), strict=True))
    return list(interpreter.run_ssacfg_region(body, tuple(index), preprocess.sym_name.data))


def slots(preprocess: PreprocessOp, axis: str, at: Any, env: Env, domain: Domain) -> list[tuple[Any, Any]]:
    """(lo, hi) of every slot at a row (column)."""
    op = preprocess.slots_of(axis)
    assert op is not None, f"unbounded by {axis}"
    ends = run_kernel(preprocess, op.body, [at], env, domain)
    return list(zip(ends[::2], ends[1::2], strict=True))
