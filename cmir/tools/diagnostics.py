"""From any exception to a `SpecError` with a location.

xDSL's own passes and parsers raise many kinds of exceptions, few of which say where. What an exception does not tell,
its traceback does: the innermost op that a function was working on.
"""

from traceback import extract_tb
from types import TracebackType

from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Span

from cmir.dialects.expr import ExpressionTooLargeError
from cmir.errors import SourceLocation, SpecError, locate
from cmir.tools.verifier import one_line


def from_parse_error(error: ParseError) -> SpecError:
    """The same error with its place in file, line and column."""
    references = error.refs if isinstance(error, MultipleSpansParseError) else []
    notes = [(message or "originally here", _place(span)) for span, message in references]
    return SpecError(one_line(error.msg), _place(error.span), notes)


def from_pass_failure(error: Exception, what: str, module: Operation) -> SpecError:
    """The error that a user should see when `what` (e.g. "pass 'cse'") raised `error` while it worked on `module`."""
    place = _op_at_work(error.__traceback__) or locate(module)
    if isinstance(error, SpecError):
        return SpecError(error.message, error.location or place, error.notes)
    if isinstance(error, DiagnosticException):
        return SpecError(one_line(str(error)), place)
    if isinstance(error, ParseError):  # a pass that parses, for instance a pattern given as an option
        return from_parse_error(error)
    if isinstance(error, ExpressionTooLargeError):
        return SpecError(str(error), place)
    if isinstance(error, RecursionError):
        return SpecError(f"the spec is nested too deeply for {what}; make it flatter", place)
    frame = extract_tb(error.__traceback__)[-1]
    raised = SourceLocation(frame.filename, frame.lineno or 1, (frame.colno or 0) + 1)
    return SpecError(
        f"{what} failed: {type(error).__name__}: {one_line(str(error))}",
        place,
        [("raised here; CMIR_DEBUG=1 shows the traceback", raised)],
    )


def _place(span: Span[str] | Span[bytes]) -> SourceLocation:
    return SourceLocation(*span.get_location())


def _op_at_work(traceback: TracebackType | None) -> SourceLocation | None:
    found = None
    while traceback is not None:
        for name in ("op", "self"):
            local = traceback.tb_frame.f_locals.get(name)
            if isinstance(local, Operation):
                found = locate(local) or found
        traceback = traceback.tb_next
    return found
