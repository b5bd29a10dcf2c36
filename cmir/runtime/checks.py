"""What is seen to be wrong of lengths and metadata on the host, before anything runs on a device."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cmir.analysis.layouts import orders_of
from cmir.errors import MetadataError

if TYPE_CHECKING:
    from cmir.analysis.facts import Facts
    from cmir.dialects.maskspec import SpecOp
    from cmir.interp.domain import Value


class HostChecks:
    """Checks of one mask: its facts about ints, and the lengths that its layout takes."""

    def __init__(self, surface: SpecOp, facts: Facts) -> None:
        self.name = facts.name
        self.orders = orders_of(surface.layouts)
        """Of each axis that has a layout, its order."""
        self._parameters = surface.parameters
        self._facts = facts

    def layout(self, rows: int, cols: int, metadata: Mapping[str, Any]) -> None:
        """Lengths fit the layout, and the tables of a shard have an entry for every token of all shards."""
        shared = [order.table for order in self.orders.values()]
        if rows != cols and len(shared) == 2 and shared[0] is not None and shared[0] == shared[1]:
            raise MetadataError(
                f"mask {self.name!r}, cols: expected as many as rows, {rows}, since {shared[0]!r} orders both; "
                f"got {cols}; give rows and cols a layout each, with a table of its own"
            )
        for axis, length in (("rows", rows), ("cols", cols)):
            if (order := self.orders.get(axis)) is None:
                continue
            if wrong := order.misfit(length):
                raise MetadataError(
                    f"mask {self.name!r}, {axis}: expected {wrong}, for the layout {order.text}; got {length}"
                )
            tables = [p for p in self._parameters if p.kind == {"rows": "row", "cols": "col"}[axis]]
            lists = {p.name for p in tables if p.entries is not None}  # of several numbers a token
            entries = {p.name: length * order.share for p in tables} if order.share > 1 else {}
            if order.table is not None:
                entries[order.table] = length
            for name, count in entries.items():
                value: Any = metadata.get(name)
                given = count
                if shape := getattr(value, "shape", ()):
                    given = shape[-2 if name in lists and len(shape) > 1 else -1]
                elif hasattr(value, "__len__"):
                    given = len(value)
                if given != count:
                    raise MetadataError(
                        f"mask {self.name!r}, argument {name!r}: expected {count} entries, one for each token, for the "
                        f"layout {order.text}; got {given}"
                    )

    def facts(self, numbers: Mapping[str, Any]) -> None:
        """Scalar facts whose names are all ints are decided here, at once; the rest on the device."""
        ints = {n: v for n, v in numbers.items() if type(v) is int}
        broken = self._broken_fact(tuple(ints.items()))
        if broken is not None:
            words = ", ".join(f"{k}={v}" for k, v in ints.items())
            raise MetadataError(f"mask {self.name!r}: the metadata break the fact '{broken}': {words}")

    @functools.lru_cache(maxsize=1024)  # noqa: B019  masks live as long as the process
    def _broken_fact(self, ints: tuple[tuple[str, int], ...]) -> str | None:
        from cmir.dialects.expr import free_names
        from cmir.interp.domain import NumpyDomain
        from cmir.interp.evaluate import evaluate

        env: dict[str, Value] = dict(ints)
        domain = NumpyDomain()
        for fact in self._facts.facts:
            if (
                fact.over is None
                and free_names(fact.condition) <= env.keys()
                and not evaluate(fact.condition, env, domain)
            ):
                return fact.text
        return None
