# pyright: basic
"""Generated modules: loaded once, from a private and exact file."""

import inspect
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cmir.runtime.loader import load
from cmir.runtime.private_files import cache_directory


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CMIR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def unique(name: str, request: pytest.FixtureRequest) -> str:
    """Source that no other test loads: modules are kept for the life of the process."""
    return f"# {request.node.nodeid}\ndef {name}():\n    return 42\n"


def test_loads_once(cache: Path, request: pytest.FixtureRequest) -> None:
    source = unique("answer", request)
    module = load(source)
    assert module.answer() == 42
    assert load(source) is module
    assert load(source + "\n") is not module
    assert "return 42" in inspect.getsource(module.answer)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert Path(str(module.__file__)).read_text() == source
    assert not list(cache.glob("*.tmp"))
    assert not list(cache.rglob("*.pyc"))


@pytest.mark.parametrize("content", ["", "def answer", "raise SystemExit('foreign')"])
def test_rewrites_a_file_that_is_not_the_source(cache: Path, request: pytest.FixtureRequest, content: str) -> None:
    source = unique("answer", request)
    script = f"from cmir.runtime.loader import load; print(load({source!r}).__file__)"
    path = Path(subprocess.check_output([sys.executable, "-c", script], text=True).strip())
    assert path.parent == cache
    path.write_text(content)
    assert load(source).answer() == 42
    assert path.read_text() == source


def test_source_that_fails_leaves_no_module(request: pytest.FixtureRequest) -> None:
    source = f"# {request.node.nodeid}\nraise RuntimeError('broken')\n"
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            load(source)
    assert not {name for name in set(sys.modules) - before if name.startswith("cmir_generated")}


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_not_used(cache: Path, request, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    directory = cache_directory()
    assert directory != cache
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert Path(str(load(unique("answer", request)).__file__)).parent == directory
    assert not list(cache.iterdir())


def test_a_directory_of_another_user_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    assert cache_directory() != cache


def test_a_file_in_the_way_is_no_failure(cache: Path) -> None:
    cache.write_text("")
    assert cache_directory() != cache


def test_the_xdg_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMIR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "cmir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "cmir"


def test_processes_at_once(request: pytest.FixtureRequest) -> None:
    source = unique("answer", request)
    script = f"from cmir.runtime.loader import load; assert load({source!r}).answer() == 42"
    processes = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
