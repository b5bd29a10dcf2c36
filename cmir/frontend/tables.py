"""Tables: metadata with one integer per row, per column or per entry, and constant tables; `table[i]` is a term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import Expr, free_names, show
from cmir.dialects.maskspec import Parameter, check_axis, check_indices
from cmir.errors import SourceLocation, SpecError
from cmir.frontend.source import user_location
from cmir.frontend.terms import CHAIN, Indexed, Owner, Term, constant, integer, length_range


class Table(Indexed):
    """Metadata with an entry per row (`per="row"`), per column (`"col"`), or as many as are given (`"free"`).

    `table[i]` is the entry at row `i`, one integer; of a table with `entries=K`, `table[i, t]` is number t of its K
    integers. An index beyond the ends, at run time, reads the nearest entry.
    """

    def __init__(self, owner: Owner, parameter: Parameter) -> None:
        super().__init__(owner, parameter.name)
        self.parameter = parameter
        self.per: str = parameter.kind
        self.entries = parameter.entries
        self.index = {"row": "i", "col": "j", "free": "k"}[self.per] + (", 0" if self.entries is not None else "")

    def __repr__(self) -> str:
        return f"<table {self.name} per {self.per}" + (f", {self.entries} entries>" if self.entries else ">")

    def __getitem__(self, index: Term | int | tuple[Term | int, ...]) -> Term:
        indices = [
            integer(self.owner, at, f"'{self.name}[...]'") for at in (index if isinstance(index, tuple) else (index,))
        ]
        try:
            check_indices(self.parameter, len(indices))
            check_axis(self.parameter, free_names(indices[0].expr), ", ".join(show(at.expr) for at in indices))
        except VerifyException as error:
            raise SpecError(str(error), user_location()) from None
        if (value := self.owner.value(indices[0].expr)) is not None and value < 0:
            raise SpecError(f"{self.name}[{value}] is before the table: entries count from 0", user_location())
        for at in indices[1:]:
            assert self.entries is not None
            if (value := self.owner.value(at.expr)) is not None and not 0 <= value < self.entries:
                raise SpecError(
                    f"{self.name}[.., {value}]: an entry has numbers 0 to {self.entries - 1}", user_location()
                )
        return self.entry(*indices)

    def nondecreasing(self, over: tuple[Term | int, Term | int] | None = None) -> Monotone:
        """The fact that entries never fall along the table, or along `[lo, hi)` of it; hand it to `spec.assume`.

        Of a table whose entries hold several integers, each of them.
        """
        return self._monotone("nondecreasing", over)

    def contiguous(self, over: tuple[Term | int, Term | int] | None = None) -> Monotone:
        """The fact that entries are ids of segments that follow each other: each is that before it or one more."""
        return self._monotone("contiguous", over)

    def _monotone(self, kind: str, over: tuple[Term | int, Term | int] | None) -> Monotone:
        ends = None if over is None else length_range(self.owner, over, "over=")
        return Monotone(self.owner, self.name, kind, ends, user_location())


class ConstantTable(Indexed):
    """A table known at compile time; `table[x]` is its entry at `x`, counted from `base`, or else the nearest one."""

    def __init__(self, owner: Owner, name: str, values: tuple[int, ...], base: int) -> None:
        super().__init__(owner, name)
        self.values = values
        self.base = base

    def __repr__(self) -> str:
        return f"<constants {self.name} from {self.base}: {list(self.values)}>"

    def __getitem__(self, index: Term | int) -> Term:
        at = integer(self.owner, index, f"'{self.name}[...]'")
        end = self.base + len(self.values)
        if (value := self.owner.value(at.expr)) is not None and not self.base <= value < end:
            raise SpecError(f"{self.name}[{value}]: the table has entries {self.base} to {end - 1}", user_location())
        if self.base:  # in the IR, entries count from 0
            shifted = at - self.base if self.base > 0 else at + -self.base
            at = shifted if value is None else constant(self.owner, value - self.base)
        return self.entry(at)


@dataclass(frozen=True, eq=False)
class Monotone:
    """A fact about neighbouring entries, made by `table.nondecreasing()` or `.contiguous()`, for `spec.assume`."""

    owner: Owner
    table: str
    kind: str
    over: tuple[Expr, Expr] | None
    location: SourceLocation | None

    def __repr__(self) -> str:
        return f"{self.table} {self.kind}" + ("" if self.over is None else f" over [{self.over[0]}, {self.over[1]})")

    def __bool__(self) -> NoReturn:
        raise TypeError(CHAIN)
