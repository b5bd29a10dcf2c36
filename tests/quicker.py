# pyright: basic
"""Triton's interpreter looks for builtins among all members of its modules at every call of a device function.

Which members are builtins is the same each time, so they are looked for once: the same functions are patched.
"""

import inspect
import sys
from typing import Any


def quicken_interpreter() -> None:
    """Has an effect once the interpreter of Triton is imported, if it is as known; further calls change nothing."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    patch = getattr(interpreter, "_patch_builtin", None)
    if patch is None or patch is patch_builtin or not hasattr(interpreter, "_patch_attr"):
        return
    interpreter._patch_builtin = patch_builtin


BUILTINS: dict[Any, list[str]] = {}
"""The names of a module's or class's builtins, found before the first of them was patched."""


def patch_builtin(package: Any, *how: Any) -> None:
    interpreter: Any = sys.modules["triton.runtime.interpreter"]
    is_builtin = interpreter.tl.core.is_builtin
    if package not in BUILTINS:
        BUILTINS[package] = [name for name, member in inspect.getmembers(package) if is_builtin(member)]
    for name in BUILTINS[package]:
        member = getattr(package, name)
        if is_builtin(member):
            interpreter._patch_attr(package, name, member, *how)
