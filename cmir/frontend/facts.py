"""Facts as users state them, to `maskspec.assume`, `maskspec.nondecreasing` and `maskspec.contiguous`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cmir.dialects.expr import Expr, free_names, var, walk
from cmir.dialects.maskspec import AssumeOp, ContiguousOp, MonotoneOp, NondecreasingOp
from cmir.errors import SpecError
from cmir.frontend.bound import parameter_name
from cmir.frontend.source import attribute, user_location
from cmir.frontend.tables import Monotone
from cmir.frontend.terms import Owner, Term, check_bound, condition, same_owner

Fact = Term | Monotone | Callable[[Term], Term]
Over = tuple[str, tuple[Expr, Expr]]  # "rows", "cols" or "entries", and the range

_INDEX: Final = {"rows": "i", "cols": "j"}
_MONOTONE: Final = {"nondecreasing": NondecreasingOp, "contiguous": ContiguousOp}


def fact_op(owner: Owner, fact: Fact, over: Over | None) -> AssumeOp | MonotoneOp:
    """The op that states a fact, located where the fact was written.

    Raises:
        TypeError: not a fact.
        SpecError: a fact that does not range over what `over` says, or that reads rows and columns both.
    """
    if isinstance(fact, Monotone):
        return _monotone(owner, fact, over)
    if callable(fact):
        return _entry_fact(owner, fact, over)
    term = condition(owner, fact, "assume")
    if term.op == "bool":
        raise TypeError(f"a fact is a condition on the metadata, got {fact!r}: Python knew it from integers alone")
    check_bound(term)
    names = free_names(term.expr)
    read = sorted({"i", "j"} & names)
    if len(read) > 1:
        raise SpecError(f"a fact ranges over rows (i) or columns (j), not both: {term!r}", term.location)
    if over is None:
        return _located(AssumeOp(term.expr), term)
    kind, (lo, hi) = over
    if kind == "entries":
        raise SpecError("entries= is for facts written as functions of the entry, lambda k: ...", term.location)
    if read != [_INDEX[kind]]:
        raise SpecError(f"{kind}= is for facts that read {_INDEX[kind]}; this one does not: {term!r}", term.location)
    return _located(AssumeOp(term.expr, (_INDEX[kind], lo, hi)), term)


def _monotone(owner: Owner, fact: Monotone, over: Over | None) -> MonotoneOp:
    same_owner(owner, fact.owner, fact, "assume")
    if over is not None:
        raise SpecError(f"the range of this fact is its own: {fact.table}.{fact.kind}(over=(lo, hi))", fact.location)
    op = _MONOTONE[fact.kind](fact.table, fact.over)
    op.location = attribute(fact.location)
    return op


def _entry_fact(owner: Owner, fact: Callable[[Term], Term], over: Over | None) -> AssumeOp:
    if over is None or over[0] != "entries":
        raise SpecError("a fact that is a function of an index needs its range: entries=(lo, hi)", user_location())
    name = parameter_name(fact)
    bound = owner.fresh(name)
    term = condition(owner, fact(Term(owner, "var", var(bound))), "assume")
    check_bound(term, bound)
    if index := min({"i", "j"} & free_names(term.expr), default=None):
        raise SpecError(f"a fact for {name} may not read another index: {term!r} reads '{index}'", term.location)
    at_bound = {t.name for t in walk(term.expr) if t.op == "lookup" and bound in free_names(t.args[0])}
    if wrong := min((table for table in at_bound if owner.per(table) in ("row", "col")), default=None):
        raise SpecError(f"'{wrong}' is read along rows or columns: write the fact with i or j", term.location)
    if not any(owner.per(table) == "free" for table in at_bound):
        missing = f"a fact for {name} is about entries of a free table: it must read one at {name}"
        raise SpecError(missing, term.location)
    return _located(AssumeOp(term.expr, (bound, *over[1])), term)


def _located(op: AssumeOp, term: Term) -> AssumeOp:
    op.location = attribute(term.location)
    return op
