"""A `lit` test format that runs RUN lines without starting a process, about ten times as fast as a shell.

In `lit.cfg.py`:

    from cmir.testing import InProcess
    config.test_format = InProcess()

RUN lines are the ordinary ones, and plain `lit.formats.ShTest` runs the same files:

    // RUN: cm-opt --merge-slots %s | filecheck %s
    // RUN: not cm-opt --split-input-file %s 2>&1 | filecheck %s --check-prefix=ERROR

What is understood: pipes, `not`, `&&`, the redirections `< FILE`, `> FILE`, `2> FILE` and `2>&1`, a `\\` at the end of
a line, and the substitutions `%s` (the file), `%S` (its folder), `%t` (a scratch file), `%T` (its folder) and `%%`. Any
other RUN line fails its test. `InProcess(commands={"my-opt": main})` adds commands: a function from arguments to exit
code that uses `sys.stdin`, `sys.stdout` and `sys.stderr`.

Needs the packages `lit` and `filecheck` (`pip install 'cmir[dev]'`).
"""
# pyright: reportUnknownArgumentType=false

# lit has no type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false

import io
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lit.formats
import lit.Test

Main = Callable[[Sequence[str]], int]
"""A command: from its arguments to its exit code, reading `sys.stdin`, writing `sys.stdout` and `sys.stderr`."""

_PUNCTUATION = "|<>&;()`"
_RUN = re.compile(r"\bRUN:[ \t]*(.*)")
_NOT_UNDERSTOOD = re.compile(r"(?://|#)[ \t]*(XFAIL|REQUIRES|UNSUPPORTED|DEFINE|REDEFINE):")


class RunLineError(Exception):
    """A RUN line, or another lit directive, that this format does not understand."""


@dataclass
class Command:
    """One command of a pipeline, with its redirections."""

    words: list[str] = field(default_factory=list[str])
    expect_failure: bool = False
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None  # a file, or "&1"


class InProcess(lit.formats.FileBasedTest):
    """Runs RUN lines made of `cm-opt`, `cm-view`, `filecheck` and the given commands inside lit's worker."""

    def __init__(self, commands: Mapping[str, Main] | None = None) -> None:
        super().__init__()
        self._commands: dict[str, Main] = {
            "cm-opt": _cm_opt,
            "cm-view": _cm_view,
            "filecheck": _filecheck,
            **(commands or {}),
        }

    def execute(self, test: Any, litConfig: Any) -> tuple[Any, str]:
        """Run one test file; called by lit."""
        if test.config.unsupported:
            return lit.Test.UNSUPPORTED, ""
        source, scratch = Path(test.getSourcePath()), Path(test.getExecPath() + ".tmp")
        scratch.parent.mkdir(parents=True, exist_ok=True)
        substitutions = {"%s": source, "%S": source.parent, "%t": scratch, "%T": scratch.parent, "%%": "%"}
        try:
            for line in run_lines(source.read_text(encoding="utf-8")):
                for pipeline in parse_run_line(line, {key: str(value) for key, value in substitutions.items()}):
                    if failure := self._run(pipeline):
                        return lit.Test.FAIL, f"RUN: {line}\n{failure}"
        except RunLineError as error:
            return lit.Test.UNRESOLVED, str(error)
        return lit.Test.PASS, ""

    def _run(self, pipeline: Sequence[Command]) -> str:
        """Run a pipeline; what went wrong, or an empty string."""
        piped, transcript, failed = "", "", False
        for command in pipeline:
            name = command.words[0]
            if name not in self._commands:
                raise RunLineError(f"RUN lines know the commands {', '.join(self._commands)}; this is '{name}'")
            text = Path(command.stdin).read_text(encoding="utf-8") if command.stdin else piped
            code, output, errors = _call(self._commands[name], command.words[1:], text, command.stderr == "&1")
            if command.stderr not in (None, "&1"):
                Path(command.stderr).write_text(errors, encoding="utf-8")
            if command.stdout is not None:
                Path(command.stdout).write_text(output, encoding="utf-8")
                output = ""
            if (code != 0) != command.expect_failure:
                failed = True
                transcript += f"{shlex.join(command.words)}: exit code {code}\n{errors}"
            piped = output
        return transcript + piped if failed else ""


