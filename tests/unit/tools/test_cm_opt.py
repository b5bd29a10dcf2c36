"""`cm-opt` from outside: exact texts, exit codes, what it imports, how long it takes."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import pytest
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from cmir.errors import CmirError
from cmir.tools import cm_view
from cmir.tools.cm_opt import main
from cmir.tools.registry import Registry
from cmir.universe import GROUPS, PASSES

GOOD = "func.func @f() {\n  func.return\n}\n"

TARGETS = Registry.installed().targets


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.mlir"
    path.write_text(GOOD)
    return str(path)


def run_error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cs", "SPEC"], "cm-opt: error: unknown option '--cs'; did you mean '--cse'?\n"),
        (["--frobnicate"], "cm-opt: error: unknown option '--frobnicate' (--help lists them)\n"),
        (["-o"], "cm-opt: error: option '-o' needs a value: -o FILE\n"),
        (["--split-input-file=1"], "cm-opt: error: option '--split-input-file' takes no value\n"),
        (["a.mlir", "b.mlir"], "cm-opt: error: more than one input file: a.mlir, b.mlir\n"),
        (["missing.mlir"], "cm-opt: error: cannot read 'missing.mlir': No such file or directory\n"),
        (["--load", "missing.py"], "cm-opt: error: cannot load 'missing.py': no such file\n"),
        (["--explain", "dc"], "cm-opt: error: no pass or target is called 'dc'; did you mean 'dce'?\n"),
        (
            ["--explain=12", "SPEC"],
            "cm-opt: error: --explain=12: a row and a column are two numbers, as in --explain=12,5\n",
        ),
        (["-p", "cse{", "SPEC"], "<pipeline>:1:5: error: expected argument name here\ncse{\n    ^\n"),
        (["-p", "cse,dc", "SPEC"], "<pipeline>:1:5: error: unknown pass 'dc'; did you mean 'dce'?\ncse,dc\n    ^\n"),
        (["--cse=x=1", "SPEC"], "<pipeline>:1:5: error: pass 'cse' has no option 'x'\ncse{x=1}\n    ^\n"),
        (
            ["-t", "foo", "SPEC"],
            f"<pipeline>:1:1: error: unknown target 'foo'; the targets are {', '.join(sorted(TARGETS))}\nfoo\n^\n",
        ),
        (["-t", "mlr", "SPEC"], "<pipeline>:1:1: error: unknown target 'mlr'; did you mean 'mlir'?\nmlr\n^\n"),
        (["-o", "missing/out", "SPEC"], "cm-opt: error: cannot write 'missing/out': No such file or directory\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors(argv: list[str], message: str, spec: str, capsys: pytest.CaptureFixture[str]):
    assert run_error(capsys, *(spec if word == "SPEC" else word for word in argv)) == message


def test_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "spec.mlir"
    path.write_bytes(b"func.func @f() {\n  \xff }")
    assert run_error(capsys, str(path)) == f"{path}:2:3: error: not UTF-8: byte 0xff\n"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "spec.mlir"
    path.write_bytes(b"\xef\xbb\xbfmaskspec.spec @a() { bad }")
    error = f"{path}:1:22: error: unknown operation 'bad'\nmaskspec.spec @a() {{ bad }}\n                     ^\n"
    assert run_error(capsys, str(path)) == error


def test_output_file_keeps_its_mode_and_survives_failure(tmp_path: Path, spec: str, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "out.mlir"
    assert main(["-o", str(output), spec]) == 0
    assert "func.func @f" in output.read_text()
    output.chmod(0o640)
    assert main([spec, "-o", str(output)]) == 0
    assert output.stat().st_mode & 0o777 == 0o640
    output.write_text("before")
    Path(spec).write_text("broken")
    assert "unknown operation 'broken'" in run_error(capsys, "-o", str(output), spec)
    assert output.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["out.mlir", "spec.mlir"]


def test_load_reports_the_line_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.py"
    path.write_text("import os\nimport no_such_module\n")
    assert run_error(capsys, "--load", str(path)) == (
        f"{path}:2:1: error: cannot load '{path}': ModuleNotFoundError: No module named 'no_such_module'\n"
        "import no_such_module\n^\n"
    )
    path.write_text("x = (\n")
    assert f"{path}:1:5: error: cannot load '{path}': '(' was never closed" in run_error(capsys, "--load", str(path))


def test_load_refuses_a_name_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.py"
    path.write_text("""\
from xdsl.passes import ModulePass
class Mine(ModulePass):
    name = "cse"
    def apply(self, ctx, op): ...
