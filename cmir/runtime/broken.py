"""What a broken fact looks like in numbers: the entries that it read, and where it was declared.

The preprocess kernel says which fact broke first and where; nothing more has to be stored on the device, since the
metadata are still there. They are read back when somebody asks, which is after something has gone wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmir.analysis.facts import Fact, Facts
from cmir.dialects.expr import BINDERS, Expr, free_names
from cmir.dialects.maskspec import length_name
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate

if TYPE_CHECKING:
    import torch

    from cmir.errors import SourceLocation

MOST = 6
"""Values that are shown."""


@dataclass(frozen=True)
class Origin:
    """What a descriptor was made of."""

    facts: Facts
    """All that are checked, in the order of their numbers: those that are declared, and the entries that must exist."""
    metadata: Mapping[str, Any]
    """As the preprocess kernel got them."""
    batch: tuple[int, ...]
    lengths: tuple[int, int]
    declared: Mapping[str, SourceLocation]
    """By the text of a fact."""
    names: Mapping[str, str]
    """What metadata that packing added are called by the user."""

    def explain(self, number: int, index: int, mask: int) -> str:
        """`, where start[77] = 78 (declared at hstu.mlir:5:3)` of fact `number`, from 1, at a row, column or entry."""
        fact = self.facts.facts[number - 1]
        env = self._environment(fact, mask)
        if fact.over is not None:
            env[fact.over[0]] = index
        values = list(dict.fromkeys(self._values(fact, env)))
        shown = ", ".join(values[:MOST]) + (", ..." if len(values) > MOST else "")
        words = f", where {shown}" if shown else ""
        if evaluate(fact.condition, env, NumpyDomain()):
            words += "; the metadata have been changed since they were described, and hold there now"
        place = self.declared.get(fact.text.removesuffix(", in every sequence"))
        return words + (f" (declared at {place})" if place is not None else "")

    def _values(self, fact: Fact, env: Mapping[str, Value]) -> Iterator[str]:
        """Every look-up, length and scalar of the condition, with its value."""
        domain = NumpyDomain()
        index = () if fact.over is None else fact.over[:1]
        lengths = {length_name(p.name): p.name for p in self.facts.parameters}
        # Of a packed fact the user's own metadata are shown, unless it is about nothing but where sequences lie.
        added = {*self.names, *(length for length, name in lengths.items() if name in self.names)}
        hidden = added if free_names(fact.condition) - added - {"rows", "cols", *index} else set[str]()
        for e in _parts(fact.condition):
            if e.name in hidden or e.name in index:
                continue
            if e.op == "lookup":
                at = ", ".join(str(int(evaluate(a, env, domain))) for a in e.args)
                yield f"{self.names.get(e.name, e.name)}[{at}] = {int(evaluate(e, env, domain))}"
            elif e.name in lengths:
                table = lengths[e.name]
                yield f"length of {self.names.get(table, table)} = {int(env[e.name])}"
            else:
                yield f"{self.names.get(e.name, e.name)} = {int(env[e.name])}"

    def _environment(self, fact: Fact, mask: int) -> dict[str, Value]:
        """What the condition reads of one mask's metadata, on the host."""
        rows, cols = self.lengths
        env: dict[str, Value] = {"rows": rows, "cols": cols}
        needed = free_names(fact.condition)
        for p in self.facts.parameters:
            length = length_name(p.name)
            if p.name not in needed and length not in needed:
                continue
            value = self.metadata[p.name]
            if not isinstance(value, int):
                value = _of_mask(value, self.batch, mask, p.is_table + (p.entries is not None)).cpu().numpy()
                value = TableValue(value.astype("int64")) if p.is_table else int(value)
            env[p.name] = value
            if isinstance(value, TableValue):
                env[length] = len(value.values)
        return env


def _parts(e: Expr) -> Iterator[Expr]:
    """The look-ups and names of an expression, outermost first; not of what a quantifier or a search binds."""
    if e.op in ("lookup", "var"):
        yield e
    for argument in e.args[:2] if e.op in BINDERS else e.args:
        yield from _parts(argument)


def _of_mask(value: torch.Tensor, batch: tuple[int, ...], mask: int, tail: int) -> torch.Tensor:
    """The metadatum of one mask of the batch: of a dimension of one there is one for all."""
    place = (mask,) if len(batch) < 2 else divmod(mask, batch[1])
    for size, at in zip(value.shape[: value.dim() - tail], place, strict=False):
        value = value[at if size > 1 else 0]
    return value
