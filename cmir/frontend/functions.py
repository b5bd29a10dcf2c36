"""What Python has no operator for: minimum, maximum, where, exists, forall. `MaskSpec` offers them as methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from cmir.dialects import expr as ex
from cmir.dialects.expr import show
from cmir.errors import SpecError
from cmir.frontend.bound import parameter_name
from cmir.frontend.source import not_too_deep, user_location
from cmir.frontend.terms import Owner, Term, condition, fold, integer


def extremum(owner: Owner, op: Literal["min", "max"], values: Sequence[object]) -> Term:
    """The least or greatest of at least two integers."""
    what = {"min": "'minimum'", "max": "'maximum'"}[op]
    if len(values) < 2:
        raise TypeError(f"{what} takes at least two integers, got {len(values)}")
    return fold(op, ex.minimum if op == "min" else ex.maximum, [integer(owner, v, what) for v in values])


@not_too_deep
def where(owner: Owner, test: object, then: object, otherwise: object) -> Term:
    """`then` where the condition `test` holds, else `otherwise`: both integers, or both conditions."""
    p = condition(owner, test, "'where'")
    if all(isinstance(x, bool) or (isinstance(x, Term) and x.expr.sort == "bool") for x in (then, otherwise)):
        return (p & condition(owner, then, "'where'")) | (~p & condition(owner, otherwise, "'where'"))
    a, b = (integer(owner, x, "'where'") for x in (then, otherwise))
    return Term(owner, "select", ex.select(p.expr, a.expr, b.expr), (p, a, b))


def exists(owner: Owner, lo: object, hi: object, body: Callable[[Term], Term | bool]) -> Term:
    """True where `body(d)` holds for some d from lo to hi, both included; see `MaskSpec.exists`."""
    return _some(owner, "exists", lo, hi, body, negated=False)


def forall(owner: Owner, lo: object, hi: object, body: Callable[[Term], Term | bool]) -> Term:
    """True where `body(d)` holds for every d from lo to hi, both included: for none it does not."""
    return ~_some(owner, "forall", lo, hi, body, negated=True)


def _some(owner: Owner, op: str, lo: object, hi: object, body: Callable[[Term], Term | bool], *, negated: bool) -> Term:
    ends = [integer(owner, end, f"'{op}'").expr for end in (lo, hi)]
    for end in ends:
        if not owner.is_static(end):
            wrong = f"the ends of '{op}' are known at compile time: '{show(end)}' reads more than statics"
            raise SpecError(wrong, user_location())
    bound = owner.fresh(parameter_name(body))
    inside = condition(owner, body(Term(owner, "var", ex.var(bound))), f"the body of '{op}'")
    inside = ~inside if negated else inside
    return Term(owner, "exists", ex.make("exists", *ends, inside.expr, data=bound), (inside,))
