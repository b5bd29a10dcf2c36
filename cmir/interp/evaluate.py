"""Evaluate an expression in a domain: the one definition of what the expression language means."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cmir.dialects.expr import BINDERS, Expr, depends
from cmir.interp.domain import Domain, Value


def evaluate(e: Expr, env: Mapping[str, Value], domain: Domain, memo: dict[Expr, Value] | None = None) -> Value:
    """The value of `e` where `env` gives every free name a value (tables: what `domain.lookup` takes).

    `memo` keeps the values of subterms; pass one dictionary for all expressions evaluated under the same `env`.
    """
    memo = {} if memo is None else memo
    if e in memo:
        return memo[e]
    match e.op:
        case "const":
            out = domain.const(e.value)
        case "bool":
            out = domain.boolean(bool(e.value))
        case "var":
            out = env[e.name]
        case "lookup":
            out = domain.lookup(env[e.name], *(evaluate(a, env, domain, memo) for a in e.args))
        case op if op in BINDERS:
            lo, hi = (evaluate(a, env, domain, memo) for a in e.args[:2])
            out = domain.quantify(op, e.name, lo, hi, env, _body(e, env, domain, memo))
        case op:
            out = domain.apply(op, [evaluate(a, env, domain, memo) for a in e.args])
    memo[e] = out
    return out


def _body(e: Expr, env: Mapping[str, Value], domain: Domain, memo: Mapping[Expr, Value]) -> Callable[[Value], Value]:
    """The body of a binder as a function of what it binds; what does not read that keeps its value."""
    known = {term: value for term, value in memo.items() if not depends(term, e.name)}
    return lambda k: evaluate(e.args[2], {**env, e.name: k}, domain, {**known})
