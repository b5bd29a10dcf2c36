"""Whatever text is given: a module that prints and parses again as itself, or an error with a place. Soon.

CMIR_FUZZ=100000 asks for as many mutants, CMIR_FUZZ_SEED=7 for others. What they once found stands in `FOUND`.
"""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

import pytest
from fuzzing import mutants
from xdsl.context import Context
from xdsl.utils.exceptions import ParseError, VerifyException

from cmir.errors import SpecError
from cmir.tools.driver import emit, parse, run_pipeline
from cmir.tools.registry import Registry

COUNT = int(os.environ.get("CMIR_FUZZ", "2400"))
SEED = int(os.environ.get("CMIR_FUZZ_SEED", "0"))
CHUNKS = 8  # tests, for workers to share
SECONDS = 20
"""For one text; a thousand times what it takes."""

FOUND = {
    # xDSL's expression for strings tried every way to cut an unterminated one into pieces.
    "an open string": 'func.func @f() attributes {a = "' + "<" * 60 + "}\n",
    "an open string after a name": 'maskspec.s"ec @m(%block: index = 32) {\n}' + "x" * 80 + "\n",
    "an open string first": '"' + "<" * 60 + "}\n",
    # The op around it was verified first, and took for granted what was wrong inside: AttributeError.
    "a property of another kind": '"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = []}> ({\n'
    '  "descriptor.slots"() <{axis = @first}> ({\n  ^bb0(%i: f32):\n    descriptor.endpoints\n  }) : () -> ()\n'
    "}) : () -> ()\n",
    # Not enough values to unpack.
    "a pair of one": "interval.table @t of @m axis rows slots 1 {\n"
    "  interval.region @all [0, rows) fuse [(01), (0, 2)] {\n  }\n}\n",
    # The error had no place.
    "deep parentheses": f"maskspec.spec @m() {{\n  maskspec.assume {'(' * 3000}rows{')' * 3000} == cols\n}}\n",
    "deep regions": "builtin.module {\n" * 2000 + "}\n" * 2000,
    # What is printed as \EF\BB\BF was read as bytes.
    "letters beyond ASCII": 'maskspec.spec @m() {\n  maskspec.assume rows == cols as "ﷺ \\EF\\BB\\BF é"\n}\n',
    "bytes that are no text": 'maskspec.spec @m() {\n  maskspec.assume rows == cols as "\\FF"\n}\n',
    # Divisors were asked for before quantifiers were expanded, and of rules that had been refused for them: KeyError.
    "division in an exists": "maskspec.spec @m(%x: index) {\n"
    "  maskspec.assume exists d in [1, 2] : x floordiv d == 3\n}\n",
    "division by a row": "maskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n"
    "    maskspec.clause j floordiv i floordiv 8 < 3\n  }\n}\n",
}


class Hang(BaseException):
    """No `Exception`: nothing that handles errors may take it for one."""


@contextmanager
def limit(seconds: int) -> Generator[None]:
    """Raise `Hang` in what takes longer."""

    def give_up(*_: object) -> None:
        raise Hang(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@cache
def context() -> Context:
    return Registry.installed().context()


def survive(text: str) -> None:
    """Fails if the text crashes the parser, the first passes or the printer, or does not survive a round trip."""
    with limit(SECONDS):
        try:
            module = parse(text, "fuzz.mlir", context())
        except SpecError as error:
            assert error.location is not None, f"no place: {error}"
            cause = error.__cause__
            assert isinstance(cause, ParseError | VerifyException | None), f"{cause!r} in disguise: {error}"
            deeper = cause.__cause__ if isinstance(cause, ParseError) else None
            assert isinstance(deeper, ParseError | VerifyException | None), f"{deeper!r} in disguise: {error}"
            return
        printed = emit(module)
        assert emit(parse(printed, "printed.mlir", context())) == printed
        try:
            run_pipeline(module, ["layout,dnf-normalize,extract-intervals"], context())
        except SpecError as error:
            assert error.location is not None, f"no place: {error}"
            assert " failed: " not in error.message, error


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs alarms")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutants_are_understood_or_refused(chunk: int, counts):
    count = COUNT // CHUNKS
    for text in mutants(seed=SEED * CHUNKS + chunk, count=count):
        try:
            survive(text)
        except BaseException as error:
            raise AssertionError(f"{error!r}, for the text\n{text}") from error
    counts("mutants of texts parsed", count)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs alarms")
@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND.keys())
def test_what_mutants_found(text: str):
    survive(text)
