"""The in-process lit format refuses what it does not understand."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import lit.Test
import pytest

from cmir.testing import Command, InProcess, RunLineError, parse_run_line, run_lines

SUBSTITUTIONS = {"%s": "spec.mlir", "%S": "dir", "%t": "tmp", "%T": "tmpdir", "%%": "%"}


def test_parse_run_line():
    line = "not cm-opt '--p={a=1 b=2}' %s 2>&1 | filecheck %S/x && cm-opt < %t > 100%% 2> err"
    assert parse_run_line(line, SUBSTITUTIONS) == [
        [Command(["cm-opt", "--p={a=1 b=2}", "spec.mlir"], True, stderr="&1"), Command(["filecheck", "dir/x"])],
        [Command(["cm-opt"], stdin="tmp", stdout="100%", stderr="err")],
    ]


@pytest.mark.parametrize(
    "line",
    [
        "a; b",
        "a || b",
        "a &",
        "a >> f",
        "a $(b)",
        "a `b`",
        "a $X",
        "a 'b",
        "a >",
        "| a",
        "a |",
        "(a)",
        "a 2 > f",
        "a > | b",
    ],
)
def test_lines_that_are_not_understood(line: str):
    with pytest.raises(RunLineError):
        parse_run_line(line, SUBSTITUTIONS)


def test_run_lines_continue_after_a_backslash():
    assert list(run_lines("// RUN: a \\\n// RUN: b\n// RUN: c")) == ["a b", "c"]


@pytest.mark.parametrize("text", ["no line", "// RUN: a \\", "// RUN: a\n// XFAIL: *", "// RUN: a\n// REQUIRES: x"])
def test_files_that_are_not_understood(text: str):
    with pytest.raises(RunLineError):
        list(run_lines(text))


def cat(arguments: Sequence[str]) -> int:
    import sys

    sys.stdout.write(sys.stdin.read())
    sys.stderr.write("noise\n")
    return len(arguments)


def crash(arguments: Sequence[str]) -> int:
    raise KeyError("bug")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("cat < %s | filecheck %s", lit.Test.PASS),
        ("cat < %s 2>&1 | filecheck --check-prefix=NOISE %s", lit.Test.PASS),
        ("cat < %s > %t && filecheck %s < %t", lit.Test.PASS),
        ("not cat 1 < %s | filecheck %s", lit.Test.PASS),
        ("cat 1 < %s | filecheck %s", lit.Test.FAIL),  # the first command's failure counts
        ("not cat < %s | filecheck %s", lit.Test.FAIL),
        ("cat < %s | filecheck --check-prefix=WRONG %s", lit.Test.FAIL),
        ("cat < %s | filecheck --check-prefix=NOISE %s", lit.Test.FAIL),
        ("cm-opt nowhere.mlir", lit.Test.FAIL),
        ("grep x %s", lit.Test.UNRESOLVED),
        ("not crash", lit.Test.UNRESOLVED),
    ],
)
def test_execute(line: str, code: lit.Test.ResultCode, tmp_path: Path):
    source = tmp_path / "test.mlir"
    checks = "// CHECK: hello\n// NOISE: n{{o}}ise\n// WRONG: absent{{[ ]}}word\n"
    source.write_text(f"// RUN: {line}\nhello\n{checks}")
    test = SimpleNamespace(
        config=SimpleNamespace(unsupported=False), getSourcePath=lambda: str(source), getExecPath=lambda: str(source)
    )
    result, output = InProcess({"cat": cat, "crash": crash}).execute(test, None)
    assert result is code, output
