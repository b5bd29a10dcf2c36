"""Which way does an expression move as an index grows?

    direction(start[i] + 2 * i, "i")  ->  "up"      where start is declared nondecreasing
    direction(i - w[i], "i")          ->  "up"      where w[i + 1] <= w[i] + 1 is assumed of all rows but the last
    direction(i mod 4, "i")           ->  None      unknown

It is read off the operators, or else proved of one step: `e(i) <= e(i + 1)`. It is what makes binary search and
transposition sound: a monotone condition on a range is a prefix or a suffix of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from cmir.analysis.entailment import Entailment
from cmir.analysis.facts import Facts, covers
from cmir.analysis.linear import simplify
from cmir.dialects.expr import ONE, ZERO, Expr, add, depends, free_names, le, sub, substitute, var, walk

Direction = Literal["constant", "up", "down"]
_FLIP: dict[Direction, Direction] = {"constant": "constant", "up": "down", "down": "up"}


def direction(e: Expr, index: str, facts: Facts, lo: Expr, hi: Expr) -> Direction | None:
    """How `e` moves while `index` grows through `[lo, hi)`, weakly; None: unknown."""
    return _by_operators(e, index, facts, lo, hi) or _by_one_step(e, index, facts, lo, hi)


def _by_one_step(e: Expr, index: str, facts: Facts, lo: Expr, hi: Expr) -> Direction | None:
    """Proved by the facts, where the other index cancels out of a step."""
    here = var(index)
    tables = {t.name for t in walk(e) if t.op == "lookup" and depends(t, index)}
    related = (t for fact in facts.facts if fact.over is not None for t in walk(fact.condition) if t.op == "lookup")
    if not any(t.name in tables and t.args[0].op != "var" for t in related):
        return None  # no fact says what a table has at the next index
    step = simplify(sub(substitute(e, {here: add(here, ONE)}), e))
    if {"i", "j"} & free_names(step) - {index}:
        return None
    steps = Entailment(facts, index, lo, simplify(sub(hi, ONE)))
    return "up" if steps.prove(le(ZERO, step)).proved else "down" if steps.prove(le(step, ZERO)).proved else None


def _by_operators(e: Expr, index: str, facts: Facts, lo: Expr, hi: Expr) -> Direction | None:
    if not depends(e, index):
        return "constant"

    def again(x: Expr) -> Direction | None:
        return _by_operators(x, index, facts, lo, hi)

    match e.op:
        case "var":
            return "up"
        case "add" | "min" | "max":
            return _join(map(again, e.args))
        case "sub":
            return _join([again(e.args[0]), _flip(again(e.args[1]))])
        case "neg":
            return _flip(again(e.args[0]))
        case "mul" if any(a.op == "const" for a in e.args):
            k, x = e.args if e.args[0].op == "const" else e.args[::-1]
            return again(x) if k.value >= 0 else _flip(again(x))
        case "floordiv" if not depends(e.args[1], index):
            return again(e.args[0])
        case "select" if not depends(e.args[0], index):
            return _join(map(again, e.args[1:]))
        case "lookup" if not any(depends(a, index) for a in e.args[1:]):
            return _lookup(e, facts, lo, hi, again(e.args[0]))
        case _:
            return None


def _lookup(e: Expr, facts: Facts, lo: Expr, hi: Expr, index: Direction | None) -> Direction | None:
    """A look-up in a monotone table moves as its index does; where only a range is monotone, that is in the range."""
    for m in facts.monotone:
        if m.table != e.name:
            continue
        length = facts.length(m.table)
        if covers((m.lo, m.hi), ZERO, length, length) or (
            e.args[0].op == "var" and covers((m.lo, m.hi), lo, hi, length)
        ):
            return index
    return None


def _flip(d: Direction | None) -> Direction | None:
    return None if d is None else _FLIP[d]


def _join(parts: Iterable[Direction | None]) -> Direction | None:
    moving: set[Direction | None] = {d for d in parts if d != "constant"}
    return "constant" if not moving else moving.pop() if len(moving) == 1 else None
