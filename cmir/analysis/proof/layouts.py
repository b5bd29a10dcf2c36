"""The meaning of a spec with a layout: the rule, at the tokens that stand at row i and column j."""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from itertools import product
from typing import Any

import z3

from cmir.analysis.layouts import PLACE, orders_of
from cmir.analysis.proof.meaning import Env, Side, rule_side
from cmir.analysis.proof.world import Domain
from cmir.dialects.maskspec import SpecOp
from cmir.interp.evaluate import evaluate
from cmir.interp.masks import spec_mask


def laid_out_side(spec: SpecOp) -> Side:
    """The rule of a spec with layouts, as places see it: piece by piece of both orders."""
    orders = {axis: order.at(axis) for axis, order in orders_of(spec.layouts).items()}
    own = rule_side(spec)

    def places(axis: str, index: Any, env: Env, domain: Domain) -> list[tuple[Any, Any]]:
        """(whether the index is in a piece, its token there)."""
        if axis not in orders:
            return [(domain.boolean(True), index)]
        out: list[tuple[Any, Any]] = []
        for piece in orders[axis].pieces:
            lo, hi, token = (evaluate(e, {**env, PLACE.name: index}, domain) for e in (piece.lo, piece.hi, piece.token))
            out.append((z3.And(lo <= index, index < hi), token))
        return out

    def parts(env: Env, domain: Domain) -> list[Any]:
        lengths = {axis: env[axis] * (orders[axis].share if axis in orders else 1) for axis in ("rows", "cols")}
        rows, columns = (places(axis, env[x], env, domain) for axis, x in (("rows", "i"), ("cols", "j")))
        return [
            z3.And(in_row, in_column, part)
            for (in_row, i), (in_column, j) in product(rows, columns)
            for part in own.parts({**env, **lengths, "i": i, "j": j}, domain)
        ]

    return Side(f"{own.name} in its layout", spec, parts, lambda env: spec_mask(spec, env))
