"""What metadata a spec may declare, and the type of tables. The other pieces of `maskspec` build on this one.

A *scalar* is one integer per sequence; a *static* is known when the mask is compiled; a *table* has an entry per row,
per column, or is *free*: of a length of its own, which expressions read by `length_name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import IndexType, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cmir.errors import suggestion

INDEX = IndexType()
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
TABLE_KINDS = ("row", "col", "free")
ALIGNMENTS = ("top_left", "bottom_right")
MAX_ENTRIES = 4096  # integers in one entry of a table: as many as an `exists` can try
ParameterKind = Literal["scalar", "static", "row", "col", "free"]


@dataclass(frozen=True)
class Parameter:
    """One declared metadatum. `value` is set for statics, `entries` for tables whose entries hold several integers."""

    name: str
    kind: ParameterKind
    value: int | None = None
    entries: int | None = None

    @property
    def is_table(self) -> bool:
        return self.kind in TABLE_KINDS


@irdl_attr_definition
class TableType(ParametrizedAttribute, TypeAttribute):
    """`!maskspec.table<row>`: integers, one per row, per column, or per entry of a table of free length; `row x 4`:
    four in each entry; `row x slots`: as many as the static `slots` of the spec says."""

    name = "maskspec.table"
    per: StringAttr = param_def()
    width: IntAttr | StringAttr = param_def()  # 0: an entry is one integer, read by one index

    def __init__(self, per: str, entries: int | str | None = None):
        super().__init__(StringAttr(per), StringAttr(entries) if isinstance(entries, str) else IntAttr(entries or 0))

    @property
    def static(self) -> str | None:
        """The static that says how many integers an entry holds, where no number does."""
        return self.width.data if isinstance(self.width, StringAttr) else None

    @property
    def entries(self) -> int | None:
        """How many integers an entry holds; None: it is one, read by one index. A static is its spec's to resolve."""
        assert isinstance(self.width, IntAttr), "Declarations.types have numbers"
        return self.width.data or None

    def with_statics(self, statics: Mapping[str, int], names: Sequence[str]) -> TableType:
        """The type with a number for the name of a static; `names` are all that is declared.

        Raises:
            VerifyException: it names no static, or one whose value is no number of integers.
        """
        if self.static is None:
            return self
        if self.static not in names:
            hint = suggestion(self.static, [*statics]) or f"; the statics are {', '.join(statics) or 'none'}"
            raise VerifyException(f"unknown name '{self.static}' in !maskspec.table<{self._text()}>{hint}")
        if self.static not in statics:
            raise VerifyException(
                f"the integers of an entry are counted at compile time: '{self.static}' in "
                f"!maskspec.table<{self._text()}> is not static"
            )
        if not 1 <= statics[self.static] <= MAX_ENTRIES:
            raise VerifyException(
                f"an entry holds 1 to {MAX_ENTRIES} integers, got {self.static} = {statics[self.static]}"
            )
        return TableType(self.per.data, statics[self.static])

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            per = StringAttr(parser.parse_identifier(context_msg=" in !maskspec.table<...>: row, col or free"))
            if per.data not in TABLE_KINDS:
                hint = suggestion(per.data, TABLE_KINDS)
                parser.raise_error(f"a table is per row, col or free; got '{per.data}'{hint}", start, parser.pos)
            width = 0
            if parser.parse_optional_keyword("x"):
                start = parser.pos
                if static := parser.parse_optional_identifier():
                    return [per, StringAttr(static)]
                width = parser.parse_integer(allow_boolean=False, context_msg=": a number, or the name of a static")
                if not 1 <= width <= MAX_ENTRIES:
                    parser.raise_error(f"an entry holds 1 to {MAX_ENTRIES} integers, got {width}", start, parser.pos)
            return [per, IntAttr(width)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self._text())

    def _text(self) -> str:
        return self.per.data + (f" x {self.width.data}" if self.width.data else "")

    def verify(self) -> None:
        if self.per.data not in TABLE_KINDS:
            raise VerifyException(f"a table is per {', '.join(TABLE_KINDS)}; got '{self.per.data}'")
        if isinstance(self.width, IntAttr) and not 0 <= self.width.data <= MAX_ENTRIES:
            raise VerifyException(f"an entry holds 1 to {MAX_ENTRIES} integers, got {self.width.data}")


def length_name(table: str) -> str:
    """The name by which expressions read the length of a free table."""
    return f"{table}_length"
