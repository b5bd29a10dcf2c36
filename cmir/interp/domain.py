"""The two value domains of the evaluator.

Both give every operator of the expression language one meaning. NumPy values are int64 or bool arrays that broadcast
against each other; z3 values are integer and Boolean terms. Neither library is imported before a domain is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isqrt
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

# A value is whatever the domain computes with; the evaluator only passes it on.
Value = Any


@dataclass(frozen=True)
class TableValue:
    """A table's entries: an integer array [n], or [n, K] where each holds K integers, whose first entry stands at index
    `base`."""

    values: np.ndarray
    base: int = 0

    def read(self, index: Value, number: Value | None = None) -> Value:
        """The entries nearest to `index`, or integers `number` of them; 0 where there are none."""
        import numpy as np

        size = len(self.values)
        if not size:
            return np.zeros_like(index if number is None else index + number)
        nearest = np.clip(index - self.base, 0, size - 1)
        if number is None:
            return self.values[nearest]
        return self.values[nearest, np.clip(number, 0, self.values.shape[1] - 1)]


@dataclass(frozen=True)
class TablesValue(TableValue):
    """Many tables at once, one after another in `values`: position p of what is evaluated reads the table that begins
    at entry `starts[p]` and holds `sizes[p]`."""

    starts: np.ndarray = field(kw_only=True)
    sizes: np.ndarray = field(kw_only=True)

    def read(self, index: Value, number: Value | None = None) -> Value:
        import numpy as np

        if not len(self.values):
            return np.zeros_like(index + self.sizes if number is None else index + self.sizes + number)
        nearest = self.starts + np.clip(index, 0, np.maximum(self.sizes - 1, 0))
        nearest = np.minimum(nearest, len(self.values) - 1)  # of an empty table at the end
        if number is None:
            found = self.values[nearest]
        else:
            found = self.values[nearest, np.clip(number, 0, self.values.shape[1] - 1)]
        return np.where(self.sizes > 0, found, 0)


class Domain(Protocol):
    """The meaning of the operators. `apply` covers every operator that evaluates all its operands."""

    def const(self, value: int) -> Value: ...
    def boolean(self, value: bool) -> Value: ...
    def apply(self, op: str, args: Sequence[Value]) -> Value: ...
    def lookup(self, table: Value, index: Value, number: Value | None = None) -> Value: ...
    def quantify(
        self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[[Value], Value]
    ) -> Value: ...


def _floordiv(a: Value, k: Value) -> Value:
    import numpy as np

    return np.floor_divide(a, np.maximum(k, 1))  # a division by less than 1 is one by 1


def _mod(a: Value, k: Value) -> Value:
    import numpy as np

    return np.mod(a, np.maximum(k, 1))


@cache
def _numpy_operators() -> tuple[dict[str, Callable[..., Value]], dict[str, Callable[..., Value]]]:
    """Operators as functions of their operands, and those of any number of operands as functions of two."""
    import numpy as np

    table: dict[str, Callable[..., Value]] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "neg": np.negative,
        "floordiv": _floordiv,
        "mod": _mod,
        "abs": np.abs,
        "isqrt": np.vectorize(isqrt, otypes=[np.int64]),
        "lt": np.less,
        "le": np.less_equal,
        "eq": np.equal,
        "not": np.logical_not,
        "select": np.where,
    }
    folds: dict[str, Callable[..., Value]] = {
        "min": np.minimum,
        "max": np.maximum,
        "and": np.logical_and,
        "or": np.logical_or,
    }
    return table, folds


class NumpyDomain:
    """Whole index grids at once, in int64."""

    def __init__(self) -> None:
        import numpy as np

        self.np = np
        self._table, self._folds = _numpy_operators()

    def const(self, value: int) -> Value:
        return self.np.int64(value)

    def boolean(self, value: bool) -> Value:
        return self.np.bool_(value)

    def apply(self, op: str, args: Sequence[Value]) -> Value:
        if op in self._folds:
            out = args[0]
            for a in args[1:]:
                out = self._folds[op](out, a)
            return out
        return self._table[op](*args)

    def lookup(self, table: TableValue, index: Value, number: Value | None = None) -> Value:
        return table.read(index, number)

    def quantify(
        self, op: str, name: str, lo: Value, hi: Value, env: Mapping[str, Value], body: Callable[[Value], Value]
    ) -> Value:
        """`exists`: one value of the bound name after another. `first`: all of them along a new leading axis."""
        np = self.np
        start, stop = int(np.min(lo, initial=2**31)), int(np.max(hi, initial=-(2**31))) + (op == "exists")
        if op == "exists":
            found = np.zeros_like(lo + hi, dtype=bool)
            for k in range(start, stop):
                found = found | ((lo <= k) & (k <= hi) & body(np.int64(k)))
            return found
        if stop <= start:
            return hi + np.zeros_like(lo)
        ndim = max([np.ndim(v) for v in env.values() if not isinstance(v, TableValue)] + [np.ndim(lo), np.ndim(hi)])
        k = np.arange(start, stop, dtype=np.int64).reshape(-1, *[1] * ndim)
        holds = (lo <= k) & (k < hi) & body(k)
        least = np.where(holds, k, np.iinfo(np.int64).max).min(axis=0)
        return self._table["select"](holds.any(axis=0), least, hi)
