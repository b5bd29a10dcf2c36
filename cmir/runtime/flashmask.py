"""A mask as FlashMask takes it: for every column, the rows that it hides, as at most two intervals.

PaddlePaddle's `flashmask_attention(q, k, v, startend_row_indices, causal=...)` knows four forms. With R rows and N
columns, and D = max(0, j - (N - R)) the diagonal of column j, a column hides

    causal, 1      rows [0, D) and [r1, R)
    causal, 2      rows [0, D) and [r1, r2)
    two-sided, 2   rows [r1, R) and [0, r2)
    two-sided, 4   rows [r1, r2) and [r3, r4)

A column that sees K intervals of rows hides at most K + 1. One that, where it is not empty, is proved to begin at
the top (of the matrix, or at the diagonal under a mask that is proved to be causal) or to reach the last row adds none.
The first form for which that is few enough is taken; for none of the four, an error names the Region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cmir.analysis.entailment import Entailment, implies
from cmir.analysis.facts import Facts
from cmir.dialects.expr import COLS, ROWS, ZERO, Expr, eq, le, maximum, show, sub, var
from cmir.dialects.interval import RegionOp, SpanOp, TableOp
from cmir.errors import CmirError

if TYPE_CHECKING:
    import torch

    from cmir.runtime.descriptor import Descriptor

DIAGONAL = sub(var("j"), sub(COLS, ROWS))


class FlashMask(NamedTuple):
    """Arguments of flashmask_attention."""

    startend_row_indices: torch.Tensor
    """int32 [B or 1, H or 1, columns, 1, 2 or 4]."""
    causal: bool


@dataclass(frozen=True)
class Form:
    """One of FlashMask's forms."""

    causal: bool
    numbers: int


def form_of(
    table: TableOp,
    facts: Facts,
    name: str,
    packed: bool = False,
    square: bool = True,
    words: Callable[[str], str] = str,
) -> Form:
    """The first form that is proved to say the mask with this table of columns.

    Of a pack (`packed`), proofs about one sequence say nothing of the first and the last row of them all; the diagonals
    of its sequences are its own where their rows are their columns: cut as one (`square`), and proved to be as many.
    `words` are those of the language that the spec was written in.

    Raises:
        CmirError: none of the forms is proved to do.
    """
    if (span := table.residual_span) is not None:
        reason = "" if span.reason is None else f": {words(span.reason.data)}"
        raise CmirError(
            f"mask {name!r}: FlashMask takes the hidden rows of every column as intervals, and no number of them says "
            f"this mask by columns{reason}; to_sdpa, to_fa4 and to_block_mask take any mask"
        )
    aligned = not packed or (square and Entailment(facts, None).prove(eq(ROWS, COLS)).proved)
    columns = [_Column(region, facts) for region in table.regions_of_table]
    slots = max((column.slots for column in columns), default=0)
    causal = aligned and all(column.begins_at_least(DIAGONAL) for column in columns)
    if causal:
        top = maximum(ZERO, DIAGONAL)
        if all(column.begins_at(top) for column in columns):
            return Form(True, 1)
        if all(column.hidden(top, packed) <= 1 for column in columns):
            return Form(True, 2)
    if slots <= 1:
        return Form(False, 2)
    top = None if packed else ZERO
    worst = max(columns, key=lambda column: column.hidden(top, packed))
    if (count := worst.hidden(top, packed)) <= 2:
        return Form(False, 4)
    spans = words(", ".join(f"[{show(s.lo.data)}, {show(s.hi.data)})" for s in worst.region.spans))
    raise CmirError(
        f"mask {name!r}: FlashMask takes at most two hidden intervals of rows per column; the columns of Region "
        f"@{worst.region.sym_name.data} see {spans}, so that up to {count} are hidden; to_sdpa, to_fa4 and "
        "to_block_mask take any mask"
    )


class _Column:
    """What is proved of the columns of one Region of a table."""

    def __init__(self, region: RegionOp, facts: Facts) -> None:
        self.region = region
        self.slots = len(region.spans)
        self._entailment = Entailment(facts, "j", region.lo.data, region.hi.data)

    def _where_seen(self, span: SpanOp, claim: Expr) -> bool:
        """The claim is proved of the columns for which the span is not empty."""
        return self._entailment.prove(implies(span.nonempty, claim)).proved

    def begins_at_least(self, bound: Expr) -> bool:
        """No row before the bound is seen."""
        return all(self._where_seen(span, le(bound, span.lo.data)) for span in self.region.spans)

    def begins_at(self, top: Expr) -> bool:
        """What is seen is one interval, from the top."""
        return all(self._where_seen(span, le(span.lo.data, top)) for span in self.region.spans)

    def hidden(self, top: Expr | None, packed: bool) -> int:
        """The most intervals of rows from the top on that are hidden. `top` None: not known."""
        within = 0
        for span in self.region.spans:
            from_top = top is not None and self._where_seen(span, le(span.lo.data, top))
            to_end = not packed and self._where_seen(span, le(ROWS, span.hi.data))
            within += not (from_top or to_end)
        return 1 + within


def to_flashmask(desc: Descriptor, form: Form) -> FlashMask:
    """The hidden rows of a checked descriptor's columns, in the form that `form_of` found for its mask."""
    import torch

    rows, cols, device = desc.rows, desc.cols, desc.device
    seen = desc.col_table
    if seen is None:  # no column sees anything
        seen = torch.zeros((desc.masks, 0, 2, cols), dtype=torch.int32, device=device)
    lo, hi = seen.unbind(2)
    lo, hi = (torch.where(lo < hi, x, rows) for x in (lo, hi))
    order = lo.argsort(1)
    lo, hi = lo.gather(1, order), hi.gather(1, order)
    top = torch.zeros(cols, dtype=torch.int32, device=device)
    if form.causal:
        top = (torch.arange(cols, device=device, dtype=torch.int32) - (cols - rows)).clamp(min=0)
    top = top.expand(desc.masks, 1, cols)
    end = torch.full_like(top, rows)
    # Hidden are the gaps: before the first, between one and the next, after the last.
    begins = torch.cat([top, hi], 1).cummax(1).values
    ends = torch.maximum(torch.cat([lo, end], 1), begins)
    if form == Form(False, 2):
        numbers = [begins[:, -1], ends[:, 0]] if seen.shape[1] else [begins[:, 0], top[:, 0]]
    else:
        # Those that are not empty first; the others at the end, where they hide nothing.
        empty = begins >= ends
        first = torch.argsort(empty.to(torch.int8), dim=1, stable=True)
        begins, ends = (torch.where(empty, rows, x).gather(1, first) for x in (begins, ends))
        most = 2 if form.numbers == 4 else 1
        if bool((begins[:, most:] < ends[:, most:]).any()):
            raise CmirError(f"mask {desc.signature.name!r} hides more than was proved; please report this")
        numbers = [x[:, place] for place in reversed(range(most)) for x in (begins, ends)][: form.numbers]
    indices = torch.stack(numbers, -1).to(torch.int32)
    sequences, heads = (*desc.batch, 1, 1)[:2]
    return FlashMask(indices.reshape(sequences, heads, cols, form.numbers), form.causal)
