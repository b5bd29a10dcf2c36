"""What is fed to cmir is read, never run: no text of a user's becomes code, but in the places named here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cmir

PACKAGE = Path(cmir.__file__).parent

RUNS = {"eval", "exec", "compile", "__import__", "execfile", "system", "popen", "exec_module", "source_to_code"}
"""Functions that run text, or make code of it; `compile` where it is Python's own."""

UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "runpy", "code", "ctypes"}
"""Modules that run what they read, or reach around the language."""

ALLOWED = {
    # Generated source is a Python module: that is what the compiler is for. It runs the text that it was given.
    ("runtime/loader.py", "source_to_code"),
    ("runtime/loader.py", "exec_module"),
    # The CUDA driver is called by ctypes: two functions, with numbers that cmir made.
    ("runtime/driver.py", "ctypes"),
    # `cm-opt --load file.py` asks for a file to be run, by name.
    ("tools/registry.py", "exec_module"),
}


def _own(tree: ast.AST) -> set[str]:
    """Names that a module imports or defines: not the builtins of that name."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


def uses(text: str) -> Iterator[str]:
    """Every function of `RUNS` that is named, and every module of `UNSAFE` that is imported."""
    tree = ast.parse(text)
    own = _own(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in RUNS - own:
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr in RUNS - {"compile", "eval"}:
            yield node.attr
        elif isinstance(node, ast.Attribute) and node.attr in RUNS:  # re.compile and model.eval() are harmless
            if isinstance(node.value, ast.Name) and node.value.id in ("builtins", "__builtins__"):
                yield node.attr
        elif isinstance(node, ast.keyword) and node.arg == "shell":
            yield "shell"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE:
            yield node.module or ""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_runs_what_it_reads(path: Path):
    name = path.relative_to(PACKAGE).as_posix()
    assert {(name, use) for use in uses(path.read_text())} <= ALLOWED


def test_what_is_allowed_is_used():
    used = {
        (path.relative_to(PACKAGE).as_posix(), use) for path in PACKAGE.rglob("*.py") for use in uses(path.read_text())
    }
    assert used == ALLOWED


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eval('1')", ["eval"]),
        ("f = exec", ["exec"]),
        ("compile(text, 'f', 'exec')", ["compile"]),
        ("import builtins\nbuiltins.eval('1')", ["eval"]),
        ("import os\nos.system('ls')", ["system"]),
        ("import subprocess\nsubprocess.run('ls', shell=True)", ["shell"]),
        ("from pickle import loads", ["pickle"]),
        ("import yaml.loader", ["yaml.loader"]),
        ("import re\nre.compile('x')\nfrom cmir import compile\ncompile('x')\nmodel.eval()", []),
    ],
)
def test_it_would_be_found(text: str, found: list[str]):
    assert list(uses(text)) == found
