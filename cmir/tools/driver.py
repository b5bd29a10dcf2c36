"""Parse, run passes, print: what `cm-opt` does, for Python callers too.

    module = parse(text, "spec.mlir")
    run_pipeline(module, ["dnf-normalize", "cse"])
    print(emit(module, "triton"))

Everything that is wrong with the input is raised as a `SpecError` that knows its place.
"""

from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Protocol, runtime_checkable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError
from xdsl.utils.target import Target

from cmir.errors import CmirError, SpecError, add_source
from cmir.tools.diagnostics import from_parse_error, from_pass_failure
from cmir.tools.located_parser import LocatedParser
from cmir.tools.pipeline import parse_passes, parse_target
from cmir.tools.registry import Registry
from cmir.tools.verifier import verify


@runtime_checkable
class NamedPipeline(Protocol):
    """A pass that stands for a sequence of passes; they are run, printed and verified one by one."""

    def expand(self) -> Iterable[ModulePass]: ...


class Observer:
    """Told about every pass that runs; the methods do nothing unless overridden."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """`pass_` is about to run."""

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """`pass_` has run; its result is not verified yet."""

    def verified(self, pass_: ModulePass, module: ModuleOp) -> None:
        """What `pass_` left is valid."""


def parse(text: str, name: str = "<string>", context: Context | None = None, *, first_line: int = 1) -> ModuleOp:
    """Parse and verify one module; every op gets its location.

    Args:
        text: the module, in the pretty or the generic syntax.
        name: the file name that locations and errors carry.
        context: the dialects to know; all installed ones by default.
        first_line: the line of the file on which `text` begins.

    Raises:
        SpecError: the text does not parse, or an op does not verify.
    """
    text = "\n" * (first_line - 1) + text
    add_source(name, text)
    try:
        module = LocatedParser(context or Registry.installed().context(), text, name).parse_module()
    except ParseError as error:
        raise from_parse_error(error) from error
    verify(module)
    return module


def run_pipeline(
    module: ModuleOp,
    passes: Iterable[ModulePass | str],
    context: Context | None = None,
    *,
    observer: Observer | None = None,
) -> None:
    """Run passes over `module` in place, and verify it after each.

    Args:
        module: a module that verifies.
        passes: pass objects, or pipeline text such as `"cse,merge-slots"`.
        context: what the passes may ask for; all installed dialects by default.
        observer: is told before and after every pass.

    Raises:
        SpecError: a pass failed, or left something that does not verify.
    """
    context = context or Registry.installed().context()
    observer = observer or Observer()
    for pass_ in _flatten(passes):
        observer.before(pass_, module)
        try:
            pass_.apply(context, module)
        except Exception as error:
            raise _failure(error, f"pass '{pass_.name}'", module) from error
        observer.after(pass_, module)
        try:
            verify(module)
        except SpecError as error:
            raise SpecError(
                f"pass '{pass_.name}' left invalid IR: {error.message}", error.location, error.notes
            ) from error
        observer.verified(pass_, module)


def emit(module: ModuleOp, target: Target | str = "mlir", context: Context | None = None) -> str:
    """`module` as the source text of a target, e.g. `"triton"`; `"mlir"` is the IR itself.

    Raises:
        SpecError: the target cannot say this module.
    """
    if isinstance(target, str):
        target = parse_target(target, Registry.installed().targets)
    stream = StringIO()
    try:
        target.emit(context or Registry.installed().context(), module, stream)
    except Exception as error:
        raise _failure(error, f"target '{target.name}'", module) from error
    return stream.getvalue().rstrip("\n") + "\n"


def _flatten(passes: Iterable[ModulePass | str]) -> Iterator[ModulePass]:
    for pass_ in passes:
        if isinstance(pass_, str):
            yield from _flatten(parse_passes(pass_, Registry.installed().passes))
        elif isinstance(pass_, NamedPipeline):
            yield from _flatten(pass_.expand())
        else:
            yield pass_


def _failure(error: Exception, what: str, module: ModuleOp) -> CmirError:
    if isinstance(error, CmirError) and not isinstance(error, SpecError):
        return error
    return from_pass_failure(error, what, module)
