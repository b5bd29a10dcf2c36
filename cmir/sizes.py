"""Lengths of tables that are metadata themselves: taken from the table that comes with them, or compared with it.

`cmir.from_mask_mod` declares such lengths, `doc_size` of `doc`: where a predicate counts from the end of a table, or
asks for its shape. Nobody has to give them, and nobody can give a stale one with another table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from cmir.errors import MetadataError


class Size(NamedTuple):
    """What a scalar is the length of: a metadatum, along the dimension of sequences, of heads, or of its entries."""

    of: str
    along: Literal["batch", "heads", "size"]
    own_dimensions: int
    """Those that a value has besides sequences and heads: 0 of a scalar, 1 of a table, 2 with several to an entry."""

    def measured(self, value: Any) -> Any:
        """The length of a value of `of`; None where it has no such dimension. Entries of each sequence of a pack, given
        as a pair, have a length each."""
        if isinstance(value, tuple) and self.along == "size":
            starts = cast("tuple[Any, ...]", value)[-1]
            return starts[1:] - starts[:-1] if hasattr(starts, "shape") else None
        shape = _shape(value)
        lead = len(shape) - self.own_dimensions
        place = {"batch": 0, "heads": 1, "size": lead}[self.along]
        return shape[place] if lead >= {"batch": 1, "heads": 2, "size": 0}[self.along] else None


def completed(mask: str, sizes: Mapping[str, Size], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata, with the lengths among them that are not given.

    Raises:
        MetadataError: one is given, and is not that of its table.
    """
    out = dict(metadata)
    for name, size in sizes.items():
        if size.of not in metadata or (length := size.measured(metadata[size.of])) is None:
            continue
        given = out.setdefault(name, length)
        if type(given) is int and type(length) is int and given != length:
            raise MetadataError(
                f"mask {mask!r}, argument {name!r}: expected {length}, the length of '{size.of}'; got {given}; it need "
                "not be given"
            )
    return out


def _shape(value: Any) -> tuple[int, ...]:
    """That of an array or a tensor, or of lists in lists."""
    if hasattr(value, "shape"):
        return tuple(map(int, value.shape))
    shape: list[int] = []
    while isinstance(value, list | tuple):
        shape.append(len(cast("list[Any]", value)))
        value = cast("list[Any]", value)[0] if value else None
    return tuple(shape)
