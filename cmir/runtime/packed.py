"""Packed batches: a mask of one sequence over many, one after another, given by cumulative lengths (`cu_seqlens`).

    desc = mask.describe(cu_seqlens=cu, rows=tokens, history=h, start=s)        # h: [S], s: [tokens]

The conventions are those of FlashAttention's variable-length interface: `cu_seqlens` is [S + 1], starts at 0 and never
falls; sequence s has the rows from cu_seqlens[s] to cu_seqlens[s + 1], and the columns that cu_seqlens_k says, or the
same ones. Tokens past the last sequence are padding: they see nothing and nothing sees them.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cmir.dialects.expr import free_names
from cmir.dialects.maskspec import Parameter, length_name
from cmir.errors import MetadataError, not_given
from cmir.interp.domain import TableValue
from cmir.passes.pack import ADDED

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cmir.analysis.facts import Fact, Facts
    from cmir.interp.domain import Value
    from cmir.runtime.mask import CompiledMask
    from cmir.view.cell import Explanation

NO_LIMIT = 2**31 - 1
"""What stands for no `max_seqlen`."""


class Longest(NamedTuple):
    """What `max_seqlen` promises: no sequence has more tokens, and whether rows and columns are cut alike."""

    tokens: int
    alike: bool

    def reach(self, tile: tuple[int, int]) -> tuple[int, int]:
        """Most column tiles that a row tile touches, and most row tiles that a column tile touches.

        Cut alike, the rows [a, a + T) of a tile see columns from the start of the sequence of row a, at least
        a - (L - 1), to the end of that of row a + T - 1, at most a + T - 1 + L: fewer than T + 2 L in a stretch. Cut
        differently, the sequences of T rows may lie apart, each with L columns.
        """

        def one_way(lines: int, others: int) -> int:
            if self.alike:
                return -(-(lines + 2 * self.tokens) // others) + 1
            return lines * (-(-self.tokens // others) + 1)

        return one_way(*tile), one_way(tile[1], tile[0])


class Subject(NamedTuple):
    """What the host knows of a mask whose sequences are packed."""

    name: str
    facts: Facts
    checked: Facts
    """The facts, and the reads of free tables."""


_FORM = "an int32 or int64 tensor [S + 1], where S is the number of sequences"


@functools.cache  # masks live as long as the process
def _names(packed: CompiledMask) -> tuple[str, str, str]:
    """The names, in the packed form, of the cumulative lengths of rows, of columns, and of the longest sequence."""
    rows, cols, longest = (p.name for p in packed.signature.parameters[-ADDED:])
    return rows, cols, longest


def _spans(mask: CompiledMask) -> dict[str, tuple[str, str]]:
    """The names, in the packed form, of where the entries of each free table begin and end."""
    names = [p.name for p in mask.packed.signature.parameters[len(mask.facts.parameters) : -ADDED]]
    return dict(zip(_free(mask), zip(names[::2], names[1::2], strict=True), strict=True))


def _free(mask: Subject | CompiledMask) -> list[str]:
    return [p.name for p in mask.facts.parameters if p.kind == "free"]


def _refuse_shared(mask: Subject | CompiledMask, table: str, sequences: int) -> None:
    """A fact that relates the entries of a table to a sequence is checked for the sequences that have entries."""
    if sequences < 2:
        return
    for fact in mask.facts.facts:
        if fact.kind == "entry" and table in fact.tables and _of_one_sequence(mask, fact):
            raise MetadataError(
                f"mask {mask.name!r}, argument {table!r}: the fact '{fact.text}' relates its entries to one sequence, "
                f"so no two sequences may share it; give a pair, the entries of all sequences one after another and "
                f"where those of each begin [S + 1]"
            )


def _of_one_sequence(mask: Subject | CompiledMask, fact: Fact) -> bool:
    free = {*_free(mask), *(length_name(t) for t in _free(mask)), *(() if fact.over is None else fact.over[:1])}
    expressions = (fact.condition, *(() if fact.over is None else fact.over[1:]))
    return any(free_names(e) - free for e in expressions)


def metadata(
    mask: CompiledMask,
    cu_seqlens: Any,
    cu_seqlens_k: Any,
    max_seqlen: Any,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The metadata of `mask.packed`, from those that a user gives; only shapes and types are looked at.

    Raises:
        MetadataError: an argument is missing, unknown, or of the wrong form.
    """
    import torch

    name = mask.name
    both = {"cu_seqlens": cu_seqlens, **({} if cu_seqlens_k is None else {"cu_seqlens_k": cu_seqlens_k})}
    for what, value in both.items():
        if not isinstance(value, torch.Tensor) or value.dim() != 1 or not value.shape[0] or not _integers(value):
            hint = "" if isinstance(value, torch.Tensor) else f"; write torch.as_tensor({what}, dtype=torch.int32)"
            raise MetadataError(f"mask {name!r}, argument {what!r}: expected {_FORM}; got {_words(value)}{hint}")
        if value.shape != cu_seqlens.shape:
            raise MetadataError(
                f"mask {name!r}, argument {what!r}: expected as many entries as cu_seqlens has, {len(cu_seqlens)}; "
                f"got {len(value)}"
            )
    if max_seqlen is not None and (type(max_seqlen) is not int or not 0 <= max_seqlen <= NO_LIMIT):
        raise MetadataError(f"mask {name!r}, argument 'max_seqlen': expected an int of at least 0; got {max_seqlen!r}")
    if given.keys() != _kinds(mask).keys():
        _check_names(mask.facts, given)
    kinds = _kinds(mask)
    sequences = cu_seqlens.shape[0] - 1
    out: dict[str, Any] = {}
    for key, value in given.items():
        if kinds[key] == "scalar":
            out[key] = _per_sequence(name, key, value, sequences, cu_seqlens.device)
        elif kinds[key] == "free":
            start, end = _spans(mask)[key]
            out[key], out[start], out[end] = _entries(mask, key, value, sequences)
        else:
            out[key] = value
    rows, cols, longest = _names(mask.packed)
    out[rows] = cu_seqlens
    out[cols] = cu_seqlens if cu_seqlens_k is None else cu_seqlens_k
    out[longest] = NO_LIMIT if max_seqlen is None else max_seqlen
    return out


