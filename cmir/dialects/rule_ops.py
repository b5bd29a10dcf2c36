"""The ops that a surface rule may use, and the operator of the expression language that each one means.

One table serves the verifier's messages, the interpreter and the passes; an op that is not in it is not in the rule
language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.dialects import arith
from xdsl.ir import Operation

from cmir.dialects.maskspec import ColsOp, ModOp, RowsOp

OPERATOR_OF: Final[Mapping[type[Operation], str]] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.FloorDivSIOp: "floordiv",
    ModOp: "mod",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.SelectOp: "select",
}
LENGTH_OF: Final[Mapping[type[Operation], str]] = {RowsOp: "rows", ColsOp: "cols"}

# arith.cmpi predicates: the operator, and whether the operands trade places. 1 (ne) is the negation of eq.
PREDICATE: Final[Mapping[int, tuple[str, bool]]] = {
    0: ("eq", False),
    1: ("ne", False),
    2: ("lt", False),
    3: ("le", False),
    4: ("lt", True),
    5: ("le", True),
}

INSTEAD: Final[Mapping[str, str]] = {
    "arith.divsi": "arith.floordivsi (division rounds down)",
    "arith.divui": "arith.floordivsi",
    "arith.remsi": "maskspec.mod (never negative)",
    "arith.remui": "maskspec.mod",
    "arith.minui": "arith.minsi",
    "arith.maxui": "arith.maxsi",
    "arith.ceildivsi": "arith.floordivsi of (x + k - 1)",
}


def refusal(op: Operation) -> str:
    """Why an op cannot stand in a rule, and what to write."""
    if isinstance(op, arith.CmpiOp):
        return "comparisons in a rule are signed: slt, sle, sgt, sge, eq or ne"
    if isinstance(op, arith.ConstantOp):
        return f"a number in a rule is an index, a condition an i1; got {op.result.type}"
    if op.name in INSTEAD:
        return f"'{op.name}' is not in the rule language; use {INSTEAD[op.name]}"
    return f"'{op.name}' is not in the rule language: integer arith, comparisons, and/or/not, and the maskspec look-ups"