""")
    message = f"cm-opt: error: '{path}' defines the pass 'cse', a name that is taken by xdsl; give yours another name\n"
    assert run_error(capsys, "--load", str(path)) == message


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("CMIR_DEBUG", "1")
    assert main(["missing.mlir"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_load_stands_in_for_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Tutorial, section 6: once its package is installed, a pass is still tried from its file."""
    from cmir.tools import registry

    def window() -> type[ModulePass]:
        raise AssertionError("the installed one is not asked for")

    window.__module__ = "cmir_extra"
    monkeypatch.setattr(registry, "_installed", lambda: Universe(all_passes={"window": window}))
    known = registry.Registry.installed()
    path = str(Path(__file__).parents[3] / "examples" / "custom_pass" / "cmir_extra" / "window.py")
    known.load_file(path)
    assert known.passes["window"]().__module__ == "cmir_loaded_window"
    other = tmp_path / "other.py"
    other.write_text(Path(path).read_text())
    with pytest.raises(CmirError, match=rf"defines the pass 'window', a name that is taken by '{path}'; give"):
        known.load_file(str(other))
    other.write_text(Path(path).read_text().replace('name = "window"', 'name = "transpose"'))
    with pytest.raises(CmirError, match="the pass 'transpose', a name that is taken by cmir; give yours another name"):
        known.load_file(str(other))


def test_verify_diagnostics_reports_what_differs(spec: str, capsys: pytest.CaptureFixture[str]):
    Path(spec).write_text("// expected-error {{nothing of the kind}}\nbroken\n")
    assert run_error(capsys, "--verify-diagnostics", spec) == (
        f'{spec}:1:4: error: expected error "nothing of the kind" was not produced\n'
        "// expected-error {{nothing of the kind}}\n   ^\n"
        f"{spec}:2:1: error: unexpected error: unknown operation 'broken'\nbroken\n^\n"
    )


REPORTS = str(Path(__file__).parents[2] / "lit" / "tools" / "inputs" / "reports.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "// expected-warning@+1 {{of @twice}} expected-warning@+1 {{of @twice}}\n"
            "func.func private @warning_twice()\n",
            '{}:1:38: error: expected warning "of @twice" was not produced\n'
            "// expected-warning@+1 {{of @twice}} expected-warning@+1 {{of @twice}}\n" + " " * 37 + "^\n",
        ),
        (
            "func.func private @warning_x()\nfunc.func private @remark_y()\n",
            "{}:1:1: error: unexpected warning: a warning of @x\nfunc.func private @warning_x()\n^\n"
            "{}:2:1: error: unexpected remark: a remark of @y\nfunc.func private @remark_y()\n^\n",
        ),
        (
            "// expected-error-re@+1 {{of {{(}}}}\nfunc.func private @error_x()\n",
            "{}:1:4: error: no regular expression in 'expected-error-re': missing ), unterminated subpattern at "
            "position 4\n"
            "// expected-error-re@+1 {{of {{(}}}}\n   ^\n"
            "{}:2:1: error: unexpected error: an error of @x\nfunc.func private @error_x()\n^\n",
        ),
        (
            "// expected-error-re@+1 {{of @.}}\nfunc.func private @error_x()\n",
            '{}:1:4: error: expected error "of @." was not produced\n// expected-error-re@+1 {{of @.}}\n   ^\n'
            "{}:2:1: error: unexpected error: an error of @x\nfunc.func private @error_x()\n^\n",
        ),
    ],
    ids=["one for each", "unexpected", "no expression", "outside of inner braces"],
)
def test_what_comments_do_not_announce(text: str, message: str, spec: str, capsys: pytest.CaptureFixture[str]):
    Path(spec).write_text(text)
    said = run_error(capsys, "--verify-diagnostics", "--load", REPORTS, "--report", spec)
    assert said == message.replace("{}:", f"{spec}:")


@pytest.mark.parametrize(
    ("comment", "meant"),
    [
        ("// expected-eror@+1 {{of @x}}", "expected-eror"),
        ("// expected-error@+1 {{of @x", "expected-error"),
        ("// expected-error@next {{of @x}}", "expected-error"),
        ("// expected-error@+1 {of @x}", "expected-error"),
        ("// expected-remark@+1 {{of @x}} expected-warnings@+1 {{of @x}}", "expected-warnings"),
    ],
)
def test_a_comment_that_announces_nothing_is_refused(
    comment: str, meant: str, spec: str, capsys: pytest.CaptureFixture[str]
):
    Path(spec).write_text(f"{comment}\nfunc.func private @remark_x()\n")
    said = run_error(capsys, "--verify-diagnostics", "--load", REPORTS, "--report", spec)
    assert said.startswith(
        f"{spec}:1:{comment.rindex('expected-') + 1}: error: '{meant}' announces nothing; write expected-error, "
        "-warning, -remark or -note, where it is (@+1, @below), and {{part of the message}}, on one line"
    )