def run_lines(text: str) -> Iterator[str]:
    """The RUN lines of a test file, those that end in a backslash joined with the next.

    Raises:
        RunLineError: there is none, or the file uses another of lit's directives.
    """
    if directive := _NOT_UNDERSTOOD.search(text):
        raise RunLineError(f"the directive '{directive[1]}:' is not understood here; run this test in a shell")
    lines: list[str] = [match[1].rstrip() for match in _RUN.finditer(text)]
    if not lines:
        raise RunLineError("no RUN line")
    joined = ""
    for line in lines:
        joined += line.removesuffix("\\")
        if not line.endswith("\\"):
            yield joined
            joined = ""
    if joined:
        raise RunLineError("the last RUN line ends in a backslash")


def parse_run_line(line: str, substitutions: Mapping[str, str]) -> list[list[Command]]:
    """The pipelines of a RUN line (several with `&&`), in order.

    Raises:
        RunLineError: the line uses shell syntax that is not understood.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise RunLineError(f"cannot read the RUN line '{line}': {error}") from error
    if "$" in line or re.search(r"\d\s+>", line):
        raise RunLineError(f"the RUN line '{line}' uses more of the shell than is understood here")

    def file_after(operator: str) -> str:
        if not words or set(words[0]) <= set(_PUNCTUATION):
            raise RunLineError(f"the RUN line '{line}' has no file after '{operator}'")
        return expand(words.pop(0))

    def expand(word: str) -> str:
        return re.sub(r"%[%sStT]", lambda match: substitutions[match[0]], word)

    command = Command()
    pipelines = [[command]]
    while words:
        word = words.pop(0)
        if word == "|":
            pipelines[-1].append(command := Command())
        elif word == "&&":
            pipelines.append([command := Command()])
        elif word == "<":
            command.stdin = file_after("<")
        elif word == ">":
            command.stdout = file_after(">")
        elif word == "2" and words and words[0] == ">":
            command.stderr = file_after(words.pop(0))
        elif word == "2" and words[:2] == [">&", "1"]:
            command.stderr = "&1"
            del words[:2]
        elif set(word) <= set(_PUNCTUATION):
            raise RunLineError(f"'{word}' in the RUN line '{line}' is not understood here")
        elif word == "not" and not command.words:
            command.expect_failure = not command.expect_failure
        else:
            command.words.append(expand(word))
    if any(not command.words for pipeline in pipelines for command in pipeline):
        raise RunLineError(f"the RUN line '{line}' lacks a command")
    return pipelines


def _call(main: Main, arguments: Sequence[str], text: str, merge: bool) -> tuple[int, str, str]:
    """Call a command with `text` as its standard input; its exit code, standard output and standard error."""
    output = io.StringIO()
    errors = output if merge else io.StringIO()
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8")), encoding="utf-8")
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            code = main(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:
        # `not` must not take a crash for the failure that it expects.
        raise RunLineError(f"the command crashed:\n{traceback.format_exc()}") from None
    finally:
        sys.stdin = stdin
    return code, output.getvalue(), "" if merge else errors.getvalue()


def _cm_opt(arguments: Sequence[str]) -> int:
    from cmir.tools.cm_opt import main

    return main(arguments)


def _cm_view(arguments: Sequence[str]) -> int:
    from cmir.tools.cm_view import main

    return main(arguments)


def _filecheck(arguments: Sequence[str]) -> int:
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    options = parse_argv_options(["filecheck", *arguments])
    text = sys.stdin.read() if options.input_file == "-" else Path(options.input_file).read_text(encoding="utf-8")
    return Matcher(options, FInput(options.readable_input_file(), text), Parser.from_opts(options)).run()
