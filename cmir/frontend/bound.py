"""Names of bound indices: the `d` of `spec.exists(0, 3, lambda d: ...)` and of facts over entries.

While terms are built every bound index has a name of its own, such as `_d_1`, that no metadata can have: so no term
ever captures another one's index, whatever is declared later. When the spec is built they are named as the user does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from cmir.dialects.expr import BINDERS, KEYWORDS, Expr, ExprAttr, map_bottom_up, var, walk
from cmir.dialects.maskspec import IDENTIFIER, AssumeOp

BOUND: Final = "_"


def unique_name(name: str, number: int) -> str:
    return f"{BOUND}{name}_{number}"


def users_name(bound: str) -> str:
    """What the user calls a bound index: `d` for `_d_1`."""
    return bound.removeprefix(BOUND).rpartition("_")[0]


def parameter_name(body: Callable[..., object]) -> str:
    """What the user calls the index that a function binds; `k` where that cannot be a name."""
    code = getattr(body, "__code__", None)
    names: tuple[str, ...] = getattr(code, "co_varnames", ())
    name = names[0].strip("_") if names else ""
    return name if IDENTIFIER.match(name) and name not in KEYWORDS else "k"


def name_bound_indices(op: Operation, taken: Collection[str]) -> None:
    """Give the bound indices of an op's expressions the names that the user gave them, numbered where one is taken."""
    expressions = {key: attr.data for key, attr in op.properties.items() if isinstance(attr, ExprAttr)}
    names: dict[str, str] = {}
    for e in expressions.values():
        for term in walk(e):
            if term.op in {"var", *BINDERS} and term.name.startswith(BOUND) and term.name not in names:
                names[term.name] = _free_name(users_name(term.name), {*taken, *names.values()})

    def rename(term: Expr) -> Expr:
        if term.op in {"var", *BINDERS} and term.name in names:
            return var(names[term.name]) if term.op == "var" else Expr(term.op, term.args, names[term.name])
        return term

    for key, e in expressions.items() if names else ():
        op.properties[key] = ExprAttr(map_bottom_up(e, rename))
    if isinstance(op, AssumeOp) and op.bound is not None and op.bound.data in names:
        op.bound = StringAttr(names[op.bound.data])


def _free_name(name: str, taken: Collection[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
