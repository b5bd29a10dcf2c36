"""What a compiled mask asks of its caller: plain data shared by the compiler, the printers and the runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ParameterKind = Literal["scalar", "row", "col", "free"]
FactDomain = Literal["scalar", "row", "col", "entry"]
Test = Literal["rows", "cols", "bits"]


DESCRIBE_ARGUMENTS = ("rows", "cols", "cu_seqlens", "cu_seqlens_k", "max_seqlen", "device", "tile", "axis")
"""Names that `describe`, `dense` and `intervals` use themselves, and metadata may not have."""


@dataclass(frozen=True)
class Parameter:
    """One metadatum: a scalar (one int per mask), or a table with an entry per row, per column or of a free number; an
    entry is one int, or `entries` of them."""

    name: str
    kind: ParameterKind
    entries: int | None = None


@dataclass(frozen=True)
class Fact:
    """A fact that is checked: `text` is what messages quote (`history <= start[i]`), `over` is what it ranges over.

    Those that are not `declared` follow from the rule: the entries that it reads.
    """

    text: str
    over: FactDomain
    declared: bool = True


@dataclass(frozen=True)
class Signature:
    """Name, metadata in declaration order, slots per row and per column (None: unbounded on that axis), and facts.

    Facts are numbered from 1 in this order; the status word of a descriptor carries such a number. `tests` says what
    the forward, the dq and the dkv kernel test (None: the cheapest table); a mask that is tested by bits has no slots.
    """

    name: str
    parameters: tuple[Parameter, ...]
    row_slots: int | None
    col_slots: int | None
    facts: tuple[Fact, ...] = ()
    tests: tuple[Test, Test, Test] | None = None
    symmetric: bool = False
    """Where there are as many rows as columns, the table of rows serves both axes."""

    @property
    def bits(self) -> bool:
        return self.tests is not None and "bits" in self.tests
