"""Terms of a rule to SSA: arith and maskspec ops, one for each distinct subterm, each with the user's location.

A subterm stands as far out as it can: what does not read the index of an `exists` is computed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from cmir.dialects.expr import Expr, free_names, var
from cmir.dialects.maskspec import INDEX, ColsOp, ExistsOp, LookupOp, ModOp, PositionOp, RowsOp, VisibleOp, YieldOp
from cmir.frontend.bound import BOUND, users_name
from cmir.frontend.source import attribute
from cmir.frontend.terms import Term


def _compare(predicate: str) -> Callable[[SSAValue, SSAValue], Operation]:
    return lambda a, b: arith.CmpiOp(a, b, predicate)


def _bottom_right(row: SSAValue) -> Operation:
    return PositionOp("bottom_right", row)


_OP: Mapping[str, Callable[..., Operation]] = {
    "position": _bottom_right,
    "rows": RowsOp,
    "cols": ColsOp,
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "floordiv": arith.FloorDivSIOp,
    "mod": ModOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "lt": _compare("slt"),
    "le": _compare("sle"),
    "eq": _compare("eq"),
    "ne": _compare("ne"),
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "select": arith.SelectOp,
}


@dataclass
class _Scope:
    """A block under construction: the rule's own, or the body of an `exists`, which binds a name."""

    block: Block
    values: dict[Expr, SSAValue]
    bound: str | None = None
    outer: _Scope | None = field(default=None, repr=False)


class RuleBuilder:
    """Builds the body of one Region.

    Args:
        parameters: the spec's block arguments by name.
        hints: readable names for SSA values, by what they mean.
    """

    def __init__(self, parameters: Mapping[str, SSAValue], hints: Mapping[Expr, str]) -> None:
        self.parameters = parameters
        self.hints = hints

    def build(self, visible: Term) -> Region:
        """The rule as a one-block region over (%i, %j) that ends in `maskspec.visible`."""
        block = Block(arg_types=[INDEX, INDEX])
        values: dict[Expr, SSAValue] = {var(name): value for name, value in self.parameters.items()}
        for name, arg in zip("ij", block.args, strict=True):
            arg.name_hint = name
            values[var(name)] = arg
        self._finish(VisibleOp(self._value(visible, _Scope(block, values))), block, visible)
        return Region(block)

    def _finish(self, op: Operation, block: Block, term: Term) -> None:
        op.location = attribute(term.location)
        block.add_op(op)

    def _value(self, term: Term, scope: _Scope) -> SSAValue:
        """The value of a term; its operands first, without recursion, since rules may be long chains of `|`."""
        todo = [term]
        while todo:
            home = _home(todo[-1].expr, scope)
            if todo[-1].expr in home.values:
                todo.pop()
            elif todo[-1].op != "exists" and (
                missing := [t for t in todo[-1].operands if t.expr not in _home(t.expr, scope).values]
            ):
                todo.extend(reversed(missing))
            else:
                self._add(todo.pop(), home)
        return _home(term.expr, scope).values[term.expr]

    def _add(self, term: Term, scope: _Scope) -> None:
        if term.op == "exists":
            op = self._exists(term, scope)
        else:
            op = self._op(term, [_home(t.expr, scope).values[t.expr] for t in term.operands])
        self._finish(op, scope.block, term)
        op.results[0].name_hint = self.hints.get(term.expr) or _hint(term.expr)
        scope.values[term.expr] = op.results[0]

    def _op(self, term: Term, operands: list[SSAValue]) -> Operation:
        e = term.expr
        match term.op:
            case "const":
                return arith.ConstantOp(IntegerAttr(e.value, INDEX))
            case "bool":
                return arith.ConstantOp(IntegerAttr(e.value, i1))
            case "lookup":
                return LookupOp(self.parameters.get(e.name, e.name), *operands)
            case _:
                return _OP[term.op](*operands)

    def _exists(self, term: Term, scope: _Scope) -> ExistsOp:
        lo, hi, _ = term.expr.args
        block = Block(arg_types=[INDEX])
        block.args[0].name_hint = users_name(term.expr.name)
        inner = _Scope(block, {var(term.expr.name): block.args[0]}, term.expr.name, scope)
        body = term.operands[0]
        self._finish(YieldOp(self._value(body, inner)), block, body)
        return ExistsOp(lo, hi, Region(block))


def _home(e: Expr, scope: _Scope) -> _Scope:
    """The outermost scope in which a term can be computed."""
    while scope.outer is not None and scope.bound not in free_names(e):
        scope = scope.outer
    return scope


def _hint(e: Expr) -> str | None:
    match e.op:
        case "const":
            return f"c{e.value}" if e.value >= 0 else f"m{-e.value}"
        case "bool":
            return "true" if e.value else "false"
        case "var":
            return e.name
        case "lookup":
            parts = [_index_hint(e.args[0]), *(str(a.value) if a.op == "const" else _index_hint(a) for a in e.args[1:])]
            return f"{e.name}_at" if None in parts else "_".join([e.name, *filter(None, parts)])
        case _:
            return None


def _index_hint(e: Expr) -> str | None:
    """How an index shows in the name of an entry: a name, as the user wrote it."""
    if e.op != "var":
        return None
    return users_name(e.name) if e.name.startswith(BOUND) else e.name
