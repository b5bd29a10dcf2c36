"""`j <= i // 2` is no division: `//` begins a comment, and what is left is another mask. Such comments are refused.

    maskspec.clause j <= i // 2        refused: the comment reads as the rest of the expression
    maskspec.clause j <= i // causal   a comment

A comment reads as the rest of an expression if it begins with a number, a call, or a name of the spec, and then ends or
goes on with an operator.
"""

from __future__ import annotations

import re

from cmir.dialects.expr import FUNCTIONS

OPS = frozenset(
    f"maskspec.{name}"
    for name in (
        *("spec", "region", "clause", "assume", "nondecreasing", "contiguous"),
        *("visible", "constants", "layout", "exists"),
    )
)
"""The ops that an expression, or what looks like one, may end."""

_DECLARED = re.compile(r"%(\w+)\s*:\s*(?:index|!maskspec\.table)")
_CONSTANTS = re.compile(r"maskspec\.constants\s+@(\w+)")
_COMMENT = re.compile(r"[ \t]*//([^\n]*)")
_GOES_ON = r"\s*(?:$|//|[+*/<>)\]]|[=!]=|&|\||-(?![A-Za-z])|(?:and|or|floordiv|mod|where)\b)"


def division_comment(text: str, position: int, spec: int) -> int | None:
    """Where a comment begins that may be meant as a division, right after the token that ends at `position`.

    Args:
        text: the whole input.
        position: where the lexer stands: behind the last token.
        spec: where the `maskspec.spec` begins that the token is in.
    """
    comment = _COMMENT.match(text, position)
    if comment is None or not re.match(r"[\w)\]]", text[position - 1 : position]):
        return None
    header = text[spec : text.find("{", spec)]
    names = ["rows", "cols", *_DECLARED.findall(header), *_CONSTANTS.findall(text, spec, position)]
    known = "|".join(map(re.escape, names))
    comma = "|," if _is_open(text, position) else ""
    operand = rf"[-(\s]*(?:(?:{'|'.join(FUNCTIONS)})\(|%?(?:{known})\[|(?:\d+|%?(?:{known}))(?:{_GOES_ON}{comma}))"
    return None if re.match(operand, comment[1].rstrip()) is None else comment.end() - len(comment[1]) - 2


def _is_open(text: str, position: int) -> bool:
    """Whether a bracket of the line is still open: what closes it would be in the comment."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return sum(line.count(c) for c in "([") > sum(line.count(c) for c in ")]")
