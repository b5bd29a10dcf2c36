"""The token orders of `maskspec.layout`: at which place of an axis stands which token.

    order ::= `patch` `(` `grid` `=` [D1, .., Dk] `,` `size` `=` [p1, .., pk] (`,` `after` `=` a)? `)`
            | `zigzag` `(` `of` `=` R (`,` `rank` `=` r)? `)`
            | `striped` `(` `of` `=` R (`,` `rank` `=` r)? `)`
            | `residue` `(` `of` `=` m `)`
            | `table` `(` `name` `=` identifier `)`

- *patch*: the first `a` tokens stay; then D1 x .. x Dk tokens that stood in raster order (the last dimension fastest)
  are stored patch by patch, p1 x .. x pk tokens each; what follows stays. Where a size does not divide its dimension,
  the tokens at the far edge are patches of their own, stored after all whole ones.
- *zigzag*: the n tokens are 2R chunks; rank r holds the chunks r and 2R - 1 - r. With `rank` the axis is that shard of
  n / R tokens; without, it is all shards one after another, as an all-gather leaves them.
- *striped*: rank r holds the tokens r, r + R, r + 2R, ..; with and without `rank` alike.
- *residue*: tokens by (token mod m, token floordiv m), as strides and dilations like them.
- *table*: place x holds token name[x], a permutation that is metadata, one int per place.

An order is a list of *pieces*, contiguous ranges of places that do not overlap and leave no place out. On each, the
token is an expression of the place, `stride * x + offset` where it can be. A mask stays a few intervals under pieces of
that form; other pieces (patches, tables) leave a predicate.

    zigzag(of = 4, rank = 1), n places:   [0, n floordiv 2)   x + n floordiv 2                  chunk 1
                                          [n floordiv 2, n)   x + 5 * (n floordiv 2)            chunk 6
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from cmir.analysis.linear import linear, simplify
from cmir.analysis.rules import fold_statics
from cmir.dialects.expr import (
    ZERO,
    Expr,
    add,
    const,
    eq,
    le,
    lookup,
    make,
    minimum,
    mul,
    sub,
    substitute,
    var,
)
from cmir.dialects.maskspec import LayoutOp, spec_of
from cmir.errors import SpecError
from cmir.interp.domain import NumpyDomain, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import numpy as np

PLACE = var("place#")  # no identifier, so no metadata has such a name
LENGTH = var("length#")  # of the axis as it is stored

MAX_PARTS = 64
"""Most shards or residues of an order: each is a piece of the axis with Regions and clauses of its own."""

MAX_LENGTH = 2**30


@dataclass(frozen=True)
class Piece:
    """Places `[lo, hi)` hold the tokens `token` (an expression of PLACE and LENGTH), all of them within `among`."""

    lo: Expr
    hi: Expr
    token: Expr
    among: tuple[Expr, Expr]

    @property
    def affine(self) -> tuple[int, Expr] | None:
        """(stride, offset) where the token is `stride * x + offset`, stride positive, offset the same all over."""
        form = linear(self.token)
        stride = form.coefficient(PLACE)
        rest = form.without(PLACE)
        if stride < 1 or any(_reads_place(atom) for atom, _ in rest.terms):
            return None
        return stride, simplify(sub(self.token, mul(PLACE, const(stride))))


@dataclass(frozen=True)
class Order:
    """The order of one axis."""

    text: str
    """As the spec writes it, for messages."""
    pieces: tuple[Piece, ...]
    share: int = 1
    """There are `share * LENGTH` tokens; more than 1 where the axis is a shard of them."""
    multiple: int = 1
    """The length of the axis is a multiple of it."""
    least: int = 0
    """The length is not less."""
    table: str | None = None
    """The metadatum that gives the order."""

    def at(self, length: str) -> Order:
        """The same, of an axis whose length has that name."""

        def of(e: Expr) -> Expr:
            return substitute(e, {LENGTH: var(length)})

        pieces = tuple(Piece(of(p.lo), of(p.hi), of(p.token), (of(p.among[0]), of(p.among[1]))) for p in self.pieces)
        return Order(self.text, pieces, self.share, self.multiple, self.least, self.table)

    @property
    def facts(self) -> list[Expr]:
        """What lengths must satisfy, of LENGTH."""
        out = [eq(make("mod", LENGTH, const(self.multiple)), ZERO)] if self.multiple > 1 else []
        return out + ([le(const(self.least), LENGTH)] if self.least else [])

    def misfit(self, length: int) -> str:
        """Why the order cannot be of an axis of that length, or nothing."""
        if length % self.multiple:
            return f"a length that is a multiple of {self.multiple}"
        return f"at least {self.least} tokens" if length < self.least else ""

    def tokens(self, length: int, env: Mapping[str, Value] | None = None) -> np.ndarray:
        """int64 [length]: the token at every place. `env` gives the table of a table order."""
        import numpy as np

        out = np.zeros(length, dtype=np.int64)
        domain, names = NumpyDomain(), {**(env or {}), LENGTH.name: length}
        for p in self.pieces:
            lo, hi = (min(max(int(evaluate(e, names, domain)), 0), length) for e in (p.lo, p.hi))
            if lo < hi:
                out[lo:hi] = evaluate(p.token, {**names, PLACE.name: np.arange(lo, hi, dtype=np.int64)}, domain)
        return out


def _reads_place(e: Expr) -> bool:
    return e == PLACE or any(map(_reads_place, e.args))


def order_of(op: LayoutOp) -> Order:
    """The order that a layout names; its numbers are folded.

    Raises:
        SpecError: a number does not make sense.
    """
    values = {name: _fold(op, name, value) for name, value in op.values.items()} if op.order.data != "table" else {}
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    shown = ", ".join(f"{name} = {value}" for name, value in given.items())
    if op.order.data == "table":
        name = op.values["name"]
        assert isinstance(name, Expr)
        pieces = (Piece(ZERO, LENGTH, lookup(name.name, PLACE), (ZERO, LENGTH)),)
        return Order(f"table(name = {name.name})", pieces, table=name.name)
    return _MAKERS[op.order.data](op, f"{op.order.data}({shown})", values)


def orders_of(layouts: Sequence[LayoutOp]) -> dict[str, Order]:
    """The order of each axis that has one."""
    return {axis.data: order_of(op) for op in layouts for axis in op.axes}


Values = Mapping[str, "int | tuple[int, ...]"]


def _fold(op: LayoutOp, name: str, value: Expr | tuple[Expr, ...]) -> int | tuple[int, ...]:
    def number(e: Expr) -> int:
        folded = simplify(fold_statics(e, spec_of(op), op))
        if folded.op != "const":
            raise SpecError(f"'{name}' of the layout is not a number known at compile time: {e}", op)
        return folded.value

    return tuple(map(number, value)) if isinstance(value, tuple) else number(value)


def _patch(op: LayoutOp, text: str, values: Values) -> Order:
    grid, size, after = values["grid"], values["size"], values.get("after", 0)
    assert isinstance(grid, tuple) and isinstance(size, tuple) and isinstance(after, int)
    if not grid or len(grid) != len(size):
        raise SpecError(f"a patch has one size for each dimension of the grid: {len(grid)} and {len(size)} given", op)
    if wrong := next((p for d, p in zip(grid, size, strict=True) if not 1 <= p <= d), None):
        raise SpecError(f"a patch is at least 1 and at most the grid in every dimension; got {wrong} in {text}", op)
    if min(size) < 1 or min(grid) < 1 or after < 0 or after + prod(grid) > MAX_LENGTH:
        raise SpecError(
            f"a grid and its patches are at least 1 x 1, `after` at least 0, all below 2^30; got {text}", op
        )
    end = after + prod(grid)
    image = const(after), const(end)
    pieces = [Piece(ZERO, image[0], PLACE, (ZERO, image[0]))] if after else []
    # Along each dimension: the part that whole patches cover, and what is left.
    parts = [[(0, d // p * p, p), (d // p * p, d % p, d % p)] for d, p in zip(grid, size, strict=True)]
    start = after
    for box in product(*parts):
        count = prod(extent for _, extent, _ in box)
        if count:
            token = simplify(_token_of_patch(sub(PLACE, const(start)), box, grid, after))
            pieces.append(Piece(const(start), const(start + count), token, image))
            start += count
    pieces.append(Piece(const(end), LENGTH, PLACE, (const(end), LENGTH)))
    return Order(text, tuple(pieces), least=end)


def _token_of_patch(u: Expr, box: Sequence[tuple[int, int, int]], grid: tuple[int, ...], after: int) -> Expr:
    """The token at place u of a box: per dimension (origin, extent, patch), the patch dividing the extent."""
    sizes, counts = [p for _, _, p in box], [e // p for _, e, p in box]
    patch, inner = make("floordiv", u, const(prod(sizes))), make("mod", u, const(prod(sizes)))
    token = const(after)
    for k, (origin, _, p) in enumerate(box):
        which = make("floordiv", patch, const(prod(counts[k + 1 :])))
        which = make("mod", which, const(counts[k])) if k else which
        within = make("floordiv", inner, const(prod(sizes[k + 1 :])))
        within = make("mod", within, const(p)) if k else within
        coordinate = add(const(origin), add(mul(which, const(p)), within))
        token = add(token, mul(coordinate, const(prod(grid[k + 1 :]))))
    return token


def _parts(op: LayoutOp, text: str, values: Values) -> tuple[int, int | None]:
    """`of` and `rank`, checked."""
    of, rank = values["of"], values.get("rank")
    assert isinstance(of, int) and (rank is None or isinstance(rank, int))
    if not 1 <= of <= MAX_PARTS:
        raise SpecError(f"'of' is from 1 to {MAX_PARTS}: each part has Regions of its own; got {text}", op)
    if rank is not None and not 0 <= rank < of:
        raise SpecError(f"'rank' is from 0 to of - 1; got {text}", op)
    return of, rank


def _affine(lo: Expr, hi: Expr, stride: int, offset: Expr, share: int) -> Piece:
    token = simplify(add(mul(PLACE, const(stride)), offset))
    return Piece(simplify(lo), simplify(hi), token, (ZERO, simplify(mul(LENGTH, const(share)))))


def _zigzag(op: LayoutOp, text: str, values: Values) -> Order:
    of, rank = _parts(op, text, values)
    ranks, places = (range(of), 2 * of) if rank is None else (range(rank, rank + 1), 2)
    chunk = make("floordiv", LENGTH, const(places))
    chunks = [c for r in ranks for c in (r, 2 * of - 1 - r)]
    pieces: list[Piece] = []
    share = of if rank is not None else 1
    for k, c in enumerate(chunks):
        hi = LENGTH if k == places - 1 else mul(chunk, const(k + 1))
        pieces.append(_affine(mul(chunk, const(k)), hi, 1, mul(chunk, const(c - k)), share))
    return Order(text, tuple(pieces), share, multiple=places)


def _striped(op: LayoutOp, text: str, values: Values) -> Order:
    of, rank = _parts(op, text, values)
    if rank is not None:
        return Order(text, (_affine(ZERO, LENGTH, of, const(rank), of),), of)
    shard = make("floordiv", LENGTH, const(of))
    pieces: list[Piece] = []
    for r in range(of):
        lo, hi = mul(shard, const(r)), LENGTH if r == of - 1 else mul(shard, const(r + 1))
        pieces.append(_affine(lo, hi, of, sub(const(r), mul(lo, const(of))), 1))
    return Order(text, tuple(pieces), multiple=of)


def _residue(op: LayoutOp, text: str, values: Values) -> Order:
    of, _ = _parts(op, text, values)
    quotient, rest = make("floordiv", LENGTH, const(of)), make("mod", LENGTH, const(of))

    def start(a: int) -> Expr:
        """The tokens of the residues below a: `quotient` each, and one more for the first `rest` of them."""
        return LENGTH if a == of else simplify(add(mul(quotient, const(a)), minimum(rest, const(a)) if a else ZERO))

    pieces = [_affine(start(a), start(a + 1), of, sub(const(a), mul(start(a), const(of))), 1) for a in range(of)]
    return Order(text, tuple(pieces))


_MAKERS: Mapping[str, Callable[[LayoutOp, str, Values], Order]] = {
    "patch": _patch,
    "zigzag": _zigzag,
    "striped": _striped,
    "residue": _residue,
}
