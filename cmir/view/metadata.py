"""Metadata from a command line: given as text, the rest drawn so that the facts hold.

history=24                 a scalar
start=0,0,3,3              a table
sel=[[0, 1], [2, 3]]       JSON, where entries hold several integers
start=@file.json           the JSON of a file
@file.json                 an object of a file: every metadatum by its name
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from cmir.analysis.facts import Fact, Facts
from cmir.dialects.expr import const, free_names, le, show, var
from cmir.errors import CmirError, MetadataError
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.evaluate import evaluate
from cmir.runtime.host_metadata import environment, value_of
from cmir.view.scene import require_small

TRIES = 2000
DRAWS = 12
LONGEST = 8192
"""Rows and columns of the longest sequence that is drawn."""

SIZE = 24
"""About how many rows and columns are drawn where nothing says how many."""


LONG = 400
"""Characters of a value that are printed."""


@dataclass(frozen=True)
class Metadata:
    """The env of a mask, and the names of what was drawn for it rather than given."""

    env: dict[str, Value]
    drawn: tuple[str, ...]

    def arguments(self) -> list[str]:
        """What was drawn, as arguments that give the same again: `["--rows", "24", "--meta", "history=5"]`."""
        out: list[str] = []
        for name in self.drawn:
            value = self.env[name]
            text = _text(value)
            out += [f"--{name}", text] if name in ("rows", "cols") else ["--meta", f"{name}={text}"]
        return out

    def said(self, seed: int) -> str:
        """The line about what was drawn from a seed; long values are cut, and drawn again by their seed."""
        words, cut = self.arguments(), 0
        for k, word in enumerate(words):
            if len(word) > LONG:
                words[k], cut = word[: word.rindex(",", 0, LONG) + 1] + "..", cut + 1
        which = "a value is" if cut == 1 else f"{cut} values are"
        return f"drawn: {shlex.join(words)}" + (f"  ({which} cut; --seed {seed} draws the same)" if cut else "")


def parse_metadata(texts: Iterable[str]) -> dict[str, Any]:
    """The values that the texts give, by name; whether a mask takes them is not looked at.

    Raises:
        CmirError: a text is none of the forms above, a file cannot be read, or a name is given twice.
    """
    out: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and text.startswith("@"):
            given = _json_file(text[1:], text)
            if not isinstance(given, dict):
                raise CmirError(f"--meta {text}: expected a JSON object, a value for every name")
            pairs = cast("dict[str, Any]", given)
        elif not equals or not re.fullmatch(r"[A-Za-z]\w*", name):
            raise CmirError(f"--meta {text}: expected NAME=INT, NAME=INT,INT,.., NAME=@FILE.json or @FILE.json")
        else:
            pairs = {name: _value(value.strip(), text)}
        if twice := next((n for n in pairs if n in out), None):
            raise CmirError(f"--meta {text}: '{twice}' is given twice")
        out |= pairs
    return out


def _value(value: str, text: str) -> Any:
    if value.startswith("@"):
        return _json_file(value[1:], text)
    try:
        if value.startswith("["):
            return json.loads(value)
        parts = [int(part) for part in value.split(",")]
    except ValueError:
        raise CmirError(f"--meta {text}: expected an int, ints with commas, JSON or @FILE.json after '='") from None
    return parts if "," in value else parts[0]


def _json_file(path: str, text: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise CmirError(f"--meta {text}: cannot read '{path}': {error.strerror}") from None
    except ValueError as error:
        raise CmirError(f"--meta {text}: '{path}' is not JSON: {error}") from None


def complete(
    facts: Facts,
    rows: int | None,
    cols: int | None,
    given: Mapping[str, Any],
    seed: int = 0,
    score: Callable[[Mapping[str, Value]], float] | None = None,
) -> Metadata:
    """The metadata of a mask: what is given, and a draw of the rest that satisfies all facts.

    Args:
        facts: of the spec in normal form.
        rows, cols: the lengths; `cols` is `rows` where only that is given.
        given: values by name: ints, (lists of) lists of ints, arrays.
        seed: of the draw.
        score: of a draw; of DRAWS that satisfy the facts the one with the highest is taken, the first of equals.

    Raises:
        MetadataError: a value does not fit, the facts are broken, or no draw satisfies them.
    """
    names = ["rows", "cols", *(p.name for p in facts.parameters)]
    lengths = {"rows": rows, "cols": rows if cols is None else cols}
    known: dict[str, Any] = {k: v for k, v in lengths.items() if v is not None} | dict(given)
    if all(n in known for n in names) or any(n not in names for n in given):
        return Metadata(environment(facts, known.get("rows", 0), known.get("cols", 0), given), ())
    require_small(known.get("rows", 0), known.get("cols", 0))
    env = _draw(facts, known, seed, score)
    # Checked as metadata of a user's are: what was given may be of the wrong form.
    values = {p.name: env[p.name].values if p.is_table else env[p.name] for p in facts.parameters}
    env = environment(facts, int(env["rows"]), int(env["cols"]), values)
    return Metadata(env, tuple(n for n in names if n not in known))


def _draw(
    facts: Facts, known: Mapping[str, Any], seed: int, score: Callable[[Mapping[str, Value]], float] | None
) -> dict[str, Value]:
    import numpy as np

    from cmir.analysis.sampling import draw

    fixed = _given(facts, known)
    domain = NumpyDomain()
    for fact in facts.facts:
        scalars = free_names(fact.condition) <= {n for n, v in fixed.items() if not isinstance(v, TableValue)}
        if fact.over is None and scalars and not evaluate(fact.condition, fixed, domain):
            given = ", ".join(f"{n}={_text(fixed[n])}" for n in sorted(free_names(fact.condition)))
            raise MetadataError(f"mask {facts.name!r}: the metadata break the fact '{fact.text}': {given}")
    # Lengths that nothing gives are not drawn larger than one can look at, whatever a scalar asks for.
    small = [le(var(n), const(LONGEST)) for n in ("rows", "cols") if n not in fixed]
    within = tuple(Fact(e, None, show(e), "scalar") for e in small)
    facts = replace(facts, facts=(*facts.facts, *within))
    rng = np.random.default_rng(seed)
    free = [p.name for p in facts.parameters if p.kind == "free"]
    sizes = {fixed[n] for n in ("rows", "cols") if n in fixed}
    size = max(sizes, default=SIZE)
    found: list[dict[str, Value]] = []
    for n in range(TRIES):
        start: dict[str, Value] = dict(fixed)
        if not sizes and n < TRIES // 2:  # as many rows as columns, where that can be; not too few to see something
            start |= dict.fromkeys(("rows", "cols"), int(rng.integers(size // 2, size + 1)))
        env = draw(facts, rng, size, start)
        if env is not None and all(len(env[name].values) for name in free):
            found.append(env)
        if len(found) == (1 if score is None else DRAWS) or (found and n >= TRIES // 10):
            return max(found, key=score) if score is not None else found[0]
    held = ", ".join(f"{n}={_text(fixed[n])}" for n in fixed) or "nothing given"
    raise MetadataError(
        f"mask {facts.name!r}: no metadata that satisfy the facts were found in {TRIES} draws around {held}; give more "
        "of them"
    )


def _given(facts: Facts, known: Mapping[str, Any]) -> dict[str, Value]:
    """What is given, in form; a table per row (column) says how many rows (columns) there are, if nothing else does."""
    lengths = {name: known[name] for name in ("rows", "cols") if name in known}
    for p in facts.parameters:
        axis = {"row": "rows", "col": "cols"}.get(p.kind)
        if axis is not None and axis not in lengths and hasattr(known.get(p.name), "__len__"):
            lengths[axis] = len(known[p.name])
    out: dict[str, Value] = dict(lengths)
    for p in facts.parameters:
        if p.name not in known:
            continue
        value = value_of(facts.name, p, known[p.name], lengths.get("rows", 0), lengths.get("cols", 0))
        if not p.is_table and not -(2**31) <= value < 2**31:
            raise MetadataError(f"metadatum {p.name!r} of mask {facts.name!r}: expected an int of 32 bits, got {value}")
        out[p.name] = value
    return out


def _text(value: Value) -> str:
    if not isinstance(value, TableValue):
        return str(int(value))
    entries = value.values.tolist()
    if value.values.ndim == 1 and len(entries) > 1:
        return ",".join(map(str, entries))
    return json.dumps(entries, separators=(",", ":"))
