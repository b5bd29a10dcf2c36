"""Every name in an expression is declared (or bound) and used as what it is; tables are read along their own axis.

Each check raises VerifyException with what is wrong and how it is written right; a misspelt name is told its neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import BINDERS, KEYWORDS, RESERVED, Expr, free_names, show
from cmir.dialects.spec_types import IDENTIFIER, Parameter

CIRCLE = "a circle is a reach for each distance in rows, as in cmir/zoo/clear.mlir"


_RESERVED = {"i": "the row", "j": "the column", "rows": "the number of rows", "cols": "the number of columns"}


def instead_of_square(a: Expr, b: Expr) -> str:
    """What to write for a product that is a distance squared; nothing for other products."""
    return f"; {CIRCLE}" if a == b and {"i", "j"} <= free_names(a) else ""


def check_term(e: Expr, known: Mapping[str, Parameter], bound: frozenset[str], indices: set[str]) -> None:
    match e.op:
        case "const" if not -(2**31) <= e.value < 2**31:
            raise VerifyException(f"the number {e.value} does not fit 32 bits")
        case "var" if e.name not in bound:
            name, parameter = e.name, known.get(e.name)
            if name in ("i", "j") and name not in indices:
                raise VerifyException(
                    f"'{name}' has no meaning here: this expression is one number for the whole sequence"
                )
            if parameter is None and name not in RESERVED:
                raise VerifyException(unknown(name, [*known, *sorted(indices), "rows", "cols"]))
            if parameter is not None and parameter.is_table:
                raise VerifyException(f"'{name}' is a table: read an entry of it, as in {name}[i]")
        case "lookup":
            parameter = known.get(e.name)
            if parameter is None and e.name in _RESERVED:
                raise VerifyException(f"'{e.name}' is {_RESERVED[e.name]} and no table: it has no entries")
            if parameter is None:
                raise VerifyException(unknown(e.name, [p.name for p in known.values() if p.is_table]))
            if not parameter.is_table:
                raise VerifyException(
                    f"'{e.name}' is not a table but a {parameter.kind}: write {e.name} without an index"
                )
            check_indices(parameter, len(e.args))
            check_axis(parameter, free_names(e.args[0]), ", ".join(map(show, e.args)))
            number = e.args[-1]
            if parameter.entries is not None and number.op == "const" and not 0 <= number.value < parameter.entries:
                raise VerifyException(f"{show(e)}: an entry has numbers 0 to {parameter.entries - 1}")
        case op if op in BINDERS:
            check_binding(e.name, known)
            for end in e.args[:2]:
                check_term(end, known, bound, indices)
            return check_term(e.args[2], known, bound | {e.name}, indices)
        case _:
            pass
    for a in e.args:
        check_term(a, known, bound, indices)


def check_binding(name: str, known: Mapping[str, Parameter]) -> None:
    """An index that an expression binds may be `i` or `j`, and nothing that means something else."""
    if name not in ("i", "j") and (name in KEYWORDS or not IDENTIFIER.match(name)):
        raise VerifyException(f"'{name}' cannot name an index: it is a keyword or no identifier")
    if name in known:
        raise VerifyException(f"'{name}' cannot name an index: it is metadata of the spec")


def check_indices(table: Parameter, given: int) -> None:
    """A table is read by one index; one whose entries are lists by two: the entry, and which of its integers."""
    if given == (1 if table.entries is None else 2):
        return
    first = {"row": "i", "col": "j"}.get(table.kind, "k")
    if table.entries is None:
        raise VerifyException(
            f"an entry of table '{table.name}' is one integer: read it by one index, as in {table.name}[{first}]"
        )
    raise VerifyException(
        f"an entry of table '{table.name}' is a list of {table.entries}: read it by two indices, as in "
        f"{table.name}[{first}, 0]"
    )


def check_axis(table: Parameter, names: frozenset[str] | set[str], index: str) -> None:
    """A row table is read at rows, a column table at columns; `names` are what the index depends on."""
    wrong, mine, other = {"row": ("j", "row", "column"), "col": ("i", "column", "row")}.get(table.kind, ("", "", ""))
    if wrong in names:
        raise VerifyException(
            f"table '{table.name}' has one entry per {mine} but is indexed by a {other}: {table.name}[{index}]; "
            f"declare it per {'col' if mine == 'row' else 'row'}, or free if rows and columns share it"
        )


def unknown(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    hint = f"; did you mean '{close[0]}'?" if close else f"; known here: {', '.join(sorted(known))}" if known else ""
    return f"unknown name '{name}'{hint}"