def test_unexpected_diagnostics_of_every_piece_show_their_line(spec: str, capsys: pytest.CaptureFixture[str]):
    Path(spec).write_text("broken\n// -----\nbroken too\n")
    assert run_error(capsys, "--verify-diagnostics", "--split-input-file", spec) == (
        f"{spec}:1:1: error: unexpected error: unknown operation 'broken'\nbroken\n^\n"
        f"{spec}:3:1: error: unexpected error: unknown operation 'broken'\nbroken too\n^\n"
    )


def test_warnings_fail_nothing(spec: str, capsys: pytest.CaptureFixture[str]):
    Path(spec).write_text("func.func private @warning_x()\n")
    assert main(["--load", REPORTS, "--report", spec]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"{spec}:1:1: warning: a warning of @x\nfunc.func private @warning_x()\n^\n"
    assert "@warning_x" in captured.out


def test_help_names_every_pass_of_the_pipeline(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    flags = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert flags.index("--dnf-normalize") < flags.index("--merge-slots") < flags.index("--lower-attention")
    assert all(len(line) <= 120 for line in text.splitlines())
    assert "\n To kernels:\n  --choose-axis " in text
    assert set(GROUPS) < {entry.name for entry in PASSES}


def test_help_names_the_passes_of_others_briefly_unless_it_is_asked(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    brief = capsys.readouterr().out
    (line,) = (line for line in brief.splitlines() if line.startswith("Passes of xDSL"))
    more = len(get_all_passes()) - 3
    assert line == f"Passes of xDSL: --cse, --canonicalize, --dce and {more} more, see --help-all"
    assert "riscv" not in brief and len(brief.splitlines()) < 80
    assert main(["--help-all"]) == 0
    everything = capsys.readouterr().out
    assert all(name in everything for name in get_all_passes())
    assert set(brief.splitlines()) - set(everything.splitlines()) == {line}


def test_passes_of_other_packages_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def factory() -> None: ...

    factory.__module__ = "another.passes"
    installed = {**Registry.installed().passes, "of-another": factory, "and-more": factory}
    monkeypatch.setattr(Registry, "installed", lambda: Registry({}, installed, {}))  # pyright: ignore[reportArgumentType]
    assert main(["--help"]) == 0
    assert "\nPasses of another:\n  and-more, of-another\n\nPasses of xDSL" in capsys.readouterr().out


def test_a_closed_pipe_is_quiet(spec: str):
    command = f"{sys.executable} -m cmir.tools.cm_opt --help | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.stderr == ""


def test_nothing_heavy_is_imported(spec: str):
    program = (
        "import sys, cmir; heavy = {'torch', 'triton', 'z3', 'numpy'}\n"
        "assert not (heavy | {'xdsl'}) & set(sys.modules), sys.modules.keys()\n"
        f"from cmir.tools.cm_opt import main; assert main(['--cse', {spec!r}]) == 0; main(['--help'])\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert not [m for m in sys.modules if m.startswith('cmir.passes.')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


YARDSTICK = "import inspect\nfor _ in range(8): compile(inspect.getsource(inspect), 'inspect', 'exec')"
"""0.2 s on a quiet machine."""


@pytest.mark.parametrize("flag", ["--cse", "--lower-intervals"])
def test_a_small_file_is_fast(flag: str):
    """Under 0.6 s on a quiet machine. Processor time is what a busy one changes least; it gets a quarter more, and a
    machine on which other work of Python takes longer gets that."""
    spec = str(files("cmir") / "zoo" / "hstu.mlir")

    def seconds(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    tries = ((seconds("-m", "cmir.tools.cm_opt", flag, spec), seconds("-c", YARDSTICK)) for _ in range(5))
    assert any(took < 0.75 * max(1.0, work / 0.2) for took, work in tries)


@pytest.mark.parametrize(("tool", "run", "argv"), [("cm-opt", main, []), ("cm-view", cm_view.main, ["-"])])
def test_a_terminal_is_told_that_it_is_read(
    tool: str,
    run: Callable[[Sequence[str]], int],
    argv: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    control, terminal = os.openpty()
    os.write(control, b"maskspec.spec @m() {\n  maskspec.region @all rows [0, rows) {\n  }\n}\n\x04")
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run(argv) == 0
    os.close(control)
    assert capsys.readouterr().err.startswith(f"{tool}: reading standard input\n")


def test_the_line_that_is_shown_is_the_one_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Form feeds and U+2028 end lines for Python, not for the parser."""
    path = tmp_path / "feed.mlir"
    spec = "maskspec.spec @a() {\n  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= nobody\n  }\n}\n"
    path.write_text(f"// a form feed\f and a \u2028 separator\n{spec}")
    assert main([str(path)]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith(f"{path}:4:5: error: unknown name 'nobody'")
    assert shown[1] == "    maskspec.clause j <= nobody"
