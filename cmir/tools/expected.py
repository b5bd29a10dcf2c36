"""`--verify-diagnostics`: compare errors with the comments that announce them, as MLIR does.

    // expected-error@+1 {{use of undefined value}}
    %b = arith.addi %a, %a : i32

`@+N` and `@-N` count lines from the comment, `@above` and `@below` are the neighbours, `expected-note` announces a
note and `expected-remark` a remark; the text in the braces is any part of the message.
"""

import re
from collections.abc import Sequence

from cmir.errors import Remark, SourceLocation, SpecError

_COMMENT = re.compile(
    r"expected-(?P<kind>error|note|remark)\s*(?:@(?P<where>[+-]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}"
)


_OFFSETS = {None: 0, "above": -1, "below": 1}


def check_expectations(
    name: str, text: str, errors: Sequence[SpecError], remarks: Sequence[Remark] = ()
) -> list[SpecError]:
    """What differs: an error or remark that nothing announced, or an announced one that did not come."""
    unannounced = [("error", error.message, error.location) for error in errors]
    unannounced += [("remark", remark.message, remark.location) for remark in remarks]
    notes = [("note", note.message, note.location) for found in (*errors, *remarks) for note in found.notes]
    missing: list[SpecError] = []
    for number, line in enumerate(text.splitlines(), 1):
        for comment in _COMMENT.finditer(line):
            kind, where, part = comment["kind"], comment["where"], comment["text"]
            wanted = number + (_OFFSETS[where] if where in _OFFSETS else int(where))
            candidates = notes if kind == "note" else unannounced
            for candidate in candidates:
                found, message, location = candidate
                if found == kind and part in message and location is not None and location.line == wanted:
                    candidates.remove(candidate)
                    break
            else:
                place = SourceLocation(name, number, comment.start() + 1)
                missing.append(SpecError(f'expected {kind} "{part}" was not produced', place))
    return missing + [SpecError(f"unexpected {kind}: {message}", location) for kind, message, location in unannounced]
