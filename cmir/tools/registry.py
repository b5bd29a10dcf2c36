"""What can be named on a command line: dialects, passes and targets, each imported when it is first used.

A registry starts with those of xDSL, of cmir and of other installed packages (entry point `xdsl.universe`);
`Registry.load_file` adds what a Python file defines.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, Self

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from cmir.errors import CmirError, SourceLocation, SpecError
from cmir.universe import CMIR


@dataclass(frozen=True)
class Registry:
    """Factories by name; `loaded` names the passes that files brought in."""

    dialects: dict[str, Callable[[], Dialect]]
    passes: dict[str, Callable[[], type[ModulePass]]]
    targets: dict[str, Callable[[], type[Target]]]
    loaded: list[str] = field(default_factory=list[str])
    files: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The file that brought in a (kind, name)."""

    @classmethod
    def installed(cls) -> Self:
        """A new registry of everything installed; loading files into it leaves other registries alone."""
        universe = _installed()
        return cls(
            # Run from a checkout that is not installed, cmir is not among the entry points.
            {**CMIR.all_dialects, **universe.all_dialects},
            {**CMIR.all_passes, **universe.all_passes},
            {**CMIR.all_targets, **universe.all_targets},
        )

    def context(self, *, allow_unregistered: bool = False) -> Context:
        """An xDSL context that knows every dialect of the registry; none is imported yet."""
        context = Context(allow_unregistered=allow_unregistered)
        for name, factory in self.dialects.items():
            context.register_dialect(name, factory)
        return context

    def load_file(self, path: str) -> None:
        """Run a Python file and register every pass and target class, and every dialect, that it defines.

        Raises:
            CmirError: if the file cannot be run, or defines a name of cmir's, of xDSL's or of another file. One that
                another installed package brings is replaced: that is how a package is worked on.
        """
        module = _run_file(path)
        for thing in list(vars(module).values()):
            if isinstance(thing, Dialect):
                # A dialect that the file only imports is registered under its own name already.
                if thing.name not in self.dialects or self.dialects[thing.name]() is not thing:
                    self._add(self.dialects, "dialect", thing.name, thing, path)
            elif isinstance(thing, type) and thing.__module__ == module.__name__ and not inspect.isabstract(thing):
                if issubclass(thing, ModulePass):
                    self._add(self.passes, "pass", thing.name, thing, path)
                    self.loaded.append(thing.name)
                elif issubclass(thing, Target):
                    self._add(self.targets, "target", thing.name, thing, path)

    def _add(self, table: dict[str, Callable[[], Any]], kind: str, name: str, thing: object, path: str) -> None:
        owner = None if name not in table else self._owner(kind, name, table[name])
        if owner is not None:
            raise CmirError(
                f"'{path}' defines the {kind} '{name}', a name that is taken by {owner}; give yours another name"
            )
        table[name] = lambda: thing
        self.files[kind, name] = path

    def _owner(self, kind: str, name: str, factory: Callable[[], Any]) -> str | None:
        """Who has a name for good: another file, cmir or xDSL; None: a package that a file may stand in for."""
        if (kind, name) in self.files:
            return f"'{self.files[kind, name]}'"
        package = _package(factory)
        return package if package in ("cmir", "xdsl") else None

    def passes_of_packages(self) -> dict[str, list[str]]:
        """The passes that are neither cmir's nor loaded from a file, by the package that brings them."""
        out: dict[str, list[str]] = {}
        for name in sorted(set(self.passes) - set(CMIR.all_passes) - set(self.loaded)):
            out.setdefault(_package(self.passes[name]), []).append(name)
        return out


def _package(factory: Callable[[], Any]) -> str:
    """Who brings a factory; those of cmir's universe have no module of their own."""
    return getattr(factory, "__module__", "cmir").partition(".")[0]


@cache
def _installed() -> Universe:
    try:
        return Universe.get_multiverse()
    except Exception as error:
        raise CmirError(f"an installed package has a broken 'xdsl.universe' entry point: {error}") from error


def _run_file(path: str) -> ModuleType:
    name = f"cmir_loaded_{Path(path).stem}"
    if not Path(path).is_file():
        raise CmirError(f"cannot load '{path}': no such file")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CmirError(f"cannot load '{path}': not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        place = SourceLocation(path, error.lineno or 1, error.offset or 1)
        raise SpecError(f"cannot load '{path}': {error.msg}", place) from error
    except Exception as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == spec.origin]
        place = SourceLocation(path, lines[-1] or 1, 1) if lines else None
        raise SpecError(f"cannot load '{path}': {type(error).__name__}: {error}", place) from error
    return module
