"""What metadata a spec may declare, and the type of tables. The other pieces of `maskspec` build on this one.

A *scalar* is one integer per sequence; a *static* is known when the mask is compiled; a *table* has an entry per row,
per column, or is *free*: of a length of its own, which expressions read by `length_name`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    four in each entry."""

    name = "maskspec.table"
    per: StringAttr = param_def()
    width: IntAttr = param_def()  # 0: an entry is one integer, read by one index

    def __init__(self, per: str, entries: int | None = None):
        super().__init__(StringAttr(per), IntAttr(entries or 0))

    @property
    def entries(self) -> int | None:
        """How many integers an entry holds; None: it is one, read by one index."""
        return self.width.data or None

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
                width = parser.parse_integer(allow_boolean=False)
                if not 1 <= width <= MAX_ENTRIES:
                    parser.raise_error(f"an entry holds 1 to {MAX_ENTRIES} integers, got {width}", start, parser.pos)
            return [per, IntAttr(width)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.per.data + (f" x {self.entries}" if self.entries else ""))

    def verify(self) -> None:
        if self.per.data not in TABLE_KINDS:
            raise VerifyException(f"a table is per {', '.join(TABLE_KINDS)}; got '{self.per.data}'")
        if not 0 <= self.width.data <= MAX_ENTRIES:
            raise VerifyException(f"an entry holds 1 to {MAX_ENTRIES} integers, got {self.width.data}")


def length_name(table: str) -> str:
    """The name by which expressions read the length of a free table."""
    return f"{table}_length"
