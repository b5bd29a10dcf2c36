"""Every message that the compiler and its runtime can raise stands, in its constant parts, in some test.

A message is a string literal (or f-string, or a choice or sum of them) that an exception, a remark or a parser's error
is made of. Its constant parts must be found, in order, in one string of a test or in one line of a lit file: so a
message that is added, or changed, wants its test.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import cmir

PACKAGE = Path(cmir.__file__).parent
TESTS = Path(__file__).parents[1]

PARTS = ("analysis", "dialects", "frontend", "interp", "lowering", "passes", "runtime", "tools", "zoo")
"""What refuses specs, metadata and tensors. The viewer and the adapters of other libraries have tests of their own."""

REPORTS = {
    *("SpecError", "VerifyException", "CmirError", "MetadataError", "ShapeError", "ParseError", "AttributeError"),
    *("TypeError", "ValueError", "Remark", "Note", "raise_error", "_error", "_fail", "error"),
}

INTERNAL = {
    # Broken promises of our own code, which no input brings about.
    "a graph ends with its output",
    "{} has not been printed yet",
    "a table order is its table, never evaluated",
    "no order is written with a quantifier",
    "mask {} hides more than was proved; please report this",
    # torch refuses to index what is no captured tensor, before we are asked.
    "only a captured tensor is indexed",
    # What canonicalization takes away, and what the verifier keeps within 32 bits, whatever passes are run.
    "'{}' has no code; run --canonicalize-intervals first",
    "the number {} does not fit the kernels' int32",
    "'{}' cannot be moved to another order of the tokens",
    "the {} kernel tests {}, which @{} does not make",
    "'{}' of the layout is not a number known at compile time: {}",
}

LEAST = 5
"""Constant characters that make a text a message; with fewer it passes on one that was made elsewhere."""

Template = tuple[str | None, ...]
"""Constant parts of a message; None is what is filled in."""


class Message(NamedTuple):
    """A message and the call that it is an argument of."""

    place: str
    template: Template

    def __str__(self) -> str:
        return "".join("{}" if part is None else part for part in self.template)


def templates(e: ast.expr, local: dict[str, list[ast.expr]]) -> Iterator[Template]:
    """The texts that an expression may be; of a local variable, those that it is assigned."""
    match e:
        case ast.Constant(value=str() as text):
            yield (text,)
        case ast.JoinedStr():
            yield tuple(v.value if isinstance(v, ast.Constant) else None for v in e.values)  # pyright: ignore[reportReturnType]
        case ast.BinOp(op=ast.Add()):
            for left in list(templates(e.left, local)) or [(None,)]:
                for right in list(templates(e.right, local)) or [(None,)]:
                    yield left + right
        case ast.IfExp():
            yield from templates(e.body, local)
            yield from templates(e.orelse, local)
        case ast.List() | ast.Tuple():
            for element in e.elts:
                yield from templates(element, local)
        case ast.Name() if e.id in local:
            for value in local[e.id]:
                yield from templates(value, {})
        case _:
            pass


def messages(path: Path) -> Iterator[Message]:
    """Every message of a file, where it is raised or reported."""
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name not in REPORTS and not isinstance(parents.get(call), ast.Raise):
            continue
        if name == "Z3Exception":  # never shown: it makes an answer "unknown"
            continue
        scope: ast.AST = call
        while scope in parents and not isinstance(scope, ast.FunctionDef):
            scope = parents[scope]
        local: dict[str, list[ast.expr]] = {}
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        local.setdefault(target.id, []).append(node.value)
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            for template in templates(argument, local):
                if sum(len(part) for part in template if part) >= LEAST:
                    yield Message(f"{path.relative_to(PACKAGE.parent)}:{call.lineno}", template)


def _texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a test, put together where they are added, with a NUL for what is filled in."""
    inside = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.JoinedStr) or (isinstance(node, ast.Constant) and id(node) not in inside):
            for template in templates(node, {}):
                yield "".join("\0" if part is None else part for part in template)


@cache
def corpus() -> str:
    """A line for every string of the tests, patterns of `match=` also without their backslashes, and of lit files."""
    lines: dict[str, None] = {}
    for path in sorted(TESTS.rglob("*.py")):
        if path != Path(__file__):
            for text in _texts(ast.parse(path.read_text())):
                lines[text.replace("\n", " ")] = None
                lines[re.sub(r"\\(.)", r"\1", text).replace("\n", " ")] = None
    for path in sorted(TESTS.rglob("*.mlir")):
        lines |= dict.fromkeys(path.read_text().splitlines())
    return "\n".join(lines)


def is_tested(template: Template) -> bool:
    """Whether some line of the corpus has all constant parts in order."""
    parts = [part.replace("\n", " ") for part in template if part]
    longest, text, at = max(parts, key=len), corpus(), -1
    while (at := text.find(longest, at + 1)) >= 0:
        line = text[text.rfind("\n", 0, at) + 1 : (end if (end := text.find("\n", at)) >= 0 else len(text))]
        place = 0
        for part in parts:
            if (found := line.find(part, place)) < 0:
                break
            place = found + len(part)
        else:
            return True
    return False


def sources() -> list[Path]:
    return [*sorted(PACKAGE.glob("*.py")), *(path for part in PARTS for path in sorted((PACKAGE / part).rglob("*.py")))]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_message_stands_in_a_test(path: Path, counts):
    found = [message for message in messages(path) if str(message) not in INTERNAL]
    missing = [f"{message.place}: {message}" for message in found if not is_tested(message.template)]
    assert not missing, "\n".join(["no test says:", *missing])
    counts("diagnostics tested", len(found))


def test_what_is_internal_is_there():
    assert {str(message) for path in sources() for message in messages(path)} >= INTERNAL


def test_templates():
    source = "def f(x): raise SpecError('one ' f'two {x}' + ' three' + ('four' if x else ' five'))"
    (call,) = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert list(templates(call.args[0], {})) == [
        ("one two ", None, " three", "four"),
        ("one two ", None, " three", " five"),
    ]
    assert not is_tested(("no test says ", None, " of this"))
