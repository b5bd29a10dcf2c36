"""Columns that no row ever sees, whatever the metadata are: an end of a range that is off by one, mostly.

    1 <= j and j <= i              column 0
    j < i, with rows == cols       the last column
    j < 4 or 5 < j                 columns 4 to 5

That some batch leaves columns unseen is no mistake, as every padded mask does. So a column is given by its number, or
by its distance from the last one, and it is proved, Region by Region, that no row sees it: for all metadata that the
facts allow and all lengths, or else for all lengths that are large enough. Samples say which columns to ask about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from cmir.analysis.entailment import Entailment, negation
from cmir.analysis.facts import Fact, Facts, conjuncts
from cmir.analysis.linear import simplify
from cmir.analysis.rules import conjuncts_of, disjuncts_of, fold_statics, rule_of
from cmir.analysis.sampling import PAIRS, sample
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, J, and_, const, le, lt, sub, substitute, var
from cmir.dialects.maskspec import Parameter, RegionOp, SpecOp
from cmir.errors import Remark, locate
from cmir.interp.masks import spec_mask

if TYPE_CHECKING:
    import numpy as np

DRAWS = 24
"""Masks that a column is looked for in."""

EXAMPLES = 3
"""As many of them at least have the column."""

LARGE = 32
"""Rows and columns of a mask that is large enough."""

COLUMN = var("j#")
"""The column, as one more scalar: no identifier, so no metadatum has that name."""


@dataclass(frozen=True)
class Columns:
    """The columns of `[first, end)`; where `last`, counted back from the last one, else `end` None is all of them."""

    first: int
    end: int | None
    last: bool = False

    @property
    def inside(self) -> Expr:
        """That COLUMN is one of them, and there is such a column."""
        if self.last:
            assert self.end is not None
            lo, hi = sub(COLS, const(self.end)), sub(COLS, const(self.first))
        else:
            lo, hi = const(self.first), COLS if self.end is None else const(self.end)
        return and_(le(ZERO, COLUMN), le(lo, COLUMN), lt(COLUMN, hi), lt(COLUMN, COLS))

    def __str__(self) -> str:
        if self.end is None:
            return f"column {self.first} or any after it"
        number = self.end - self.first
        if self.last:
            return "the last column" if number == 1 else f"any of the last {number} columns"
        return f"column {self.first}" if number == 1 else f"any of the columns {self.first} to {self.end - 1}"


def unseen(spec: SpecOp, open_spec: SpecOp, facts: Facts) -> Iterator[Remark]:
    """A warning for each of a few ranges of columns; `open_spec` is the spec with scalars for its statics.

    Raises:
        SpecError: a rule cannot be said without the values of its statics.
    """
    for columns, least in columns_unseen(open_spec, facts):
        when = f" of a mask of at least {least} rows and columns" if least else ""
        message = f"no row of @{spec.sym_name.data} ever sees {columns}{when}, whatever its metadata are"
        op = _cause(spec, open_spec, replace(facts, facts=(*facts.facts, *_lengths(least))), columns)
        yield Remark(message, locate(op), severity="warning")


def columns_unseen(spec: SpecOp, facts: Facts) -> Iterator[tuple[Columns, int]]:
    """Ranges of columns that are proved to be seen by no row, of masks with at least so many rows and columns."""
    import numpy as np

    regions = [_Region(spec, region) for region in spec.regions_of_rows]
    masks = [spec_mask(spec, draw.env) for draw in sample(facts, DRAWS) if draw.pairs <= PAIRS]
    if not any(mask.any() for mask in masks):
        return
    found: list[Columns] = []
    for least in (0, LARGE):
        known = replace(facts, facts=(*facts.facts, *_lengths(least)))
        large = [np.logical_or.reduce(mask, axis=0) for mask in masks if min(mask.shape) >= max(least, 1)]
        for columns in _candidates(large):
            if any(columns.last == other.last or other.end is None for other in found):
                continue
            proved = next((c for c in _asked(columns) if all(r.never(c, known) for r in regions)), None)
            if proved is not None:
                found.append(proved)
                yield proved, least


def _lengths(least: int) -> list[Fact]:
    return [Fact(c, None, str(c), "scalar") for c in (le(const(least), ROWS), le(const(least), COLS)) if least]


def _candidates(seen: Sequence[np.ndarray]) -> Iterator[Columns]:
    """Ranges of columns that none of the masks shows: the first of them, and those at the end."""
    import numpy as np

    longest = max(map(len, seen), default=0)
    number = np.array([sum(c < len(s) for s in seen) for c in range(longest)])
    shown = np.array([any(s[c] for s in seen if c < len(s)) for c in range(longest)], dtype=bool)
    hidden = np.flatnonzero(~shown & (number >= EXAMPLES))
    if len(hidden):
        first = int(hidden[0])
        end = next((c for c in range(first, longest) if shown[c]), None)
        yield Columns(first, end)
    if len(seen) >= EXAMPLES:
        gaps = [int(np.argmax(s[::-1])) if s.any() else len(s) for s in seen]
        if min(gaps) > 0:
            yield Columns(0, min(gaps), last=True)


def _asked(columns: Columns) -> Iterator[Columns]:
    """What to ask: the whole range, or else its first column."""
    yield columns
    if columns.end != columns.first + 1:
        yield replace(columns, end=columns.first + 1)


class _Region:
    """The rule of one Region, for questions about it."""

    def __init__(self, spec: SpecOp, region: RegionOp) -> None:
        self.op = region
        self.lo, self.hi = (simplify(fold_statics(e.data, spec, region)) for e in (region.lo, region.hi))
        self.rule = rule_of(region)

    def never(self, columns: Columns, facts: Facts, rule: Expr | None = None) -> bool:
        """Whether no row of it is proved to see any of the columns, by its whole rule or by a part of it."""
        inside = [Fact(c, None, str(c), "scalar") for c in conjuncts(columns.inside)]
        parameters = (*facts.parameters, Parameter(COLUMN.name, "scalar"))
        told = replace(facts, parameters=parameters, facts=(*facts.facts, *inside))
        claim = negation(substitute(self.rule if rule is None else rule, {J: COLUMN}))
        return Entailment(told, "i", self.lo, self.hi).prove(claim).proved


def _cause(spec: SpecOp, open_spec: SpecOp, facts: Facts, columns: Columns) -> Operation:
    """The part of the rule that hides the columns, of one Region with one part; else that Region, or the spec."""
    if len(spec.regions_of_rows) != 1:
        return spec
    region, copy = spec.regions_of_rows[0], open_spec.regions_of_rows[0]
    parts = [part for part, _ in disjuncts_of(region)]
    if len(parts) != 1:
        return region
    asked = _Region(open_spec, copy)
    for (part, _), (_, condition) in zip(conjuncts_of(region), conjuncts_of(copy), strict=True):
        if asked.never(columns, facts, fold_statics(condition, open_spec, copy)):
            return part
    return parts[0]
