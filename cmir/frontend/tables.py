"""Tables: metadata with one integer per row, per column or per entry, and constant tables; `table[i]` is a term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import Expr, free_names, show
from cmir.dialects.maskspec import Parameter, check_axis
from cmir.errors import SourceLocation, SpecError
from cmir.frontend.source import user_location
from cmir.frontend.terms import CHAIN, Indexed, Owner, Term, constant, integer, length_range


class Table(Indexed):
    """Metadata with one integer per row (`per="row"`), per column (`"col"`), or per entry (`"free"`).

    `table[i]` is the entry at row `i`. An index beyond the ends, at run time, reads the nearest entry.
    """

    def __init__(self, owner: Owner, name: str, per: Literal["row", "col", "free"]) -> None:
        super().__init__(owner, name)
        self.per: Literal["row", "col", "free"] = per
        self.index = {"row": "i", "col": "j", "free": "k"}[per]

    def __repr__(self) -> str:
        return f"<table {self.name} per {self.per}>"

    def __getitem__(self, index: Term | int) -> Term:
        at = integer(self.owner, index, f"'{self.name}[...]'")
        if (value := self.owner.value(at.expr)) is not None and value < 0:
            raise SpecError(f"{self.name}[{value}] is before the table: entries count from 0", user_location())
        try:
            check_axis(Parameter(self.name, self.per), free_names(at.expr), show(at.expr))
        except VerifyException as error:
            raise SpecError(str(error), user_location()) from None
        return self.entry(at)

    def nondecreasing(self, over: tuple[Term | int, Term | int] | None = None) -> Nondecreasing:
        """The fact that entries never fall along the table, or along `[lo, hi)` of it; hand it to `spec.assume`."""
        ends = None if over is None else length_range(self.owner, over, "over=")
        return Nondecreasing(self.owner, self.name, ends, user_location())


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
class Nondecreasing:
    """The fact that a table's entries never fall; made by `table.nondecreasing()`, stated by `spec.assume`."""

    owner: Owner
    table: str
    over: tuple[Expr, Expr] | None
    location: SourceLocation | None

    def __repr__(self) -> str:
        return f"{self.table} nondecreasing" + ("" if self.over is None else f" over [{self.over[0]}, {self.over[1]})")

    def __bool__(self) -> NoReturn:
        raise TypeError(CHAIN)
