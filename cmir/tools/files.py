"""Reading a tool's input and writing its output, with errors that name the file."""

import os
import stat
import sys
import tempfile

from cmir.errors import CmirError, SourceLocation, SpecError


def read_input(path: str, tool: str) -> tuple[str, str]:
    """The name (for messages) and the text of a file; `-` is standard input, of which a terminal is told.

    Raises:
        CmirError: the file cannot be read, or is not UTF-8.
    """
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            if sys.stdin.isatty():
                print(f"{tool}: reading standard input", file=sys.stderr, flush=True)
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise CmirError(f"cannot read '{name}': {error.strerror}") from error
    try:
        return name, data.decode("utf-8").removeprefix("\N{BOM}")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        place = SourceLocation(name, before.count(b"\n") + 1, column)
        raise SpecError(f"not UTF-8: byte 0x{data[error.start]:02x}", place) from error


def write_output(path: str, text: str) -> None:
    """Write a file in one step, so that nobody ever sees half of it; `-` is standard output.

    Raises:
        CmirError: the file cannot be written; one that was there before is unchanged.
    """
    try:
        if path == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        elif os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "w", encoding="utf-8") as file:  # a device or a pipe: nothing to replace
                file.write(text)
        else:
            _replace(os.path.realpath(path), text)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "<stdout>" if path == "-" else path
        raise CmirError(f"cannot write '{name}': {error.strerror}") from error


def _replace(path: str, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".cm-opt-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes a private file; give it the mode that open() would have.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
