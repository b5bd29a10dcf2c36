"""Where in the user's Python a term, a fact or a Region was written, so that later errors point there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import currentframe
from itertools import islice
from types import FrameType
from typing import ParamSpec, TypeVar

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

from cmir.dialects.expr import ExpressionTooLargeError
from cmir.errors import SourceLocation, SpecError

P = ParamSpec("P")
R = TypeVar("R")
TOO_DEEP = "the term is nested too deeply for the compiler; make it flatter"
_HERE = __name__.rpartition(".")[0]

_written_at: ContextVar[SourceLocation | None] = ContextVar("written_at", default=None)


@contextmanager
def written_at(location: SourceLocation | None) -> Generator[None]:
    """What is made within was written there, whoever makes it: terms of a mask_mod, by the lines of the mask_mod."""
    token = _written_at.set(location)
    try:
        yield
    finally:
        _written_at.reset(token)


def user_frame() -> FrameType | None:
    """The innermost frame that is neither in this package nor in torch, which runs a mask_mod."""
    frame = currentframe()
    while frame is not None and (str(frame.f_globals.get("__name__", "")) + ".").startswith((_HERE, "torch.")):
        frame = frame.f_back
    return frame


def user_location() -> SourceLocation | None:
    """The file and line of the user's expression that is being evaluated, and the column where it begins."""
    if (told := _written_at.get()) is not None:
        return told
    frame = user_frame()
    if frame is None:
        return None
    # One entry for each instruction (two bytes); Python run without positions (-X no_debug_ranges) gives None.
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    line, column = position[0], position[2]
    return SourceLocation(frame.f_code.co_filename, line or frame.f_lineno, 1 if column is None else column + 1)


def not_too_deep(method: Callable[P, R]) -> Callable[P, R]:
    """A method that reads or makes a user's terms: one nested past Python's stack, or doubled again and again, is an
    error at the user's line."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except RecursionError as error:
            raise SpecError(too_deep(error), user_location()) from None

    return checked


def too_deep(error: RecursionError) -> str:
    """What to say of it."""
    return str(error) if isinstance(error, ExpressionTooLargeError) else TOO_DEEP


def attribute(location: SourceLocation | None) -> FileLineColLoc | UnknownLoc:
    """The location as an op carries it."""
    if location is None:
        return UnknownLoc()
    return FileLineColLoc(StringAttr(location.file), IntAttr(location.line), IntAttr(location.column))
