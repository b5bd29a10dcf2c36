"""Metadata for the NumPy interpreter: one sequence, on the host, checked against the spec and its facts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cmir.analysis.facts import Facts, first_violation
from cmir.dialects.maskspec import Parameter
from cmir.errors import MetadataError, not_given
from cmir.interp.domain import TableValue, Value

if TYPE_CHECKING:
    import numpy as np

MAX_LENGTH = 2**31 - 1
_PER = {"row": "row", "col": "column"}


def environment(facts: Facts, rows: int, cols: int, metadata: Mapping[str, Any]) -> dict[str, Value]:
    """`rows`, `cols`, scalars as ints, tables as `TableValue`.

    Raises:
        MetadataError: an argument is missing, unknown, of the wrong kind or length, or the metadata break a fact.
    """
    name = facts.name
    require_lengths(name, rows, cols)
    known = [p.name for p in facts.parameters]
    for given in metadata:
        if given not in known:
            close = difflib.get_close_matches(given, known, 1)
            hint = f", did you mean {close[0]!r}?" if close else "."
            takes = ", ".join(known) or "no metadata"
            raise MetadataError(f"mask {name!r} has no metadatum {given!r}{hint} It takes {takes}")
    if missing := {p.name: _form(p, rows, cols) for p in facts.parameters if p.name not in metadata}:
        raise not_given(name, missing)
    env: dict[str, Value] = {"rows": rows, "cols": cols}
    for p in facts.parameters:
        env[p.name] = value_of(name, p, metadata[p.name], rows, cols)
    require_facts(facts, env)
    return env


def require_lengths(name: str, rows: Any, cols: Any) -> None:
    """Raises MetadataError unless both are lengths."""
    for what, value in (("rows", rows), ("cols", cols)):
        if type(value) is not int or not 0 <= value <= MAX_LENGTH:
            raise MetadataError(f"{what} of mask {name!r}: expected an int from 0 to {MAX_LENGTH}, got {value!r}")


def require_facts(facts: Facts, env: Mapping[str, Value], who: str = "") -> None:
    """Raises MetadataError, which `who` begins, if the metadata break a fact."""
    broken = first_violation(facts, env)
    if broken is not None:
        fact, index = broken
        where = "" if index is None else f" at {dict(row='row', col='column').get(fact.kind, 'entry')} {index}"
        raise MetadataError(f"{who}mask {facts.name!r}: the metadata break the fact '{fact.text}'{where}")


def as_array(value: Any) -> np.ndarray:
    """The value as an array. What nothing accepts is one of objects: lists of lists of different lengths, and numbers
    that int64 would wrap."""
    import numpy as np

    try:
        array = value.detach().cpu().numpy() if hasattr(value, "cpu") else np.asarray(value)
    except ValueError:
        return np.asarray(value, dtype=object)
    wraps = array.dtype == np.uint64 and bool((array > np.uint64(2**63 - 1)).any())
    return array.astype(object) if wraps else array


def _beyond_int64(value: Any, array: np.ndarray) -> int | None:
    """A number in it that int64 does not hold, if there is one; NumPy makes objects or floats of those in lists."""
    import numpy as np

    try:
        entries = array if array.dtype == object else np.asarray(value, dtype=object)
    except ValueError:
        return None
    return next((x for x in entries.ravel().tolist() if isinstance(x, int) and not -(2**63) <= x < 2**63), None)


def _form(p: Parameter, rows: int, cols: int) -> str:
    if not p.is_table:
        return "an int"
    length = {"row": rows, "col": cols}.get(p.kind)
    if p.entries is not None:
        count = "n lists (n >= 1)" if length is None else f"{length} lists, one per {_PER[p.kind]},"
        return f"a 2-D sequence: {count} of {p.entries} ints"
    return f"a 1-D sequence of {'ints, at least one' if length is None else f'{length} ints, one per {_PER[p.kind]}'}"


def value_of(mask: str, p: Parameter, value: Any, rows: int, cols: int) -> Value:
    """One metadatum as an int or a `TableValue`. Raises MetadataError where it is of the wrong kind or length."""
    import numpy as np

    array = as_array(value)
    length = {"row": rows, "col": cols}.get(p.kind)
    right_form = array.dtype.kind in "iub" and array.ndim == p.is_table + (p.entries is not None)
    if p.is_table and array.size == 0 and length == 0 and array.shape[:1] == (0,) and array.ndim <= 2:
        right_form = True  # an empty list has no integer dtype of its own
        array = array.reshape(0, p.entries) if p.entries is not None else array
    if p.is_table and right_form:
        right_form = len(array) == length if length is not None else len(array) > 0
        right_form = right_form and (p.entries is None or array.shape[1] == p.entries)
    if not right_form:
        if array.dtype.kind in "Of" and (wide := _beyond_int64(value, array)) is not None:
            which = "ints of 64 bits" if p.is_table else "an int of 64 bits"
            raise MetadataError(f"metadatum {p.name!r} of mask {mask!r}: expected {which}, got {wide}")
        kind = f"{array.dtype} of shape {array.shape}" if array.ndim else f"{value!r}"
        raise MetadataError(f"metadatum {p.name!r} of mask {mask!r}: expected {_form(p, rows, cols)}, got {kind}")
    if p.is_table:
        return TableValue(array.astype(np.int64))
    return int(array)
