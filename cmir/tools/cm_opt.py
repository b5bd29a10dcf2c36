"""`cm-opt`: read MLIR, run passes, print the result, as `mlir-opt` does.

`main` is the command; `command_line` parses its arguments, `driver` does the work. Errors go to standard error as
`file:line:col: error: message` with the source line and a caret, and the exit code is 1; `CMIR_DEBUG=1` adds the
traceback. Remarks of passes look the same and fail nothing.
"""

import gc
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.targets.mlir import MLIRTarget

from cmir.errors import CmirError, Remark, SpecError, add_source, listening
from cmir.tools.command_line import CommandLine, explain, help_text, parse_arguments
from cmir.tools.driver import Observer, emit, parse, run_pipeline
from cmir.tools.expected import check_expectations
from cmir.tools.files import read_input, write_output
from cmir.tools.pipeline import parse_passes, parse_target
from cmir.tools.proving import prover_of
from cmir.tools.registry import Registry


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cm-opt` with the given arguments (by default the command line's) and return its exit code."""
    if argv is None:
        gc.disable()  # a process of its own, over in a moment: collecting would be a tenth of it
    return run_tool("cm-opt", lambda: _run(sys.argv[1:] if argv is None else argv))


def run_tool(tool: str, run: Callable[[], int]) -> int:
    """The exit code of a tool: what `run` returns, or 1 with what it raised said as an error message."""
    try:
        try:
            return run()
        finally:
            sys.stdout.flush()  # of --help too: a closed pipe is caught here, at exit it is not
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        _report(error, tool)
        return 1


def _run(argv: Sequence[str]) -> int:
    registry = Registry.installed()
    line = parse_arguments(argv, registry)
    if (text := _information(line, registry)) is not None:
        sys.stdout.write(text)
        return 0

    passes = [pass_ for text in line.pipeline for pass_ in parse_passes(text, registry.passes)]
    target = parse_target(line.options.get("--target", "mlir"), registry.targets)
    if isinstance(target, MLIRTarget):
        generic, locations = "--print-op-generic" in line, "--print-debuginfo" in line
        target = replace(target, print_generic_format=generic, print_debuginfo=locations)
    context = registry.context(allow_unregistered="--allow-unregistered-dialect" in line)

    name, text = read_input(line.input, "cm-opt")
    if "--explain-slots" in line:
        from cmir.tools.explain_slots import explain_slots

        sys.stdout.write(explain_slots(parse(text, name, context), context))
        return 0
    if line.cell is not None:
        sys.stdout.write(_explain_cell(line, name, text, passes, context))
        return 0
    if only := next((flag for flag in ("--rows", "--cols", "--meta", "--seed") if flag in line), None):
        raise CmirError(f"option '{only}' goes with --explain=I,J")
    pieces = list(_split(text)) if "--split-input-file" in line else [(1, text)]
    results: list[str | SpecError] = []
    remarks: list[Remark] = []
    verify = "--verify-diagnostics" in line
    for first_line, piece in pieces:
        try:
            with listening(remarks.append if verify else _print_remark):
                module = parse(piece, name, context, first_line=first_line)
                run_pipeline(module, passes, context, observer=_Tracer(line))
                results.append(emit(module, target, context))
        except SpecError as error:
            results.append(error)
            if not verify:
                _report(error)

    errors = [result for result in results if isinstance(result, SpecError)]
    if verify:
        add_source(name, text)  # of which each piece announced its own part
        wrong = check_expectations(name, text, errors, remarks)
        for error in wrong:
            _report(error)
        return 1 if wrong else 0
    if errors and "--output-file" in line:
        return 1
    outputs = ("" if isinstance(result, SpecError) else result for result in results)
    write_output(line.options.get("--output-file", "-"), "// -----\n".join(outputs))
    return 1 if errors else 0


def _information(line: CommandLine, registry: Registry) -> str | None:
    """The text of the options that ask for one, instead of a compilation."""
    if "--help" in line or "--help-all" in line:
        return help_text(registry, everything="--help-all" in line)
    if "--version" in line:
        from importlib.metadata import version

        import cmir

        return f"cmir {cmir.__version__} (xDSL {version('xdsl')})\n"
    if "--explain" in line and line.cell is None:
        return explain(line.options["--explain"], registry)
    return None


def _explain_cell(line: CommandLine, name: str, text: str, passes: Sequence[ModulePass], context: Context) -> str:
    """Why a row of the mask, as the passes leave it, sees a column or does not."""
    from cmir.view.cell import explain as explain_cell
    from cmir.view.load import lower
    from cmir.view.metadata import parse_metadata

    assert line.cell is not None
    lowered = lower(text, name, before=passes, context=context)
    given = parse_metadata(line.metadata)
    seed = line.number("--seed") or 0
    metadata = lowered.metadata(line.number("--rows"), line.number("--cols"), given, seed)
    if metadata.drawn:
        print(metadata.said(seed), file=sys.stderr)
    return f"{explain_cell(lowered.scene(metadata), *line.cell)}\n"


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The pieces between lines that begin with `// -----`, each with the number of its first line."""
    first_line = 1
    for piece in re.split(r"^// -----[^\n]*\n?", text, flags=re.MULTILINE):
        yield first_line, piece
        first_line += piece.count("\n") + 1


class _Tracer(Observer):
    """Prints the IR, the times and the proofs that the command line asks for to standard error."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self._started = 0.0
        self._prover = prover_of(line.options.get("--prove"))

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        if "--print-ir-before-all" in self._line:
            self._dump("Before", pass_, module)
        self._prover.before(pass_, module)
        self._started = perf_counter()

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        seconds = perf_counter() - self._started
        if "--time-passes" in self._line:
            print(f"// {seconds * 1e3:8.2f} ms  {pass_}", file=sys.stderr)
        if "--print-ir-after-all" in self._line:
            self._dump("After", pass_, module)

    def verified(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._prover.verified(pass_, module)

    def _dump(self, when: str, pass_: ModulePass, module: ModuleOp) -> None:
        print(f"// -----// IR Dump {when} {pass_} //----- //\n{emit(module)}", file=sys.stderr)


def _print_remark(remark: Remark) -> None:
    print(remark.render(), file=sys.stderr)


def _report(error: Exception, tool: str = "cm-opt") -> None:
    if os.environ.get("CMIR_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, SpecError) and error.location is not None:
        text = error.render()
    elif isinstance(error, CmirError):
        text = f"{tool}: error: {error}"
    else:
        text = f"{tool}: internal error: {type(error).__name__}: {error} (CMIR_DEBUG=1 shows the traceback)"
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
