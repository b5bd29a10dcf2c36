"""How many intervals of one row can touch the same tile of columns, whatever the metadata?

    [64 * (i floordiv 64) + 64 * d, .. + 2 * r)  for d from -15 to 16          4: they begin 64 apart, a tile is 128
    [lo[i, t], hi[i, t])                         for t from 0 to 63           64: nothing keeps them apart

Intervals whose ends are `A + constant` for the same A are laid out along A: a tile touches as many as meet a window of
its width. Of intervals whose ends have no A in common nothing is known: any may meet any. A slot that holds one of two
intervals, `select(c, lo, lo') to select(c, hi, hi')`, counts as both of them. Either way the number is an upper bound,
and it is read off the linear forms of the ends, without a proof.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from cmir.analysis.linear import Linear, linear
from cmir.dialects.expr import Expr
from cmir.dialects.interval import SpanOp, TableOp

Terms = frozenset[tuple[Expr, int]]

MOST_CHOICES = 8
"""Intervals that one slot may hold, to be counted apart."""


def most_at_once(table: TableOp, width: int) -> int:
    """The most spans of one line of the table that a tile of `width` positions may touch."""
    return max((_of_spans(region.spans, width) for region in table.regions_of_table), default=0)


def _of_spans(spans: Sequence[SpanOp], width: int) -> int:
    """Spans are counted group by group: those that share the most common linear part, then those left over."""
    left = [_ends(lo, hi) for span in spans for lo, hi in choices(span)]
    total = 0
    while shared := Counter(key for ends in left for key in ends):
        best = max(shared, key=lambda key: shared[key])
        total += _most_in_a_window([ends[best] for ends in left if best in ends], width)
        left = [ends for ends in left if best not in ends]
    return total + len(left)


def choices(span: SpanOp) -> list[tuple[Expr, Expr]]:
    """The intervals (lo, hi) of which a row's span is one."""
    found = list(itertools.islice(_choices(span.lo.data, span.hi.data), MOST_CHOICES + 1))
    return found if len(found) <= MOST_CHOICES else [(span.lo.data, span.hi.data)]


def _choices(lo: Expr, hi: Expr) -> Iterator[tuple[Expr, Expr]]:
    chooser = next((e for e in (lo, hi) if e.op == "select"), None)
    if chooser is None:
        yield lo, hi
        return
    for branch in (1, 2):
        ends = (e.args[branch] if e.op == "select" and e.args[0] == chooser.args[0] else e for e in (lo, hi))
        yield from _choices(*ends)


def _ends(lo: Expr, hi: Expr) -> dict[Terms, tuple[int, int]]:
    """For every linear part A: the constants such that `[lo, hi)` lies within `[A + lo, A + hi)`."""
    lowest, highest = dict[Terms, int](), dict[Terms, int]()
    for form in alternatives(lo, "max"):
        lowest[form.key] = max(form.constant, lowest.get(form.key, form.constant))
    for form in alternatives(hi, "min"):
        highest[form.key] = min(form.constant, highest.get(form.key, form.constant))
    return {key: (lowest[key], highest[key]) for key in lowest if key in highest}


def _most_in_a_window(ends: Sequence[tuple[int, int]], width: int) -> int:
    """How many of the intervals `[lo, hi)` touch `[s, s + width)`, for the worst s: s < hi and lo < s + width."""
    events = sorted([event for lo, hi in ends if lo < hi for event in ((lo - width + 1, 1), (hi, -1))])
    most = count = 0
    for _, step in events:
        count += step
        most = max(most, count)
    return most


def alternatives(e: Expr, op: str) -> Iterator[Linear]:
    """The linear forms of the operands of a (nested) max or min; of the expression itself otherwise."""
    if e.op == op:
        for a in e.args:
            yield from alternatives(a, op)
    else:
        yield linear(e)
