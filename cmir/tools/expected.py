"""`--verify-diagnostics`: compare what was reported with the comments that announce it, as MLIR does.

    // expected-error@+1 {{use of undefined value}}
    %b = arith.addi %a, %a : i32

The kinds are `error`, `warning`, `remark` and `note`. `@+N` and `@-N` count lines from the comment, `@above` and
`@below` are the neighbours. The text in the braces is any part of the message; in `expected-error-re {{at most
{{[0-9]+}} clauses}}` inner braces hold a regular expression. Every error, warning and remark must be announced, a note
may be.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cmir.errors import Remark, SourceLocation, SpecError

_COMMENT = re.compile(
    r"expected-(?P<kind>error|warning|note|remark)(?P<re>-re)?\s*(?:@(?P<where>[+-]\d+|above|below))?\s*"
    r"\{\{(?P<text>(?(re)(?:.*?\{\{.*?\}\})*.*?|.*?))\}\}"
)
_MEANT = re.compile(r"(?://|\}\})\s*(?P<meant>expected-[^\s@{]*)")
"""What begins as an announcement does, also where the rest is none."""
_PATTERN = re.compile(r"\{\{(.*?)\}\}")

_OFFSETS = {"": 0, "above": -1, "below": 1}


class _Diagnostic(NamedTuple):
    kind: str
    message: str
    location: SourceLocation | None


def check_expectations(
    name: str, text: str, errors: Sequence[SpecError], remarks: Sequence[Remark] = ()
) -> list[SpecError]:
    """What differs: an error, warning or remark that nothing announced, an announced one that did not come, or a
    comment that announces nothing that can be understood."""
    unannounced = [_Diagnostic("error", error.message, error.location) for error in errors]
    unannounced += [_Diagnostic(remark.severity, remark.message, remark.location) for remark in remarks]
    notes = [_Diagnostic("note", *note) for found in (*errors, *remarks) for note in found.notes]
    missing = list(_misspelt(name, text))
    for place, comment in _comments(name, text):
        kind = comment["kind"]
        try:
            wanted = re.compile(_pattern(comment))
        except re.error as error:
            missing.append(SpecError(f"no regular expression in 'expected-{kind}-re': {error}", place))
            continue
        where = comment["where"] or ""
        line = place.line + (_OFFSETS[where] if where in _OFFSETS else int(where))
        candidates = notes if kind == "note" else unannounced
        for found in candidates:
            at_line = found.location is not None and found.location.line == line
            if found.kind == kind and at_line and wanted.search(found.message):
                candidates.remove(found)
                break
        else:
            missing.append(SpecError(f'expected {kind} "{comment["text"]}" was not produced', place))
    return missing + [SpecError(f"unexpected {found.kind}: {found.message}", found.location) for found in unannounced]


def _comments(name: str, text: str) -> Iterator[tuple[SourceLocation, re.Match[str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        for comment in _COMMENT.finditer(line):
            yield SourceLocation(name, number, comment.start() + 1), comment


def _misspelt(name: str, text: str) -> Iterator[SpecError]:
    """Comments that would announce something, were they written right."""
    for number, line in enumerate(text.split("\n"), 1):
        right = [comment.span() for comment in _COMMENT.finditer(line)]
        for found in _MEANT.finditer(line):
            at = found.start("meant")
            if not any(start <= at < end for start, end in right):
                yield SpecError(
                    f"'{found['meant']}' announces nothing; write expected-error, -warning, -remark or -note, where it "
                    "is (@+1, @below), and {{part of the message}}, on one line",
                    SourceLocation(name, number, at + 1),
                )


def _pattern(comment: re.Match[str]) -> str:
    """A regular expression for a part of the message."""
    if comment["re"] is None:
        return re.escape(comment["text"])
    pieces = _PATTERN.split(comment["text"])  # plain text and patterns take turns
    return "".join(piece if k % 2 else re.escape(piece) for k, piece in enumerate(pieces))
