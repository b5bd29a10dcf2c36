"""The tokens of a mask with a layout at run time: permutations as tensors, and q, k, v and outputs moved by them.

`Tokens.rows` and `Tokens.cols` are int32 tensors [length] (or [B, length] where a table gives each sequence its own
order): the token at every place; None for an axis that keeps its order. They are computed on the device, without a
synchronisation, once per length.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch

from cmir.analysis.layouts import LENGTH, PLACE, Order
from cmir.errors import CmirError, MetadataError, ShapeError
from cmir.interp.evaluate import evaluate


class _TorchDomain:
    """What the expressions of orders mean as int64 tensors."""

    table: ClassVar[Mapping[str, Callable[..., Any]]] = {  # pyright: ignore[reportUnknownVariableType]
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "neg": operator.neg,
        "floordiv": operator.floordiv,  # pyright: ignore[reportUnknownMemberType]
        "mod": operator.mod,
        "min": min,  # of numbers: no order has a minimum that depends on the place
    }

    def const(self, value: int) -> int:
        return value

    def boolean(self, value: bool) -> bool:
        return value

    def apply(self, op: str, args: Sequence[Any]) -> Any:
        return self.table[op](*args)

    def lookup(self, table: Any, index: Any, number: Any = None) -> Any:
        raise AssertionError("a table order is its table, never evaluated")

    def quantify(self, op: str, name: str, lo: Any, hi: Any, env: Mapping[str, Any], body: Callable[[Any], Any]) -> Any:
        raise AssertionError("no order is written with a quantifier")


@dataclass(frozen=True, eq=False)
class Tokens:
    """The token at every place of each axis; None where the axis keeps its order."""

    rows: torch.Tensor | None
    cols: torch.Tensor | None
    shards: tuple[str, ...] = ()
    """The axes that hold only a share of the tokens."""
    tables: tuple[tuple[str, str], ...] = ()
    """(axis, metadatum) of the orders that metadata give."""

    def check(self, name: str) -> None:
        """Raises MetadataError if a table that gives an order is no permutation. Waits for the device."""
        for axis, table in self.tables:
            order = self.of(axis)
            assert order is not None
            places = torch.arange(order.shape[-1], dtype=order.dtype, device=order.device)
            if bool((order.sort(dim=-1).values != places).any()):
                raise MetadataError(
                    f"mask {name!r}: {table!r} is no permutation: as the order of the {axis} it names every token once"
                )

    def of(self, axis: str) -> torch.Tensor | None:
        if axis not in ("rows", "cols"):
            raise CmirError(f"axis: expected 'rows' or 'cols', got {axis!r}")
        return self.rows if axis == "rows" else self.cols

    def into(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k and v, [B, H, L, D] each, moved from the order of the tokens: in one launch, where there is a GPU."""
        moves = [(x, order) for x, order in ((q, self.rows), (k, self.cols), (v, self.cols)) if order is not None]
        tensors, orders = [x for x, _ in moves], [order for _, order in moves]
        if not _fused(tensors, orders):
            return self.permute(q, "rows", 2), self.permute(k, "cols", 2), self.permute(v, "cols", 2)
        from cmir.runtime.moving import moved

        found = list(moved(tensors, orders, scatter=False))
        return (
            q if self.rows is None else found.pop(0),
            k if self.cols is None else found.pop(0),
            v if self.cols is None else found.pop(0),
        )

    def permute(self, x: torch.Tensor, axis: str, dim: int) -> torch.Tensor:
        """`x` with the tokens along `dim` put into the order of an axis; of a shard, its tokens of all."""
        order = self.of(axis)
        return x if order is None else _moved(x, order, dim, inverse=False)

    def unpermute(self, x: torch.Tensor, axis: str, dim: int) -> torch.Tensor:
        """The inverse of `permute`."""
        order = self.of(axis)
        if order is None:
            return x
        if axis in self.shards:
            raise CmirError(f"the {axis} are a shard of the tokens: the others are needed to put them back in order")
        return _moved(x, order, dim, inverse=True)


def _moved(x: torch.Tensor, order: torch.Tensor, dim: int, inverse: bool) -> torch.Tensor:
    given = dim
    dim = dim % x.dim() if -x.dim() <= dim < x.dim() else x.dim()
    if order.dim() == 2 and order.shape[0] == 1:  # one order serves any batch, as one mask does
        order = order[0]
    if dim == x.dim() or (order.dim() == 2 and (dim == 0 or x.shape[0] != order.shape[0])):
        form = f"[{order.shape[0]}, ..]" if order.dim() == 2 else "a tensor"
        raise ShapeError(f"expected {form} with tokens along a dimension of it, got {tuple(x.shape)} and dim={given}")
    if inverse and x.shape[dim] != order.shape[-1]:
        raise ShapeError(f"expected {order.shape[-1]} places along dim {dim}, got {x.shape[dim]} in {tuple(x.shape)}")
    if dim == 2 and _fused([x], [order]):
        from cmir.runtime.moving import moved

        return moved([x], [order], scatter=inverse)[0]
    return _move(x, order, dim, inverse)


