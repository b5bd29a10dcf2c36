"""The ops that a surface rule may use, and the operator of the expression language that each one means.

One table serves the verifier's messages, the interpreter and the passes; an op that is neither in it nor a `RuleOp` is
not in the rule language.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation

from cmir.dialects.expr import Expr, free_names, walk
from cmir.dialects.maskspec import INDEX, ColsOp, ModOp, RowsOp
from cmir.errors import SpecError


class RuleOp(Operation, ABC):
    """An op of another dialect that may stand in a rule, since it says what it means in the expression language.

    Its operands are integers (`index`; entries of tables are looked up before), its one result is an integer or a
    condition (`i1`), and it has no region. Passes read `means` with what its operands are made of; interpreters
    evaluate it, on NumPy arrays and on z3's terms.
    """

    @abstractmethod
    def means(self, *operands: Expr) -> Expr:
        """The value of the result, given an expression for each operand; beside those, of `rows` and `cols` at most."""


def meaning(op: RuleOp, operands: Sequence[Expr]) -> Expr:
    """What a foreign op means, checked.

    Raises:
        SpecError: an operand is no integer, it is of another sort than the result, or reads what is no operand.
    """
    if wrong := next((v.type for v in op.operands if v.type != INDEX), None):
        raise SpecError(f"'{op.name}' in a rule takes integers (index), got {wrong}", op)
    e = op.means(*operands)
    if op.results[0].type != (i1 if e.sort == "bool" else INDEX):
        raise SpecError(f"'{op.name}' means {e}, which is no {op.results[0].type}", op)
    known = {"rows", "cols"}.union(*map(free_names, operands))
    if stray := sorted(free_names(e) - known):
        raise SpecError(f"'{op.name}' means {e}, which reads '{stray[0]}', none of its operands", op)
    return e


def divisors_in(e: Expr) -> list[tuple[str, Expr]]:
    """The operator and the divisor of every division in an expression."""
    return [(term.op, term.args[1]) for term in walk(e) if term.op in ("floordiv", "mod")]


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
