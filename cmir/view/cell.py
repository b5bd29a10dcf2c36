"""One pair (i, j) of a mask, explained: visible or not, by which Region, clause and slot, with the numbers.

@hstu, row 9, column 8: visible
  Region @candidate, rows [history, rows) = [7, 14)
    clause candidate.0 fails  (hstu.mlir:14)
      no   j < history    8 < 7
    clause candidate.1 holds  (hstu.mlir:16, 17)
      yes  start[i] <= j  7 <= 8
      yes  j <= i         8 <= 9
  row 9 sees: slot 0 [0, 7), slot 1 [7, 10), which holds column 8
  ..
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cmir.dialects.expr import OPERATORS, Expr, show
from cmir.dialects.interval import SpanOp, TableOp
from cmir.errors import CmirError, MetadataError
from cmir.interp.masks import spec_pair
from cmir.view.provenance import clause_places
from cmir.view.scene import Scene


@dataclass(frozen=True)
class Literal:
    """A comparison of a clause, whether it holds here, and what it compares: `8 < 7`."""

    text: str
    holds: bool
    numbers: str


@dataclass(frozen=True)
class Clause:
    """A clause of a Region's rule: it holds if all its literals do. `source` is where it was written, if known."""

    name: str
    literals: tuple[Literal, ...]
    source: str = ""

    @property
    def holds(self) -> bool:
        return all(literal.holds for literal in self.literals)


