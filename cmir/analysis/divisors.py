"""What a spec divides by is at least 1: a number of the sequence must be said to be.

    maskspec.assume 1 <= group
    ... i floordiv group ...

A division by less than 1 means one by 1 (`cmir.dialects.expr`), in every domain and in the kernels, so nothing can go
wrong where metadata break the fact. But a mask whose meaning hangs on that is hardly what anyone wants, and what is
solved and proved of a division takes the fact for granted.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import facts_of
from cmir.analysis.linear import simplify
from cmir.analysis.rules import divisions, fold_statics
from cmir.dialects.expr import OPERATORS, Expr, ExprAttr, const, le, walk
from cmir.dialects.maskspec import ConstantsOp, RegionOp, SpecOp
from cmir.errors import SpecError

DIVISIONS = ("floordiv", "mod")


def check_divisors(spec: SpecOp) -> None:
    """Every divisor of the spec, in rules, guards and facts, is at least 1 by the facts.

    Raises:
        SpecError: at the division (of SSA) or at the op that holds it.
    """
    scalars = None
    asked: dict[Expr, bool] = {}
    for op, name, divisor in _divisions(spec):
        if divisor.op == "const":
            continue
        scalars = scalars or Entailment(facts_of(spec), None)
        if not asked.setdefault(divisor, scalars.prove(le(const(1), divisor)).proved):
            raise SpecError(
                f"'{name}' divides by {divisor}, and nothing says that it is at least 1; state the fact 1 <= {divisor}",
                op,
            )


def _divisions(spec: SpecOp) -> Iterator[tuple[Operation, str, Expr]]:
    """What is divided by, once statics are folded and quantifiers are expanded; entries of constant tables are not
    asked for, they are numbers."""
    for op in spec.walk():
        if isinstance(op, RegionOp) and not op.is_normal:
            yield from ((inside, inside.name, divisor) for inside, divisor in divisions(op))
        for attribute in () if isinstance(op, ConstantsOp) else op.properties.values():
            if isinstance(attribute, ExprAttr) and _divides(attribute.data):
                for term in walk(fold_statics(attribute.data, spec, op)):
                    if term.op in DIVISIONS:
                        yield op, OPERATORS[term.op].symbol, simplify(term.args[1])


def _divides(e: Expr) -> bool:
    return any(term.op in DIVISIONS for term in walk(e))
