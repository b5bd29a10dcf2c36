"""Loads generated source as a module: from a private file, so that Triton and the reader find its text.

The file lies in the private cache directory (`cmir.runtime.private_files`), named by a hash of its content. It is
written whole or not at all and compared with the wanted text before use; what runs is always that text itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import cmir
from cmir.runtime.private_files import cache_directory, installed, write_whole

_modules: dict[str, ModuleType] = {}
_lock = threading.Lock()


def load(source: str) -> ModuleType:
    """The module that `source` is; the same text gives the same module within a process."""
    key = hashlib.sha256("\0".join((cmir.__version__, installed("triton"), sys.version, source)).encode()).hexdigest()[
        :32
    ]
    with _lock:
        if key not in _modules:
            _modules[key] = _import(f"cmir_generated_{key}", _stored(f"{key}.py", source), source)
        return _modules[key]


def _stored(name: str, source: str) -> Path:
    """The path of a file that holds exactly `source`; on a full disk, one that is not there."""
    content = source.encode()
    try:
        path = cache_directory() / name
        if not path.is_file() or path.read_bytes() != content:
            write_whole(path, content)
    except OSError:  # what runs is the text, and Triton asks for it where there is no file
        return Path(name)
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
