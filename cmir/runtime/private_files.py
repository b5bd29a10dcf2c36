"""Where cmir keeps files: a directory of the user's own, whose files are written whole or not at all.

What lies there is run, so it is `$CMIR_CACHE_DIR`, else `cmir` of the XDG cache directory, only if nobody else can have
put a file there: it is the user's, others cannot write to it, nor put another directory in its place. Links in its path
are followed once, when that is checked. Otherwise it is a fresh temporary directory; and where there is room for none,
nothing is kept: a cache that cannot be used is no reason to fail.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def cache_directory() -> Path:
    """The directory for generated files, made if need be: ours alone, else a fresh temporary one.

    Raises:
        OSError: there is no place for a temporary one either.
    """
    try:
        directory = _wanted()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = directory.resolve(strict=True)
        if _private(directory) and os.access(directory, os.W_OK | os.X_OK):
            return directory
    except (OSError, RuntimeError, ValueError):
        pass  # a file in the way, a read-only home or none, a NUL in a name: not a reason to fail
    return _temporary_directory()


def write_whole(path: Path, content: bytes) -> None:
    """Make a file, or replace it in one step: nobody ever reads half of it.

    Raises:
        OSError: it cannot be written; then nothing has changed.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def installed(package: str) -> str:
    """The version of an installed package, for keys; "none" if there is none of that name."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _wanted() -> Path:
    if configured := os.environ.get("CMIR_CACHE_DIR"):
        return Path(configured)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "cmir"


def _private(directory: Path) -> bool:
    """Whether nobody else can have put a file into a directory, or another one in its place."""
    if os.name == "nt":
        return True
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    # Above it, only a sticky directory such as /tmp may be everybody's.
    above = (parent.stat().st_mode for parent in directory.parents)
    return all(not mode & stat.S_IWOTH or mode & stat.S_ISVTX for mode in above)


@functools.cache
def _temporary_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="cmir-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)
