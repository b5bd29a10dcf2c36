"""Loads generated source as a module: from a private file, so that Triton and the reader find its text.

The file lies in `$CMIR_CACHE_DIR`, else in `cmir` of the XDG cache directory, named by a hash of its content. It is
written whole or not at all and compared with the wanted text before use; what runs is always that text itself.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
import threading
from importlib.machinery import SourceFileLoader
from importlib.metadata import version
from pathlib import Path
from types import CodeType, ModuleType

import cmir

_modules: dict[str, ModuleType] = {}
_lock = threading.Lock()


def load(source: str) -> ModuleType:
    """The module that `source` is; the same text gives the same module within a process."""
    key = hashlib.sha256("\0".join((cmir.__version__, version("triton"), source)).encode()).hexdigest()[:32]
    with _lock:
        if key not in _modules:
            _modules[key] = _import(f"cmir_generated_{key}", _stored(f"{key}.py", source), source)
        return _modules[key]


def cache_directory() -> Path:
    """The directory for generated files, made if need be: ours alone, else a fresh temporary one."""
    configured = os.environ.get("CMIR_CACHE_DIR")
    if configured:
        directory = Path(configured)
    else:
        cache = os.environ.get("XDG_CACHE_HOME")
        directory = (Path(cache) if cache else Path.home() / ".cache") / "cmir"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _private(directory) and os.access(directory, os.W_OK | os.X_OK):
            return directory
    except OSError:
        pass  # a file in the way, a read-only home: not a reason to fail
    return _temporary_directory()


def _private(directory: Path) -> bool:
    """Whether nobody else can have put a file there: what it holds is going to run."""
    if os.name == "nt":
        return True
    status = directory.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def _temporary_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="cmir-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _stored(name: str, source: str) -> Path:
    """The path of a file that holds exactly `source`."""
    directory = cache_directory()
    path, content = directory / name, source.encode()
    try:
        if path.read_bytes() == content:
            return path
    except OSError:
        pass  # not there yet, or not readable: written below
    handle, temporary = tempfile.mkstemp(prefix=name, suffix=".tmp", dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


class _Loader(SourceFileLoader):
    """Runs the text it was given, not what the file or a bytecode cache may say by now."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        super().__init__(name, str(path))
        self.text = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.text.encode(), self.path)

    def get_source(self, fullname: str) -> str:
        return self.text


def _import(name: str, path: Path, source: str) -> ModuleType:
    loader = _Loader(name, path, source)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
