"""`MaskSpec`: a mask written in Python, the same thing with the same meaning as a `maskspec.spec` in text.

    spec = cmir.MaskSpec("hstu")
    i, j, rows, cols = spec.i, spec.j, spec.rows, spec.cols
    history = spec.scalar("history")
    start = spec.table("start", per="row")
    spec.assume(rows == cols, 0 <= history, history <= rows)
    spec.assume(history <= start[i], start[i] <= i, rows=(history, rows))
    spec.region("history", 0, history, visible=j <= i)
    spec.region("candidate", history, rows, visible=(j < history) | ((start[i] <= j) & (j <= i)))
    print(spec)

`print` shows the .mlir; `cmir.compile(spec)` is the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from typing import Final, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer

from cmir.dialects.expr import COLS, KEYWORDS, ROWS, Expr, I, J, var
from cmir.dialects.maskspec import (
    ALIGNMENTS,
    IDENTIFIER,
    INDEX,
    MAX_ENTRIES,
    TABLE_KINDS,
    ConstantsOp,
    Parameter,
    ParameterKind,
    RegionOp,
    SpecOp,
    TableType,
    position,
)
from cmir.errors import SourceLocation, SpecError
from cmir.frontend import functions, terms
from cmir.frontend.bound import name_bound_indices
from cmir.frontend.facts import Fact, fact_op
from cmir.frontend.rule import RuleBuilder
from cmir.frontend.source import attribute, not_too_deep, user_frame, user_location
from cmir.frontend.tables import ConstantTable, Monotone, Table
from cmir.frontend.terms import Owner, Term
from cmir.tools.verifier import verify

__all__ = ["ConstantTable", "MaskSpec", "Monotone", "Table", "Term"]

Values = Mapping[str, SSAValue]
_AN_IDENTIFIER: Final = "an identifier (letters, digits, _; a letter first)"


class MaskSpec:
    """A mask under construction: declare metadata, state facts, give each Region of rows its visibility rule.

    `i` and `j` are the row and the column, `rows` and `cols` the lengths. Terms are made of them and of metadata by
    Python's operators (see `Term`), and by `minimum`, `maximum`, `where` and `exists` below. Row `i` sees column `j`
    iff the rule of the Region that holds `i` says so; rows in no Region see nothing. In the IR, a subterm that a Region
    uses twice is computed once, and values have the names of the local variables that hold their terms.

    Args:
        name: the spec's name, an identifier.

    Every method raises `SpecError`, with the line of Python at fault, for what the language does not allow, and
    `TypeError` for an argument of the wrong kind.
    """

    def __init__(self, name: str) -> None:
        if not IDENTIFIER.match(_text(name, "a spec")):
            raise SpecError(f"a spec is named by {_AN_IDENTIFIER}, got '{name}'", user_location())
        self.name = name
        self._owner = Owner(name)
        self._location = user_location()
        self._taken: dict[str, SourceLocation | None] = {}  # metadata, constant tables; and Regions as `@name`
        self._types: dict[str, Attribute] = {}  # of metadata
        self._items: list[Callable[[Values], Operation]] = []  # facts, constant tables, Regions in order
        self.i = Term(self._owner, "var", I)
        self.j = Term(self._owner, "var", J)
        self.rows = Term(self._owner, "rows", ROWS)
        self.cols = Term(self._owner, "cols", COLS)

    # Metadata.

    def scalar(self, name: str) -> Term:
        """Declare one integer per sequence, given when the mask is used."""
        return self._declare(name, "scalar")

    def static(self, name: str, value: int) -> Term:
        """Declare an integer known at compile time: terms may be multiplied by it and, if positive, divided by it."""
        return self._declare(name, "static", terms.number(value, f"static '{name}'"))

    def table(self, name: str, per: Literal["row", "col", "free"], entries: int | Term | None = None) -> Table:
        """Declare one integer per row, per column, or per entry of a table whose length is free.

        Args:
            name, per: the name, and what has an entry: each row, each column, or as many as the metadata give.
            entries: with `entries=K` every entry holds K integers, a number or a static of this spec, which `statics=`
                of `compile` may override: `table[i, t]` is number t of the entry at row i. Two such tables are a slot
                list, K intervals at each row:
                `spec.exists(0, K - 1, lambda t: (lo[i, t] <= j) & (j < hi[i, t]))`.
        """
        if per not in TABLE_KINDS:
            raise ValueError(f"table '{name}' is per 'row', 'col' or 'free', got {per!r}")
        count: int | None = None
        width: int | str | None = None
        if isinstance(entries, Term):
            width, count = terms.static(self._owner, entries, f"entries= of table '{name}'")
        elif entries is not None:
            count = width = terms.number(entries, f"entries= of table '{name}'")
        if count is not None and not 1 <= count <= MAX_ENTRIES:
            raise SpecError(
                f"an entry of table '{name}' holds 1 to {MAX_ENTRIES} integers, got {entries}", user_location()
            )
        self._declare(name, per, entries=count, of=TableType(per, width))
        return Table(self._owner, self._owner.parameters[name])

    def constants(self, name: str, values: Iterable[int], base: int = 0) -> ConstantTable:
        """A table of integers known at compile time, whose first entry stands at index `base`."""
        entries = tuple(terms.number(v, f"entry {k} of '{name}'") for k, v in enumerate(values))
        table = ConstantTable(self._owner, name, entries, terms.number(base, f"the base of '{name}'"))
        if not entries:
            raise SpecError(f"constant table '{name}' needs at least one entry", user_location())
        self._claim(name, "a constant table", name, f"@{name}")
        op = ConstantsOp(name, entries)
        op.location = attribute(user_location())
        self._items.append(lambda values: op.clone())
        return table

    # Terms that Python has no operator for.

    def minimum(self, *values: Term | int) -> Term:
        """The least of two or more integers."""
        return functions.extremum(self._owner, "min", values)

    def maximum(self, *values: Term | int) -> Term:
        """The greatest of two or more integers."""
        return functions.extremum(self._owner, "max", values)

    def where(self, condition: Term | bool, then: Term | int, otherwise: Term | int) -> Term:
        """`then` where the condition holds, else `otherwise`: two integers or two conditions."""
        return functions.where(self._owner, condition, then, otherwise)

    def exists(self, lo: Term | int, hi: Term | int, body: Callable[[Term], Term | bool]) -> Term:
        """Whether `body(d)` holds for some d from lo to hi, both included and both known at compile time."""
        return functions.exists(self._owner, lo, hi, body)

    def forall(self, lo: Term | int, hi: Term | int, body: Callable[[Term], Term | bool]) -> Term:
        """Whether `body(d)` holds for every d from lo to hi, both included and both known at compile time."""
        return functions.forall(self._owner, lo, hi, body)

    def position(self, alignment: Literal["top_left", "bottom_right"]) -> Term:
        """The column that row `i` is aligned with, where rows and columns differ in number.

        `"top_left"`: row 0 stands at column 0; it is `i`. `"bottom_right"`: the last row stands at the last column; it
        is `i + cols - rows`, as in decoding with a cache of keys. Rows that stand elsewhere have a scalar for it:
        `i + offset`. Causal attention is `spec.j <= spec.position(...)`.
        """
        if alignment not in ALIGNMENTS:
            raise ValueError(f"an alignment is 'top_left' or 'bottom_right', got {alignment!r}")
        return Term(self._owner, "position", position(alignment, I), (self.i,)) if alignment != "top_left" else self.i

    # Facts and Regions.

    @not_too_deep
    def assume(
        self,
        *facts: Fact,
        rows: tuple[Term | int, Term | int] | None = None,
        cols: tuple[Term | int, Term | int] | None = None,
        entries: tuple[Term | int, Term | int] | None = None,
    ) -> None:
        """State facts about the metadata: used when the mask is compiled, checked when it is described.

        Args:
            facts: conditions. One that reads `i` holds for every row, one that reads `j` for every column. Also
                `table.nondecreasing()` and `table.contiguous()`; and, with `entries`, functions of an index into free
                tables.
            rows: `(lo, hi)`: the facts, which read `i`, hold for the rows lo to hi - 1 only.
            cols: the same for facts that read `j`.
            entries: `(lo, hi)`: `spec.assume(lambda k: 0 <= first[k], entries=(0, 8))` holds for k from 0 to 7.
        """
        ranges = {"rows": rows, "cols": cols, "entries": entries}
        given = {k: terms.length_range(self._owner, v, f"{k}=") for k, v in ranges.items() if v is not None}
        if len(given) > 1:
            raise SpecError(f"facts range over one thing: {' and '.join(given)} are given", user_location())
        if not facts:
            raise TypeError("assume takes at least one fact")
        over = next(iter(given.items()), None)
        for op in [fact_op(self._owner, fact, over) for fact in facts]:
            self._items.append(lambda values, op=op: op.clone())

    @not_too_deep
    def region(self, name: str, lo: Term | int, hi: Term | int, *, visible: Term | bool) -> None:
        """Give the rows `[lo, hi)` their visibility rule: row i sees column j iff `visible`.

        Args:
            name: names the Region in messages and generated code.
            lo, hi: the row guard, half-open: one number each for the whole sequence. Regions must not overlap.
            visible: a condition over `i` and `j`; True and False are conditions too.
        """
        start, stop = terms.length_range(self._owner, (lo, hi), f"the row guard of '{name}'")
        rule = terms.condition(self._owner, visible, f"the rule of Region '{name}'")
        terms.check_bound(rule)
        self._claim(name, "a Region", f"@{name}")
        hints, location = _local_names(), user_location()

        def item(values: Values) -> Operation:
            op = RegionOp(name, start, stop, RuleBuilder(values, hints).build(rule))
            op.location = attribute(location)
            return op

        self._items.append(item)

    # The result.

    @not_too_deep
    def build(self) -> SpecOp:
        """A new surface spec, verified."""
        parameters = tuple(self._owner.parameters.values())
        block = Block(arg_types=[self._types[p.name] for p in parameters])
        values = dict(zip(self._owner.parameters, block.args, strict=True))
        block.add_ops([item(values) for item in self._items])
        spec = SpecOp(self.name, parameters, Region(block))
        spec.location = attribute(self._location)
        for op in spec.walk():
            name_bound_indices(op, self._taken)
        verify(spec)
        return spec

    def module(self) -> ModuleOp:
        """A new module that holds the spec: what the passes run on."""
        spec = self.build()
        module = ModuleOp([spec])
        module.location = spec.location
        return module

    def __str__(self) -> str:
        """The spec as a .mlir file."""
        stream = StringIO()
        Printer(stream).print_op(self.build())
        return stream.getvalue() + "\n"

    def __repr__(self) -> str:
        return f"<MaskSpec {self.name}>"

    def _declare(
        self,
        name: str,
        kind: ParameterKind,
        value: int | None = None,
        entries: int | None = None,
        of: Attribute = INDEX,
    ) -> Term:
        self._claim(name, "metadata", name)
        self._types[name] = of
        self._owner.parameters[name] = Parameter(name, kind, value, entries)
        return Term(self._owner, "var", var(name))

    def _claim(self, name: str, what: str, *keys: str) -> None:
        """Take a name: `x` for what expressions read (metadata, constants), `@x` for symbols (constants, Regions)."""
        if not IDENTIFIER.match(_text(name, what)):
            raise SpecError(f"'{name}' cannot name {what}: a name is {_AN_IDENTIFIER}", user_location())
        if name in keys and name in KEYWORDS:
            raise SpecError(f"'{name}' cannot name {what}: it is a keyword of the language", user_location())
        for key in keys:
            if key in self._taken:
                note = "first declared here", self._taken[key]
                raise SpecError(f"'{key}' is declared twice", user_location(), [note])
        self._taken |= dict.fromkeys(keys, user_location())


def _text(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} is a string, got {name!r}")
    return name


def _local_names() -> dict[Expr, str]:
    """What the user's local variables call their terms."""
    frame = user_frame()
    names: dict[Expr, str] = {}
    local: dict[str, object] = {} if frame is None else frame.f_locals
    for name, value in local.items():
        # An interactive session keeps its last results in names with underscores.
        if isinstance(value, Term) and name.isascii() and not name.startswith("_"):
            names.setdefault(value.expr, name)
    return names
