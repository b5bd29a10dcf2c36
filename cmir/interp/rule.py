"""Run a surface rule with xDSL's interpreter, values being whole index grids (NumPy) or terms (z3).

This is the oracle: it reads the SSA that the user wrote and shares nothing with the passes but the table of operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from cmir.dialects.expr import var
from cmir.dialects.maskspec import (
    ColsOp,
    ExistsOp,
    LookupOp,
    ModOp,
    PositionOp,
    RegionOp,
    RowsOp,
    VisibleOp,
    YieldOp,
    spec_of,
)
from cmir.dialects.rule_ops import OPERATOR_OF, PREDICATE, RuleOp, meaning
from cmir.interp.domain import Domain, Value
from cmir.interp.evaluate import evaluate


def _operator(op_type: type[Operation]) -> Any:
    """The implementation of an op that is one operator of the expression language."""

    def run(self: RuleFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return (self.domain.apply(OPERATOR_OF[op_type], args),)

    return impl(op_type)(run)


@register_impls
class RuleFunctions(InterpreterFunctions):
    """The meaning of rule ops in one domain, for one choice of metadata."""

    def __init__(self, domain: Domain, env: Mapping[str, Value]) -> None:
        super().__init__()
        self.domain = domain
        self.env = env

    run_add = _operator(arith.AddiOp)
    run_sub = _operator(arith.SubiOp)
    run_mul = _operator(arith.MuliOp)
    run_floordiv = _operator(arith.FloorDivSIOp)
    run_mod = _operator(ModOp)
    run_min = _operator(arith.MinSIOp)
    run_max = _operator(arith.MaxSIOp)
    run_and = _operator(arith.AndIOp)
    run_or = _operator(arith.OrIOp)
    run_select = _operator(arith.SelectOp)

    @impl(arith.ConstantOp)
    def run_constant(self, interpreter: Interpreter, op: arith.ConstantOp, args: PythonValues) -> PythonValues:
        assert isinstance(op.value, IntegerAttr)
        value = op.value.value.data
        return (self.domain.boolean(value != 0) if op.result.type == i1 else self.domain.const(value),)

    @impl(arith.CmpiOp)
    def run_cmp(self, interpreter: Interpreter, op: arith.CmpiOp, args: PythonValues) -> PythonValues:
        name, swap = PREDICATE[op.predicate.value.data]
        pair = args[::-1] if swap else args
        if name == "ne":
            return (self.domain.apply("not", [self.domain.apply("eq", pair)]),)
        return (self.domain.apply(name, pair),)

    @impl(arith.XOrIOp)
    def run_xor(self, interpreter: Interpreter, op: arith.XOrIOp, args: PythonValues) -> PythonValues:
        return (self.domain.apply("not", [self.domain.apply("eq", args)]),)

    @impl(RowsOp)
    def run_rows(self, interpreter: Interpreter, op: RowsOp, args: PythonValues) -> PythonValues:
        return (self.env["rows"],)

    @impl(ColsOp)
    def run_cols(self, interpreter: Interpreter, op: ColsOp, args: PythonValues) -> PythonValues:
        return (self.env["cols"],)

    @impl(PositionOp)
    def run_position(self, interpreter: Interpreter, op: PositionOp, args: PythonValues) -> PythonValues:
        if op.alignment.data == "top_left":
            return args
        gap = self.domain.apply("sub", [self.env["cols"], self.env["rows"]])
        return (self.domain.apply("add", [args[0], gap]),)

    @impl(LookupOp)
    def run_lookup(self, interpreter: Interpreter, op: LookupOp, args: PythonValues) -> PythonValues:
        table = args[0] if op.constants is None else self.env[op.constants.data]
        return (self.domain.lookup(table, *args[-len(op.indices) :]),)

    @impl(ExistsOp)
    def run_exists(self, interpreter: Interpreter, op: ExistsOp, args: PythonValues) -> PythonValues:
        def body(d: Value) -> Value:
            return interpreter.run_ssacfg_region(op.body, (d,), "exists")[0]

        lo, hi = (evaluate(e.data, self.env, self.domain) for e in (op.lo, op.hi))
        return (self.domain.quantify("exists", "", lo, hi, self.env, body),)

    @impl_terminator(VisibleOp)
    def run_visible(self, interpreter: Interpreter, op: VisibleOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()

    @impl_terminator(YieldOp)
    def run_yield(self, interpreter: Interpreter, op: YieldOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()


def _functions_of(kind: type[RuleOp], domain: Domain, env: Mapping[str, Value]) -> InterpreterFunctions:
    """The implementation of an op of another dialect: what it says that it means, of the values of its operands."""

    @register_impls
    class Foreign(InterpreterFunctions):
        @impl(kind)
        def run(self, interpreter: Interpreter, op: RuleOp, args: PythonValues) -> PythonValues:
            names = [f"operand#{k}" for k in range(len(args))]  # no identifier, so of no metadatum
            here = {"rows": env["rows"], "cols": env["cols"], **dict(zip(names, args, strict=True))}
            return (evaluate(meaning(op, [var(name) for name in names]), here, domain),)

    return Foreign()


def run_rule(region: RegionOp, env: Mapping[str, Value], domain: Domain) -> Value:
    """The rule's value where `env` gives `i`, `j`, `rows`, `cols`, every parameter and every constant table a value.

    `i` and `j` must already broadcast against each other ([rows, 1] and [1, cols] for a whole mask).
    """
    spec = spec_of(region)
    interpreter = Interpreter(ModuleOp([]))
    interpreter.register_implementations(RuleFunctions(domain, env))
    for kind in {type(op) for op in region.walk() if isinstance(op, RuleOp)}:
        interpreter.register_implementations(_functions_of(kind, domain, env))
    interpreter.set_values(zip(spec.body.block.args, (env[p.name] for p in spec.parameters), strict=True))
    return interpreter.run_ssacfg_region(region.body, (env["i"], env["j"]), region.sym_name.data)[0]