def _fused(tensors: Sequence[torch.Tensor], orders: Sequence[torch.Tensor]) -> bool:
    """Whether one kernel of ours moves them; torch indexes elsewhere: on a CPU, for shards, in compiled graphs."""
    if all(x.device.type == "cpu" for x in tensors):
        return False
    from cmir.runtime.moving import movable

    return movable(tensors, orders)


class _Move(torch.autograd.Function):
    """(x, order, dim, inverse) -> x[.., order, ..], or what has `x` there; each is the other's gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, order: torch.Tensor, dim: int, inverse: bool) -> torch.Tensor:
        ctx.save_for_backward(order)
        ctx.dim, ctx.inverse, ctx.tokens = dim, inverse, x.shape[dim]
        return _scatter(x, order, dim, order.shape[-1]) if inverse else _gather(x, order, dim)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (order,) = ctx.saved_tensors
        # Of a shard, the tokens that are not in it have gradient 0.
        moved = _gather(grads[0], order, ctx.dim) if ctx.inverse else _scatter(grads[0], order, ctx.dim, ctx.tokens)
        return moved, None, None, None


_move = cast("Callable[..., torch.Tensor]", _Move.apply)  # pyright: ignore[reportUnknownMemberType]


def _gather(x: torch.Tensor, order: torch.Tensor, dim: int) -> torch.Tensor:
    return x.index_select(dim, order) if order.dim() == 1 else x.gather(dim, _spread(order, x, dim))


def _scatter(x: torch.Tensor, order: torch.Tensor, dim: int, tokens: int) -> torch.Tensor:
    shape = (*x.shape[:dim], tokens, *x.shape[dim + 1 :])
    out = x.new_zeros(shape) if tokens != order.shape[-1] else x.new_empty(shape)
    return out.index_copy_(dim, order.long(), x) if order.dim() == 1 else out.scatter_(dim, _spread(order, x, dim), x)


def _spread(order: torch.Tensor, x: torch.Tensor, dim: int) -> torch.Tensor:
    """An order for each sequence as an index of the shape of its places."""
    shape = [1] * x.dim()
    shape[0], shape[dim] = order.shape
    target = list(x.shape)
    target[dim] = order.shape[1]
    return order.long().view(shape).expand(target)


def tokens_of(
    name: str, orders: Mapping[str, Order], rows: int, cols: int, metadata: Mapping[str, Any], device: torch.device
) -> Tokens:
    """The tokens of a mask whose axes have these orders; `metadata` hold the tables of table orders."""
    found: dict[str, torch.Tensor] = {}
    for axis, order in orders.items():
        if order.table is None:
            found[axis] = _computed(order, {"rows": rows, "cols": cols}[axis], device)
        else:
            table = metadata[order.table]
            if table.dim() == 3 and table.shape[1] == 1:
                table = table[:, 0]
            if table.dim() == 3:
                raise MetadataError(
                    f"mask {name!r}, argument {order.table!r}: expected an order [length] or [B, length], heads have "
                    f"none of their own; got {list(table.shape)}"
                )
            found[axis] = table.to(torch.int32)
    return Tokens(
        found.get("rows"),
        found.get("cols"),
        tuple(a for a, o in orders.items() if o.share > 1),
        tuple((a, o.table) for a, o in orders.items() if o.table is not None),
    )


def _computed(order: Order, length: int, device: torch.device) -> torch.Tensor:
    # What is computed while a graph is captured is not there before the graph runs: nothing to keep.
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return _evaluated(order, length, device)
    return _kept(order, length, device)


@functools.lru_cache(maxsize=64)
def _kept(order: Order, length: int, device: torch.device) -> torch.Tensor:
    return _evaluated(order, length, device)


def _evaluated(order: Order, length: int, device: torch.device) -> torch.Tensor:
    domain = _TorchDomain()
    parts: list[torch.Tensor] = []
    for piece in order.pieces:
        lo, hi = (min(max(int(evaluate(e, {LENGTH.name: length}, domain)), 0), length) for e in (piece.lo, piece.hi))
        place = torch.arange(lo, max(lo, hi), dtype=torch.int64, device=device)
        token = evaluate(piece.token, {LENGTH.name: length, PLACE.name: place}, domain)
        parts.append(token.to(torch.int32))
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int32, device=device)