def _integers(value: torch.Tensor) -> bool:
    import torch

    return value.dtype is torch.int32 or value.dtype is torch.int64


@functools.cache
def _kinds(mask: CompiledMask) -> Mapping[str, str]:
    """Of each metadatum, its kind."""
    return {p.name: p.kind for p in mask.facts.parameters}


def _per_sequence(mask: str, name: str, value: Any, sequences: int, device: torch.device) -> torch.Tensor:
    """A scalar of every sequence: an int is that of all."""
    import torch

    if type(value) is int and -(2**31) <= value < 2**31:
        return torch.full((1,), value, dtype=torch.int32, device=device)
    right = isinstance(value, torch.Tensor) and 1 <= value.dim() <= 3 and _integers(value)
    if not right or cast("torch.Tensor", value).shape[-1] != sequences:
        raise MetadataError(
            f"mask {mask!r}, argument {name!r}: expected an int, or an int32 or int64 tensor [S] (or [B, S] or "
            f"[B, H, S]), one entry for each of the {sequences} sequences; got {_words(value)}"
        )
    tensor = cast("torch.Tensor", value)
    return tensor if sequences else tensor.new_zeros((*tensor.shape[:-1], 1))


def _entries(mask: CompiledMask, name: str, value: Any, sequences: int) -> tuple[Any, Any, Any]:
    """A free table's entries, and where those of each sequence begin and end: one table of all sequences, or a pair."""
    import torch

    entries = mask.facts.entries(name) is not None
    if not isinstance(value, tuple):
        _refuse_shared(mask, name, sequences)
        if not isinstance(value, torch.Tensor) or value.dim() <= entries or not value.shape[-1 - entries]:
            return value, None, None  # refused with the rest of the metadata
        length = value.shape[-1 - entries]
        ends = torch.arange(0, 2 * length, length, device=value.device)  # no copy from the host, which would wait
        return value, ends[:1], ends[1:] if sequences else ends[:1]
    pair = cast("tuple[Any, ...]", value)
    right = len(pair) == 2 and all(isinstance(v, torch.Tensor) and _integers(v) for v in pair)
    if not right or pair[1].dim() != 1 or len(pair[1]) != sequences + 1 or pair[0].dim() != 1 + entries:
        raise MetadataError(
            f"mask {mask.name!r}, argument {name!r}: expected a pair of int32 or int64 tensors, the entries of all "
            f"sequences one after another and [{sequences + 1}] of where those of each begin; got "
            f"({', '.join(map(_words, pair))})"
        )
    table, cu = pair
    if not len(table):
        table = table.new_zeros((1, *table.shape[1:]))
    return table, *((cu[:-1], cu[1:]) if sequences else (cu[:1], cu[:1]))


