"""Token orders in Python: what `cmir.compile(spec, layout=...)` takes.

    mask = cmir.compile("clear.mlir", layout=cmir.layouts.Patch(grid=(64, 64), size=(8, 16), after=512))
    mask = cmir.compile("causal.mlir", layout={"rows": cmir.layouts.ZigZag(of=8, rank=3)})

Each is an order of `maskspec.layout` (see `cmir.analysis.layouts`). A number is an int or the name of a static of the
spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from cmir.errors import SpecError

if TYPE_CHECKING:
    from cmir.dialects.expr import Expr
    from cmir.dialects.maskspec import LayoutOp, SpecOp

Number = int | str
AXES = ("rows", "cols")


@dataclass(frozen=True)
class Patch:
    """The first `after` tokens stay; the image (or video) behind them is stored patch by patch.

    Args:
        grid: its height and width in tokens (frames, height and width of a video); it stood in raster order.
        size: the same of a patch. 8 x 16 is a tile of 128. Where it does not divide the grid, the tokens at the far
            edge come after all whole patches.
        after: tokens before the image.
    """

    grid: Sequence[Number]
    size: Sequence[Number]
    after: Number = 0


@dataclass(frozen=True)
class ZigZag:
    """Context-parallel shards of equal work: of 2 * `of` chunks, rank r holds the chunks r and 2 * `of` - 1 - r.

    With `rank` the axis is that shard; without, all shards one after another, as an all-gather leaves them.
    """

    of: Number
    rank: Number | None = None


@dataclass(frozen=True)
class Striped:
    """Context-parallel shards: rank r holds the tokens r, r + `of`, r + 2 * `of`, ..; `rank` as of `ZigZag`."""

    of: Number
    rank: Number | None = None


@dataclass(frozen=True)
class Residue:
    """Tokens by (token mod `of`, token // `of`): what a stride or a dilation sees stands together."""

    of: Number


@dataclass(frozen=True)
class Table:
    """Place x holds token name[x]: a permutation that `describe` is given as the metadatum `name`."""

    name: str = "order"


Layout = Patch | ZigZag | Striped | Residue | Table
_ORDER: Mapping[type[Layout], str] = {
    Patch: "patch",
    ZigZag: "zigzag",
    Striped: "striped",
    Residue: "residue",
    Table: "table",
}


def add_layout(spec: SpecOp, layout: Layout | Mapping[Literal["rows", "cols"], Layout]) -> SpecOp:
    """A copy of the spec with `maskspec.layout` ops for the layouts; one that is no mapping is of both axes.

    Raises:
        SpecError: it is no layout, or not one of this spec.
    """
    from cmir.tools.verifier import verify

    if isinstance(layout, Mapping):
        if not layout or not {*layout} <= {*AXES}:
            raise SpecError(f"layout= of an axis is given by 'rows' or 'cols'; got {', '.join(map(repr, layout))}")
        given = [((axis,), one) for axis, one in layout.items()]
    else:
        if getattr(layout, "rank", None) is not None:
            raise SpecError(f"a shard is of one axis: write layout={{'rows': {layout}}}, or give both axes theirs")
        given = [(AXES, layout)]
    out = spec.clone()
    for axes, one in reversed(given):
        op = _op(axes, one)
        op.location = spec.location
        if (first := out.body.block.first_op) is None:
            out.body.block.add_op(op)
        else:
            out.body.block.insert_op_before(op, first)
    verify(out)
    return out


def _op(axes: Sequence[str], layout: Layout) -> LayoutOp:
    from cmir.dialects.expr import var
    from cmir.dialects.maskspec import LayoutOp

    if type(layout) not in _ORDER:
        names = ", ".join(kind.__name__ for kind in _ORDER)
        raise SpecError(f"layout= takes one of cmir.layouts ({names}), or a dict of them by axis; got {layout!r}")
    arguments: dict[str, Expr | Sequence[Expr]] = {}
    for field in fields(layout):
        value = getattr(layout, field.name)
        if isinstance(layout, Table):
            arguments[field.name] = var(str(value))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            arguments[field.name] = [_number(v, layout) for v in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif value is not None:
            arguments[field.name] = _number(value, layout)
    return LayoutOp(axes, _ORDER[type(layout)], arguments)


def _number(value: object, layout: Layout) -> Expr:
    from cmir.dialects.expr import const, var

    if isinstance(value, str):
        return var(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(f"a number of a layout is an int or the name of a static; got {value!r} in {layout}")
    return const(value)
