"""Compiled masks on disk: what compiling a spec gave, keyed by the spec's text and by the compiler that read it.

An entry is one JSON file in the private cache directory, written whole or not at all, and carries a checksum of itself:
a truncated, foreign or stale file is compiled anew, never trusted. The key covers the source of the compiler, so that
an edited pass never meets an old result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import cast

import cmir
from cmir.runtime.private_files import cache_directory, installed, write_whole

PACKAGES = ("xdsl", "z3-solver", "triton")
PARTS = ("dialects", "analysis", "interp", "passes", "lowering")


@functools.cache
def compiler_fingerprint() -> str:
    """A digest of the compiler's own source files, and of the versions of what it is run with."""
    versions = [cmir.__version__, sys.version, *(f"{name} {installed(name)}" for name in PACKAGES)]
    digest = hashlib.sha256("\0".join(versions).encode())
    root = Path(cmir.__file__).parent
    for part in PARTS:
        for path in sorted((root / part).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key_of(text: str) -> str:
    """The name of the entry for a spec's text."""
    return hashlib.sha256(f"{compiler_fingerprint()}\0{text}".encode()).hexdigest()[:32]


def read(key: str) -> dict[str, str] | None:
    """The entry, or None if there is none that is whole."""
    try:
        stored = json.loads((cache_directory() / f"{key}.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stored, dict):
        return None
    record = cast(dict[str, object], stored)
    entry = record.get("entry")
    if not isinstance(entry, dict):
        return None
    texts = {name: text for name, text in cast(dict[str, object], entry).items() if isinstance(text, str)}
    return texts if texts == entry and record.get("sha256") == _checksum(texts) else None


def write(key: str, entry: dict[str, str]) -> None:
    """Store an entry; a cache that cannot be written is no reason to fail."""
    text = json.dumps({"sha256": _checksum(entry), "entry": entry})
    with contextlib.suppress(OSError):
        write_whole(cache_directory() / f"{key}.json", text.encode())


def _checksum(entry: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
