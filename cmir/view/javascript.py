"""A mask as JavaScript: index expressions as functions, so that a browser computes what NumPy does.

    start[i] <= j and j < i + 1      ->      ($, i, j) => (lookup($.start, i) <= j) && (j < add(i, 1))

`$` holds the lengths, scalars (numbers) and tables (arrays). The operators that JavaScript has under the same meaning
are infix; the others are functions of `web/model.js`, exact on all integers that a double can hold, an error past them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from cmir.analysis.facts import Fact, facts_of
from cmir.dialects.expr import OPERATORS, Expr, and_, show
from cmir.dialects.interval import SpanOp, TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.view.colours import first_numbers


class Code(str):
    """JavaScript, where a plain string is text."""


def literal(value: Any) -> str:
    """A value as JavaScript that may stand inside a script element: nothing in it can end one."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return "{" + ", ".join(f"{_string(k)}: {literal(v)}" for k, v in items.items()) + "}"
    if isinstance(value, list | tuple):
        entries = cast("Sequence[Any]", value)
        return "[" + ", ".join(map(literal, entries)) + "]"
    return _string(value)


def _string(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_INFIX = {"or": "||", "and": "&&", "lt": "<", "le": "<=", "eq": "==="}
_CALL = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "floordiv": "floordiv",
    "mod": "mod",
    "min": "Math.min",
    "max": "Math.max",
    "abs": "Math.abs",
    "isqrt": "isqrt",
}


def expression(e: Expr, names: Mapping[str, str] | None = None) -> str:
    """The JavaScript of an expression; `names` says how variables that are no metadata are written (`i`, `j`)."""
    names = {"i": "i", "j": "j"} if names is None else names

    def of(a: Expr) -> str:
        return expression(a, names)

    match e.op:
        case "const":
            return str(e.value) if e.value >= 0 else f"({e.value})"
        case "bool":
            return "true" if e.value else "false"
        case "var":
            return names.get(e.name, f"$.{e.name}")
        case "not":
            return f"!({of(e.args[0])})"
        case "neg":
            return f"sub(0, {of(e.args[0])})"
        case "select":
            condition, yes, no = map(of, e.args)
            return f"({condition} ? {yes} : {no})"
        case "lookup":
            return f"lookup($.{e.name}, {', '.join(map(of, e.args))})"
        case "exists" | "first":
            # No identifier of a spec begins with an underscore.
            bound = f"_{len(names)}"
            body = expression(e.args[2], {**names, e.name: bound})
            return f"{e.op}({of(e.args[0])}, {of(e.args[1])}, ({bound}) => {body})"
        case op if op in _INFIX:
            return "(" + f" {_INFIX[op]} ".join(map(of, e.args)) + ")"
        case op:
            return f"{_CALL[op]}({', '.join(map(of, e.args))})"


def function(e: Expr) -> Code:
    """A function of the metadata, the row and the column."""
    return Code(f"($, i, j) => {expression(e)}")


def program(spec: SpecOp, tables: Mapping[str, TableOp], words: Callable[[str], str] = str) -> str:
    """The mask as one JavaScript object, which `web/model.js` evaluates.

    Args:
        spec: in normal form.
        tables: its interval tables, by axis.
        words: spells what is shown of expressions in the language that the spec was written in.
    """
    return literal(
        _spelled(
            words,
            {
                "name": spec.sym_name.data,
                "parameters": [{"name": p.name, "kind": p.kind, "entries": p.entries or 0} for p in spec.parameters],
                "facts": [_fact(f) for f in facts_of(spec).facts],
                "regions": [
                    {
                        "name": r.sym_name.data,
                        "text": f"[{show(r.lo.data)}, {show(r.hi.data)})",
                        "lo": function(r.lo.data),
                        "hi": function(r.hi.data),
                        "clauses": [
                            {"name": f"{r.sym_name.data}.{k}", "literals": [_literal(e) for e in c.literals]}
                            for k, c in enumerate(r.clauses)
                        ],
                    }
                    for r in spec.regions_of_rows
                ],
                "tables": {axis: _table(table) for axis, table in tables.items()},
            },
        )
    )


def _spelled(words: Callable[[str], str], value: Any) -> Any:
    """The value, with every `text` in it spelled so."""
    if isinstance(value, list):
        return [_spelled(words, x) for x in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value).items()
    return {k: words(x) if k == "text" else _spelled(words, x) for k, x in items}


def _literal(e: Expr) -> dict[str, Any]:
    sides = [function(a) for a in e.args] if e.op in ("lt", "le", "eq") else []
    symbol = OPERATORS[e.op].symbol if sides else ""
    return {"text": show(e), "holds": function(e), "sides": sides, "symbol": symbol}


def _table(table: TableOp) -> dict[str, Any]:
    numbers = first_numbers(table)
    return {
        "slots": None if table.slots is None else table.slots.data,
        "regions": [
            {
                "name": region.sym_name.data,
                "text": f"[{show(region.lo.data)}, {show(region.hi.data)})",
                "lo": function(region.lo.data),
                "hi": function(region.hi.data),
                "fuse": [list(pair) for pair in region.fused],
                "spans": [_span(span, number + k) for k, span in enumerate(region.spans)],
            }
            for region, number in zip(table.regions_of_table, numbers, strict=True)
        ],
    }


def _span(span: SpanOp, number: int) -> dict[str, Any]:
    optional: dict[str, Callable[[], Any]] = {}
    for name, attr in (("when", span.when), ("residual", span.residual)):
        if attr is not None:
            optional[name] = lambda e=attr.data: {"text": show(e), "holds": function(e)}
    return {
        "number": number,
        "lo": function(span.lo.data),
        "hi": function(span.hi.data),
        "text": f"[{show(span.lo.data)}, {show(span.hi.data)})",
        "origins": list(span.origins),
        **{name: make() for name, make in optional.items()},
    }


def _fact(fact: Fact) -> dict[str, Any]:
    if fact.over is None:
        return {"text": fact.text, "kind": "scalar", "holds": Code(f"($) => {expression(and_(fact.condition), {})}")}
    name, lo, hi = fact.over
    return {
        "text": fact.text,
        "kind": fact.kind,
        "tables": list(fact.tables),
        "lo": Code(f"($) => {expression(lo, {})}"),
        "hi": Code(f"($) => {expression(hi, {})}"),
        "holds": Code(f"($, index) => {expression(fact.condition, {name: 'index'})}"),
    }
