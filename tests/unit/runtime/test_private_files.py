# pyright: basic
"""Files that are going to run: in a directory of the user's own, whole or not there, and never a reason to fail."""

import errno
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import cmir
from cmir.runtime import cache, compiling, private_files
from cmir.runtime.loader import load
from cmir.runtime.private_files import cache_directory, write_whole

SPEC = """\
maskspec.spec @m() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CMIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_masks", {})
    return tmp_path / "cache"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(SPEC)
    return path


def entry_of(directory: Path) -> Path:
    (path,) = directory.glob("*.json")
    return path


# The directory.


def test_a_link_is_followed_once(directory: Path, tmp_path: Path) -> None:
    """What is used is where it led when it was checked: another link in its place changes nothing."""
    (tmp_path / "mine").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "mine")
    assert cache_directory() == tmp_path / "mine"


def test_a_link_to_what_others_can_write_is_not_used(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "everybody").mkdir()
    (tmp_path / "everybody").chmod(0o777)
    directory.symlink_to(tmp_path / "everybody")
    assert cache_directory() != tmp_path / "everybody"


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_what_stands_above_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, used: bool) -> None:
    """Who can write above the directory can put another one in its place, unless it is sticky."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)
    monkeypatch.setenv("CMIR_CACHE_DIR", str(above / "cache"))
    assert (cache_directory() == above / "cache") is used


@pytest.mark.parametrize("name", ["no\0name", "x" * 5000], ids=["NUL", "long"])
def test_a_directory_that_cannot_be_is_no_failure(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(private_files, "_wanted", lambda: Path(name))
    assert cache_directory().is_dir()


def test_no_home_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMIR_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    assert cache_directory().is_dir()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_no_failure(directory: Path, spec: Path) -> None:
    directory.mkdir(mode=0o500)
    assert cmir.compile(spec).slots == {"rows": 1, "cols": 1}
    assert not list(directory.iterdir())


# Files.


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(other)
    write_whole(link, b"new")
    assert other.read_text() == "precious"
    assert not link.is_symlink()
    assert link.read_text() == "new"
    assert link.stat().st_mode & 0o777 == 0o600


def test_a_module_is_not_written_through_a_link(directory: Path, tmp_path: Path) -> None:
    source = "ANSWER = 'through a link'\n"
    name = Path(str(load(source).__file__)).name
    (directory / name).unlink()
    other = tmp_path / "other"
    other.write_text("precious")
    (directory / name).symlink_to(other)
    from cmir.runtime import loader

    loader._modules.clear()
    assert load(source).ANSWER == "through a link"
    assert other.read_text() == "precious"


@pytest.mark.parametrize("call", ["mkstemp", "replace"])
def test_a_full_disk_is_no_failure(
    call: str, directory: Path, spec: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Masks compile and modules load, Triton and the reader find their source, and nothing is left behind."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    directory.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile if call == "mkstemp" else os, call, full)
    assert cmir.compile(spec).slots == {"rows": 1, "cols": 1}
    module = load(f"def answer():\n    return {call!r}\n")
    assert module.answer() == call
    assert call in inspect.getsource(module.answer)
    assert not list(directory.iterdir())


def test_no_place_at_all_is_no_failure(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> Path:
        raise FileNotFoundError("No usable temporary directory found")

    for module in (cache, sys.modules["cmir.runtime.loader"]):
        monkeypatch.setattr(module, "cache_directory", nowhere)
    assert cmir.compile(spec).slots == {"rows": 1, "cols": 1}
    assert load("ANSWER = 'nowhere'\n").ANSWER == "nowhere"


# Entries.


def _checked(entry: object) -> str:
    """An entry with the right checksum."""
    return json.dumps({"sha256": cache._checksum(entry), "entry": entry})  # pyright: ignore[reportArgumentType]


DAMAGE = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: "",
    "another letter": lambda whole: whole.replace("def ", "DEF ", 1),
    "not UTF-8": lambda whole: b"\xff" + whole.encode(),
    "no object": lambda whole: "[1, 2]",
    "no entry": lambda whole: '{"sha256": "0"}',
    "no texts": lambda whole: _checked({"ir": 1, "triton": None}),
    "other parts": lambda whole: _checked({"ir": "builtin.module {\n}"}),
    "no IR": lambda whole: _checked({"ir": "no IR", "triton": ""}),
    "nested": lambda whole: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_entry_is_made_anew(damage, directory: Path, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = cmir.compile(spec).source()
    path = entry_of(directory)
    whole = path.read_text()
    damaged = damage(whole)
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    monkeypatch.setattr(compiling, "_masks", {})
    assert cmir.compile(spec).source() == source
    assert path.read_text() == whole


@pytest.mark.parametrize("what", ["cmir", "compiler", "xdsl", "z3-solver", "triton", "python"])
def test_another_version_has_other_keys(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.key_of(SPEC)
    if what == "cmir":
        monkeypatch.setattr(cmir, "__version__", "0.0.0")
    elif what == "python":
        monkeypatch.setattr(sys, "version", "2.7")
    elif what == "compiler":
        monkeypatch.setattr(cache, "PARTS", (*cache.PARTS, "frontend"))
    else:
        monkeypatch.setattr(cache, "installed", lambda name: "0.0.0" if name == what else private_files.installed(name))
    cache.compiler_fingerprint.cache_clear()
    try:
        assert cache.key_of(SPEC) != before
    finally:
        monkeypatch.undo()
        cache.compiler_fingerprint.cache_clear()


def test_a_package_of_another_name_has_no_version() -> None:
    assert private_files.installed("no-such-package-anywhere") == "none"


def test_processes_that_compile_at_once(directory: Path, spec: Path) -> None:
    program = f"import cmir; print(hash(cmir.compile({str(spec)!r}).source()))"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert len({process.communicate()[0] for process in processes}) == 1
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert cache.read(entry_of(directory).stem) is not None
    assert not list(directory.glob("*.tmp"))
