"""What the language can say, listed from the dialects, and what of it a module says.

A construct is a few words: `maskspec.assume with text`, `arith.cmpi slt : index`, `table col of lists`. Whatever is
added to a dialect, to the rule language or to the orders of a layout is a construct from then on.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Dialect, Operation

from cmir.dialects.expr import OPERATORS, ExprAttr, is_forall, walk
from cmir.dialects.maskspec import (
    ALIGNMENTS,
    OPTIONAL_ARGUMENTS,
    TABLE_KINDS,
    LayoutOp,
    LookupOp,
    MaskSpec,
    MonotoneOp,
    PositionOp,
    RegionOp,
    SpecOp,
    TableType,
)
from cmir.dialects.rule_ops import OPERATOR_OF, PREDICATE
from cmir.dialects.spec_items import ORDERS
from cmir.interp.rule import RuleFunctions

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
BOTH_SORTS = ("arith.select", "arith.constant")
"""Ops of a rule that work on integers and on conditions."""
WIDTHS = ("integers", "lists", "lists counted by a static")
RULES = ("SSA", "clauses", "no clause")


def constructs() -> set[str]:
    """All that a spec can say."""
    out = {construct for op in MaskSpec.operations for construct in _forms(op)}
    rule_ops = [op for op, _ in RuleFunctions._impls()]  # pyright: ignore[reportPrivateUsage]
    assert {*OPERATOR_OF} <= {*rule_ops}
    out |= {op.name for op in rule_ops if op.name not in ("arith.cmpi", *BOTH_SORTS)}
    out |= {f"{name} : {sort}" for name in BOTH_SORTS for sort in ("index", "i1")}
    out |= {f"arith.cmpi {PREDICATES[p]} : index" for p in PREDICATE}
    out |= {f"arith.cmpi {PREDICATES[p]} : i1" for p in PREDICATE if PREDICATES[p] in ("eq", "ne")}
    out |= {f"expression {op}" for op in (*OPERATORS, "forall")} - {"expression first"}  # which a spec cannot say
    out |= {f"table {kind} of {width}" for kind in TABLE_KINDS for width in WIDTHS}
    out |= {f"metadata {kind}" for kind in ("scalar", "static")}
    out |= {f"alignment {a}" for a in ALIGNMENTS}
    out |= {f"rule by {how}" for how in RULES}
    out |= {f"look-up in {what}" for what in (*TABLE_KINDS, "constants")}
    out |= {f"{op.name} {kind}" for op in MaskSpec.operations if issubclass(op, MonotoneOp) for kind in TABLE_KINDS}
    out |= {f"layout of {axes}" for axes in ("rows", "cols", "rows, cols")} | {f"order {order}" for order in ORDERS}
    for order, arguments in ORDERS.items():
        for argument in set(arguments) & {*OPTIONAL_ARGUMENTS}:
            out |= {f"order {order} {how} {argument}" for how in ("with", "without")}
    return out


def _forms(op: type[Operation]) -> Iterator[str]:
    """An op, with and without each property that it may leave out."""
    yield op.name
    definition = cast("Any", op).get_irdl_definition()
    for name, property_ in definition.properties.items():
        if type(property_).__name__ == "OptPropertyDef":
            yield f"{op.name} with {name}"
            yield f"{op.name} without {name}"


def constructs_in(module: ModuleOp) -> set[str]:
    """What the specs of a module say."""
    out: set[str] = set()
    for op in module.walk():
        if type(op) in MaskSpec.operations:
            said = {form for form in _forms(type(op)) if " " in form}
            out.add(op.name)
            out |= {form for form in said if (form.split()[-1] in op.properties) == (form.split()[-2] == "with")}
        for e in _expressions(op.properties.values()):
            out |= {f"expression {'forall' if is_forall(term) else term.op}" for term in walk(e)}
        match op:
            case SpecOp():
                for p, argument in zip(op.parameters, op.body.block.args, strict=True):
                    if not isinstance(argument.type, TableType):
                        out.add(f"metadata {p.kind}")
                        continue
                    width = WIDTHS[2 if argument.type.static is not None else 1 if p.entries is not None else 0]
                    out.add(f"table {p.kind} of {width}")
            case RegionOp():
                out.add(f"rule by {RULES[0 if not op.is_normal else 1 if op.clauses else 2]}")
            case MonotoneOp():
                out.add(f"{op.name} {_kinds(op)[op.table.data]}")
            case LookupOp():
                kind = "constants" if op.table is None else _table_kind(op)
                out |= {op.name, f"look-up in {kind}"}
            case PositionOp():
                out.add(f"alignment {op.alignment.data}")
            case LayoutOp():
                order = op.order.data
                out |= {f"layout of {', '.join(a.data for a in op.axes)}", f"order {order}"}
                for argument in set(ORDERS[order]) & {*OPTIONAL_ARGUMENTS}:
                    out.add(f"order {order} {'with' if argument in op.values else 'without'} {argument}")
            case arith.CmpiOp():
                out.add(f"{op.name} {PREDICATES[op.predicate.value.data]} : {op.lhs.type}")
            case _ if op.name in BOTH_SORTS:
                out.add(f"{op.name} : {op.results[0].type}")
            case ModuleOp():
                pass
            case _:
                out.add(op.name)
    return out


def _kinds(op: Operation) -> dict[str, str]:
    spec = op.parent_op()
    assert isinstance(spec, SpecOp)
    return {p.name: p.kind for p in spec.parameters}


def _table_kind(op: LookupOp) -> str:
    assert op.table is not None and isinstance(op.table.type, TableType)
    return op.table.type.per.data


def _expressions(held: Iterable[object]) -> Iterator[Any]:
    for value in held:
        match value:
            case ExprAttr():
                yield value.data
            case ArrayAttr():
                yield from _expressions(cast("Iterable[object]", value))
            case DictionaryAttr():
                yield from _expressions(value.data.values())
            case _:
                pass


def ops_of(*dialects: Dialect) -> set[str]:
    """The names of the ops of dialects."""
    return {op.name for dialect in dialects for op in dialect.operations}
