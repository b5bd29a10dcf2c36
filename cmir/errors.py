"""The errors cmir raises, and how one looks: `file:line:col: error: message`, the source line, a caret.

An error is raised where it is found, usually with the op at fault (`SpecError("rule is not boolean", op)`). The op's
xDSL location is resolved to file, line and column there and then, so that the message survives the op. Source lines
come from Python's `linecache`: files are read from disk, texts that never were files are announced by `add_source`.

Nothing here imports xDSL: ops and locations are told apart by their attributes, so `import cmir` stays cheap.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple


class SourceLocation(NamedTuple):
    """A place in a source text; `line` and `column` count from 1. Column 0 means "the whole line"."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Note(NamedTuple):
    """A remark printed under an error, e.g. a counterexample, or the other Region of an overlapping pair."""

    message: str
    location: SourceLocation | None = None

    def in_python(self) -> Note:
        return self._replace(message=as_python(self.message))


_PYTHON = {" floordiv ": " // ", " mod ": " % ", "'arith.floordivsi'": "'//'", "'maskspec.mod'": "'%'"}


def as_python(text: str) -> str:
    """Words about a spec for one who wrote it in Python: `//` and `%` where the language has `floordiv` and `mod`."""
    for word, written in _PYTHON.items():
        text = text.replace(word, written)
    return text


def add_source(name: str, text: str) -> None:
    """Announce the text that locations in `name` refer to; a later text of the same name replaces it."""
    # Lines are what the parser counts: a form feed or U+2028 in a comment ends none.
    linecache.cache[name] = (len(text), None, [f"{line}\n" for line in text.split("\n")], name)


def locate(thing: object) -> SourceLocation | None:
    """The source location of an xDSL op, value or location attribute; None if it has none.

    A fused location is its first known part, a call site is its callee, and an op that a rewrite made without a
    location is where its nearest located parent is.
    """
    if thing is None or isinstance(thing, SourceLocation):
        return thing
    if hasattr(thing, "filename"):  # FileLineColLoc
        attr: Any = thing
        return SourceLocation(attr.filename.data, attr.line.data, attr.column.data)
    parts = [getattr(thing, name, None) for name in ("callee", "location", "owner")]  # call site; op, name; result
    parts.extend(getattr(thing, "locations", ()))  # fused
    if callable(parent_op := getattr(thing, "parent_op", None)):
        parts.append(parent_op())
    return next((found for part in parts if (found := locate(part)) is not None), None)


def suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean 'x'?` for the known name nearest to `name`, shown behind `prefix`; or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f"; did you mean '{prefix}{near[0]}'?" if near else ""


def render(severity: str, message: str, location: SourceLocation | None) -> str:
    """One diagnostic as text, without a final newline; without a location it is just `severity: message`."""
    if location is None:
        return f"{severity}: {message}"
    header = f"{location}: {severity}: {message}"
    line = linecache.getline(location.file, location.line).rstrip("\r\n")
    if not line.strip():
        return header
    # Tabs are kept, so that the caret stands under its column however wide a tab is shown.
    indent = re.sub(r"[^\t]", " ", line[: max(location.column - 1, 0)])
    return f"{header}\n{line}\n{indent}^"


class Remark(NamedTuple):
    """Something worth knowing about a spec that is right: printed as an error is, but nothing fails.

    A warning is a remark about what is surely not meant, such as a clause that no row ever sees anything by.
    """

    message: str
    location: SourceLocation | None = None
    notes: tuple[Note, ...] = ()
    severity: Literal["remark", "warning"] = "remark"

    def in_python(self) -> Remark:
        """The same in the words of Python."""
        notes = tuple(note.in_python() for note in self.notes)
        return self._replace(message=as_python(self.message), notes=notes)

    def render(self) -> str:
        """The remark and its notes as the command line prints them."""
        notes = (render("note", note.message, note.location) for note in self.notes)
        return "\n".join((render(self.severity, self.message, self.location), *notes))


_listener: ContextVar[Callable[[Remark], None] | None] = ContextVar("cmir_remarks", default=None)


@contextmanager
def listening(listener: Callable[[Remark], None]) -> Generator[None]:
    """Within it, `listener` is given every remark of every pass; where nobody listens, remarks are dropped."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Whether anybody listens to remarks: what takes long to say need not be found out otherwise."""
    return _listener.get() is not None


def emit_remark(remark: Remark) -> None:
    """What a pass has to say to whoever listens."""
    if (listener := _listener.get()) is not None:
        listener(remark)


class CmirError(Exception):
    """Anything cmir refuses to do."""


class SpecError(CmirError):
    """Something is wrong in a spec, or in the IR or text that carries it.

    Args:
        message: what is wrong, one sentence, no final full stop.
        location: an xDSL op, value or location, or a `SourceLocation`: where.
        notes: remarks printed below it: strings, or (string, location) pairs.
    """

    message: str
    location: SourceLocation | None
    notes: tuple[Note, ...]

    def __init__(self, message: str, location: object = None, notes: Iterable[str | tuple[str, object]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.location = locate(location)
        self.notes = tuple(Note(n) if isinstance(n, str) else Note(n[0], locate(n[1])) for n in notes)

    def speak_python(self) -> None:
        """Say the same in the words of Python from now on."""
        self.message = as_python(self.message)
        self.notes = tuple(note.in_python() for note in self.notes)

    def render(self) -> str:
        """The error and its notes as the command line prints them."""
        notes = (render("note", note.message, note.location) for note in self.notes)
        return "\n".join((render("error", self.message, self.location), *notes))

    def __str__(self) -> str:
        return self.render() if self.location or self.notes else self.message


class MetadataError(CmirError, ValueError):
    """The metadata given for a mask do not fit its spec.

    The message names the argument, what was expected (kind, shape, dtype, device or range) and what was given.
    """


def not_given(mask: str, missing: Mapping[str, str]) -> MetadataError:
    """That a mask's metadata lack the names `missing`, each with the form it should have."""
    what, were = ("metadatum", "it was") if len(missing) == 1 else ("metadata", "they were")
    forms = "; ".join(f"{name!r}: {form}" for name, form in missing.items())
    return MetadataError(f"mask {mask!r} needs {what} {forms}; {were} not given")


class ShapeError(CmirError, ValueError):
    """q, k or v do not fit the descriptor, or each other; the message names the shapes."""


def missing_torch(error: ModuleNotFoundError, what: str) -> Exception:
    """What to raise where an import failed: how to install torch and triton, if one of those is missing."""
    if (error.name or "").partition(".")[0] not in ("torch", "triton"):
        return error
    return CmirError(f"{what} needs torch and triton: pip install 'cmir[torch]' ({error})")