@dataclass(frozen=True)
class Slot:
    """One interval of the row (column) of a pair: `[lo, hi)` as the slot has it here, and as the table writes it.

    `why` says what else keeps it from holding the pair: its condition, its residual, or the slot that took it over;
    or which slots it took over, whose clauses are among its `origins` then, and their forms in its `text`.
    """

    number: int
    lo: int
    hi: int
    holds: bool
    text: str
    origins: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Explanation:
    """Why row `i` sees column `j`, or does not. Its text is what `cm-opt --explain=i,j` prints.

    `region` is None where no Region holds the row; `row_slots` are the intervals of row i, `col_slots` of column j. In
    a pack, `i` and `j` count from the start of their sequence, and `place` says which pair of the pack that is; `apart`
    says why no rule is asked about a pair of the pack, whose `i` and `j` then are those of the pack.
    """

    mask: str
    i: int
    j: int
    visible: bool
    region: str | None
    guard: str
    clauses: tuple[Clause, ...]
    row_slots: tuple[Slot, ...]
    col_slots: tuple[Slot, ...]
    place: str = ""
    apart: str = ""

    def __str__(self) -> str:
        out = [f"@{self.mask}, row {self.i}, column {self.j}: {'visible' if self.visible else 'not visible'}"]
        out = [self.place, *out] if self.place else out
        if self.apart:
            return "\n".join([*out, f"  {self.apart}"])
        if self.region is None:
            return "\n".join([*out, f"  no Region holds row {self.i}: it sees nothing", *self._slots()])
        out.append(f"  Region @{self.region}, {self.guard}")
        if not self.clauses:
            out.append("    no clause: its rows see nothing")
        for clause in self.clauses:
            source = f"  ({clause.source})" if clause.source else ""
            out.append(f"    clause {clause.name} {'holds' if clause.holds else 'fails'}{source}")
            width = max((len(literal.text) for literal in clause.literals), default=0)
            for literal in clause.literals:
                line = f"      {'yes' if literal.holds else 'no ':3}  {literal.text:{width}}  {literal.numbers}"
                out.append(line.rstrip())
        return "\n".join([*out, *self._slots()])

    def spelled(self, words: Callable[[str], str]) -> Explanation:
        """The same, where `words` spells texts in another language."""

        def of(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
            return tuple(replace(slot, text=words(slot.text), why=words(slot.why)) for slot in slots)

        clauses = tuple(
            replace(clause, literals=tuple(replace(x, text=words(x.text)) for x in clause.literals))
            for clause in self.clauses
        )
        slots = of(self.row_slots), of(self.col_slots)
        return replace(self, guard=words(self.guard), clauses=clauses, row_slots=slots[0], col_slots=slots[1])

    def _slots(self) -> list[str]:
        out: list[str] = []
        for slots, line, other in (
            (self.row_slots, f"columns that row {self.i} sees", f"column {self.j}"),
            (self.col_slots, f"rows that see column {self.j}", f"row {self.i}"),
        ):
            out.append(f"  {line}:" + ("" if slots else " none"))
            for slot in slots:
                ends = f"[{slot.lo}, {slot.hi})" if slot.lo < slot.hi else "empty"
                held = f", holds {other}" if slot.holds else ""
                why = f", {slot.why}" if slot.why else ""
                origin = f"  from {', '.join(slot.origins)}"
                out.append(f"    slot {slot.number}  {ends}{held}{why}  = {slot.text}{origin}")
        return out


def require_pair(mask: str, i: Any, j: Any, rows: int, cols: int) -> None:
    """Raises MetadataError unless there are such a row and such a column."""
    for what, index, length in (("row", i, rows), ("column", j, cols)):
        if type(index) is not int or not 0 <= index < length:
            raise MetadataError(
                f"{what} {index!r} of mask {mask!r}: expected an int from 0 to {length - 1}"
                if length
                else f"{what} {index!r} of mask {mask!r}: it has no {what}s"
            )


def explain(scene: Scene, i: int, j: int) -> Explanation:
    """Explain one pair of a scene.

    Raises:
        MetadataError: there is no such row or column.
    """
    require_pair(scene.name, i, j, scene.rows, scene.cols)
    region = scene.region_of(i)
    clauses: list[Clause] = []
    guard = ""
    if region is not None:
        lo, hi = region.lo.data, region.hi.data
        numbers = f"[{scene.number(lo)}, {scene.number(hi)})"
        guard = f"rows [{show(lo)}, {show(hi)})"
        guard += f" = {numbers}" if guard != f"rows {numbers}" else ""
        sources = clause_places(scene.surface, scene.spec)
        for k, clause in enumerate(region.clauses):
            name = f"{region.sym_name.data}.{k}"
            files = {place.file: {x.line for x in sources[name] if x.file == place.file} for place in sources[name]}
            source = ", ".join(f"{file}:{_ranges(sorted(lines))}" for file, lines in files.items())
            clauses.append(Clause(name, tuple(_literal(scene, e, i, j) for e in clause.literals), source))
    visible = spec_pair(scene.surface, scene.env, i, j)  # of this pair alone: the lengths may be large
    row_slots, col_slots = (_slots(scene, scene.tables[axis], i, j) for axis in ("rows", "cols"))
    said = (any(c.holds for c in clauses), *(any(s.holds for s in slots) for slots in (row_slots, col_slots)))
    if said != (visible,) * 3:
        raise CmirError(f"mask '{scene.name}' is not its rule at row {i}, column {j}; this is a fault of cmir")
    return Explanation(
        scene.name,
        i,
        j,
        visible,
        None if region is None else region.sym_name.data,
        guard,
        tuple(clauses),
        row_slots,
        col_slots,
    )


def _ranges(lines: Sequence[int]) -> str:
    """`14, 16-17`: line numbers, runs of them as ranges."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _literal(scene: Scene, e: Expr, i: int, j: int) -> Literal:
    holds = bool(scene.number(e, i=i, j=j))
    numbers = ""
    if e.op in ("lt", "le", "eq"):
        left, right = (scene.number(a, i=i, j=j) for a in e.args)
        numbers = f"{left} {OPERATORS[e.op].symbol} {right}"
    return Literal(show(e), holds, numbers)


def _slots(scene: Scene, table: TableOp, i: int, j: int) -> tuple[Slot, ...]:
    line, position = (i, j) if table.axis.data == "rows" else (j, i)
    region = next((r for r in table.regions_of_table if scene.guard(r)[0] <= line < scene.guard(r)[1]), None)
    if region is None:
        return ()
    ends: list[tuple[int, int]] = []
    parts = [{k} for k in range(len(region.spans))]
    why = [""] * len(region.spans)
    for k, span in enumerate(region.spans):
        lo, hi = (scene.number(e.data, **{table.fixed: line}) for e in (span.lo, span.hi))
        if span.when is not None and not scene.number(span.when.data, **{table.fixed: line}):
            why[k], lo, hi = f"'{show(span.when.data)}' fails", 0, 0
        ends.append((lo, hi))
    for a, b in region.fused:
        (alo, ahi), (blo, bhi) = ends[a], ends[b]
        if alo < ahi and blo < bhi and alo < bhi and blo < ahi:
            ends[a], ends[b] = (0, 0), (min(alo, blo), max(ahi, bhi))
            why[a] = f"united with slot {b}"
            parts[b] |= parts[a]
    out: list[Slot] = []
    for k, (span, (lo, hi)) in enumerate(zip(region.spans, ends, strict=True)):
        holds = lo <= position < hi
        if holds and span.residual is not None:
            held = bool(scene.number(span.residual.data, i=i, j=j))
            why[k] = f"'{show(span.residual.data)}' {'holds' if held else 'fails'}"
            holds = held
        if others := sorted(parts[k] - {k}):
            why[k] = why[k] or f"united with slot{'s' if len(others) > 1 else ''} {' and '.join(map(str, others))}"
        united = [region.spans[part] for part in sorted(parts[k])] if lo < hi else [span]
        origins = tuple(dict.fromkeys(origin for part in united for origin in part.origins))
        out.append(Slot(k, lo, max(lo, hi), holds, " and ".join(map(_text, united)), origins, why[k]))
    return tuple(out)


def _text(span: SpanOp) -> str:
    text = f"[{show(span.lo.data)}, {show(span.hi.data)})"
    text += "" if span.when is None else f" when {show(span.when.data)}"
    return text + ("" if span.residual is None else f" residual {show(span.residual.data)}")
