"""Disjunctive normal form of every rule.

    visible(i, j)  =  any(all(literal ...) ...)     over comparisons of index expressions; no `not`, no static left

Before:

    maskspec.region @candidate rows [history, rows) (%i, %j) {
      %in_history = arith.cmpi slt, %j, %history : index
      %first = maskspec.lookup %start[%i]
      %after = arith.cmpi sle, %first, %j : index
      %causal = arith.cmpi sle, %j, %i : index
      %own = arith.andi %after, %causal : i1
      %visible = arith.ori %in_history, %own : i1
      maskspec.visible %visible
    }

After:

    maskspec.region @candidate rows [history, rows) {
      maskspec.clause j < history
      maskspec.clause start[i] <= j and j <= i
    }

Statics are replaced by their values and constant tables are folded away on the way. The distribution of `and` over `or`
can blow up: past `max-clauses` the pass refuses, naming the Region. The idea is Quine's; every clause of a mask in DNF
bounds one interval (design of FlashMask's column intervals turned around: derive them, do not ask for them).
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from cmir.analysis.divisors import check_divisors
from cmir.analysis.dnf import TooManyClauses, clauses_of
from cmir.analysis.linear import simplify
from cmir.analysis.origins import origins_of
from cmir.analysis.rules import fold_statics, rule_of
from cmir.dialects.expr import FALSE, TRUE, and_, free_names
from cmir.dialects.maskspec import AssumeOp, LayoutOp, MonotoneOp, RegionOp, SpecOp
from cmir.errors import SpecError


@dataclass(frozen=True)
class DnfNormalize(ModulePass):
    """Rewrite every rule as a disjunction of clauses; fold statics and constant tables."""

    name = "dnf-normalize"

    max_clauses: int = 256

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.max_clauses < 1:
            raise SpecError(f"max-clauses is at least 1, got {self.max_clauses}", op)
        for spec in [o for o in op.walk() if isinstance(o, SpecOp) and not o.is_packed]:
            check_divisors(spec)
            Rewriter.replace_op(spec, self.normalize(spec), [])

    def normalize(self, spec: SpecOp) -> SpecOp:
        """The spec in normal form; statics are gone from its signature."""
        parameters = [(p, t) for p, t in zip(spec.parameters, spec.types, strict=True) if p.kind != "static"]
        block = Block(arg_types=[t for _, t in parameters])
        for item in spec.body.block.ops:
            new = self._item(spec, item)
            if new is not None:
                new.location = item.location
                block.add_op(new)
        out = SpecOp(spec.sym_name.data, [p for p, _ in parameters], Region(block))
        out.location = spec.location
        return out

    def _item(self, spec: SpecOp, item: Operation) -> Operation | None:
        match item:
            case AssumeOp():
                return self._fact(spec, item)
            case MonotoneOp():
                over = item.over and tuple(simplify(fold_statics(e, spec, item)) for e in item.over)
                return type(item)(item.table.data, over)  # pyright: ignore[reportArgumentType]
            case RegionOp():
                return self._region(spec, item)
            case LayoutOp():
                raise SpecError(
                    "a rule is normalized for the order in which tokens are stored; run --layout first", item
                )
            case _:
                return None  # constant tables are folded

    @staticmethod
    def _fact(spec: SpecOp, fact: AssumeOp) -> AssumeOp | None:
        condition = simplify(fold_statics(fact.condition.data, spec, fact))
        if condition == TRUE:
            return None
        if condition == FALSE and fact.over is None:
            raise SpecError(f"this fact never holds: {fact.condition.data}", fact)
        if fact.over is None or (fact.bound is None and fact.over[0] in free_names(condition)):
            return AssumeOp(condition)
        name, *ends = fact.over
        lo, hi = (simplify(fold_statics(e, spec, fact)) for e in ends)
        return AssumeOp(condition, (name, lo, hi))

    def _region(self, spec: SpecOp, region: RegionOp) -> RegionOp:
        try:
            clauses = clauses_of(rule_of(region), self.max_clauses)
        except TooManyClauses:
            raise SpecError(
                f"the rule of Region @{region.sym_name.data} has more than {self.max_clauses} clauses in disjunctive "
                f"normal form; split the Region, or raise the cap: --dnf-normalize=max-clauses={4 * self.max_clauses}",
                region,
            ) from None
        lo, hi = (simplify(fold_statics(e.data, spec, region)) for e in (region.lo, region.hi))
        out = RegionOp(region.sym_name.data, lo, hi, [and_(*c) for c in clauses])
        for clause, origin in zip(out.clauses, origins_of(region, clauses, self.max_clauses), strict=True):
            clause.location = origin.location
        return out