def _words(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {list(value.shape)}"
    return f"{value!r} of type {type(value).__name__}"


def _check_names(facts: Facts, given: Mapping[str, Any]) -> None:
    known = [p.name for p in facts.parameters]
    takes = ", ".join(known) or "no metadata beside cu_seqlens"
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean {close[0]!r}?" if close else "."
            raise MetadataError(f"mask {facts.name!r} has no metadatum {name!r}{hint} It takes {takes}")
    if missing := {p.name: _host_form(p) for p in facts.parameters if p.name not in given}:
        raise not_given(facts.name, missing)


def _host_form(p: Parameter) -> str:
    entry = "entry" if p.entries is None else f"entry of {p.entries} ints"
    return {
        "scalar": "an int for all sequences, or one for each",
        "row": f"one {entry} per row, those of the sequences one after another",
        "col": f"one {entry} per column, those of the sequences one after another",
    }.get(
        p.kind,
        f"a table that all sequences share, of any number of {entry.replace('entry', 'entries', 1)}, or a pair: those "
        "of the sequences one after another, and where each begins",
    )


# On the host: the oracle, and what the packed tables say.


def _host_values(
    mask: Subject | CompiledMask, rows: int, cols: int, cu_seqlens: Any, cu_seqlens_k: Any, given: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, dict[str, list[np.ndarray]]]:
    """Both cumulative lengths and the metadata as arrays; of a free table also where each sequence's part lies."""
    from cmir.runtime.host_metadata import require_lengths

    require_lengths(mask.name, rows, cols)
    _check_names(mask.facts, given)
    cu = _array(mask, "cu_seqlens", cu_seqlens, "S + 1 ints, where S is the number of sequences")
    if not len(cu):
        raise MetadataError(f"cu_seqlens of mask {mask.name!r}: expected at least one entry, 0")
    as_many = f"as many ints as cu_seqlens has, {len(cu)}"
    cu_k = cu if cu_seqlens_k is None else _array(mask, "cu_seqlens_k", cu_seqlens_k, as_many, len(cu))
    values: dict[str, list[np.ndarray]] = {}
    for p in mask.facts.parameters:
        value = given[p.name]
        if p.kind == "scalar" and isinstance(value, int):
            value = [value] * (len(cu) - 1)
        if p.kind == "free":
            values[p.name] = _host_entries(mask, p, value, len(cu) - 1)
            continue
        length = {"scalar": len(cu) - 1, "row": rows, "col": cols}[p.kind]
        values[p.name] = [_array(mask, p.name, value, f"{_host_form(p)} ({length} of them)", length, p.entries)]
    return cu, cu_k, values


def _host_entries(mask: Subject | CompiledMask, p: Parameter, value: Any, sequences: int) -> list[np.ndarray]:
    """Entries, and where those of each sequence begin and end."""
    import numpy as np

    if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 2:
        pair = cast("tuple[Any, Any]", value)
        table = _array(mask, p.name, pair[0], _host_form(p), None, p.entries)
        cu = _array(mask, p.name, pair[1], _host_form(p), sequences + 1)
        return [table, cu[:-1], cu[1:]]
    _refuse_shared(mask, p.name, sequences)
    table = _array(mask, p.name, value, _host_form(p), None, p.entries)
    return [table, np.zeros(sequences, dtype=np.int64), np.full(sequences, len(table))]


def _array(
    mask: Subject | CompiledMask,
    name: str,
    value: Any,
    form: str,
    length: int | None = None,
    entries: int | None = None,
) -> np.ndarray:
    """The value as int64 [length], or [length, entries]."""
    import numpy as np

    from cmir.runtime.host_metadata import as_array

    array = as_array(value)
    right = array.dtype.kind in "iub" or not array.size
    if right and array.ndim == 1 + (entries is not None):
        right = length in (None, len(array)) and entries in (None, array.shape[-1])
    elif right:
        right = length == array.size == 0
    if right:
        return array.astype(np.int64).reshape(-1, *([] if entries is None else [entries]))
    given = f"{array.dtype} of shape {list(array.shape)}" if array.ndim else repr(value)
    raise MetadataError(f"metadatum {name!r} of mask {mask.name!r}: expected {form}; got {given}")


class Sequence(NamedTuple):
    """One sequence of a pack: its first row and column, and its own metadata."""

    row: int
    col: int
    env: dict[str, Value]


def sequences(
    mask: Subject | CompiledMask, rows: int, cols: int, cu_seqlens: Any, cu_seqlens_k: Any, given: Mapping[str, Any]
) -> list[Sequence]:
    """The sequences of a pack, each with the metadata that its rule is run with.

    Raises:
        MetadataError: an argument is missing, unknown, or of the wrong form, or a sequence's metadata break a fact.
    """
    from cmir.runtime.host_metadata import require_facts

    cu, cu_k, values = _host_values(mask, rows, cols, cu_seqlens, cu_seqlens_k, given)
    for what, ends, axis, length in (("cu_seqlens", cu, "rows", rows), ("cu_seqlens_k", cu_k, "cols", cols)):
        if ends[0] or (ends[1:] < ends[:-1]).any() or ends[-1] > length:
            raise MetadataError(
                f"{what} of mask {mask.name!r}: expected ints that start at 0, never fall, and end at most at {axis}, "
                f"{length}; got {ends.tolist()}"
            )
    out: list[Sequence] = []
    for s in range(len(cu) - 1):
        parts = {"row": slice(cu[s], cu[s + 1]), "col": slice(cu_k[s], cu_k[s + 1])}
        env: dict[str, Value] = {"rows": int(cu[s + 1] - cu[s]), "cols": int(cu_k[s + 1] - cu_k[s])}
        for p in mask.facts.parameters:
            table, *ends = values[p.name]
            if p.kind == "scalar":
                env[p.name] = int(table[s])
            else:
                env[p.name] = TableValue(table[slice(ends[0][s], ends[1][s]) if ends else parts[p.kind]])
        require_facts(mask.checked, env, f"sequence {s}: ")
        out.append(Sequence(int(cu[s]), int(cu_k[s]), env))
    return out


def dense(
    mask: CompiledMask, rows: int, cols: int, cu_seqlens: Any, cu_seqlens_k: Any, given: Mapping[str, Any]
) -> np.ndarray:
    """bool [rows, cols]: block by block, each the rule of one sequence alone, and nothing between them; errors as of
    `sequences`."""
    from cmir.interp.masks import packed_mask

    return packed_mask(mask.surface, sequences(mask, rows, cols, cu_seqlens, cu_seqlens_k, given), rows, cols)


def explain(
    mask: CompiledMask,
    i: int,
    j: int,
    rows: int,
    cols: int,
    cu_seqlens: Any,
    cu_seqlens_k: Any,
    given: Mapping[str, Any],
) -> Explanation:
    """Why row `i` of the pack sees column `j`, or does not; errors as of `sequences`."""
    from cmir.view import cell
    from cmir.view.scene import Scene

    found = sequences(mask, rows, cols, cu_seqlens, cu_seqlens_k, given)
    cell.require_pair(mask.name, i, j, rows, cols)
    row = next((s for s, x in enumerate(found) if x.row <= i < x.row + x.env["rows"]), None)
    col = next((s for s, x in enumerate(found) if x.col <= j < x.col + x.env["cols"]), None)
    if row is None or row != col:
        ends = [
            f"{what} {'is padding' if s is None else f'is of sequence {s}'}"
            for what, s in ((f"row {i}", row), (f"column {j}", col))
        ]
        apart = f"{' and '.join(ends)}; only rows and columns of one sequence see each other"
        return cell.Explanation(mask.name, i, j, False, None, "", (), (), (), apart=apart)
    here = found[row]
    inner = i - here.row, j - here.col
    said = cell.explain(Scene(mask.surface, mask.module, here.env), *inner)
    place = f"row {i}, column {j} of the pack is row {inner[0]}, column {inner[1]} of sequence {row}"
    return replace(said, place=place)


def environment(
    mask: CompiledMask, rows: int, cols: int, cu_seqlens: Any, cu_seqlens_k: Any, given: Mapping[str, Any]
) -> dict[str, Value]:
    """Metadata of `mask.packed` for the NumPy interpreter; errors as of `sequences`."""
    from cmir.runtime.host_metadata import environment as checked

    cu, cu_k, values = _host_values(mask, rows, cols, cu_seqlens, cu_seqlens_k, given)
    added: dict[str, Any] = dict(zip(_names(mask.packed), (cu, cu_k, NO_LIMIT), strict=True))
    for name, (start, end) in _spans(mask).items():
        added |= {start: values[name][1], end: values[name][2]}
    arrays = {name: parts[0] for name, parts in values.items()} | added
    kinds = {p.name: p for p in mask.packed.facts.parameters}
    for name, array in arrays.items():
        if kinds[name].kind == "free" and not len(array):
            arrays[name] = [0] if kinds[name].entries is None else [[0] * (kinds[name].entries or 0)]
    return checked(mask.packed.facts, rows, cols, arrays)
