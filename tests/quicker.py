# pyright: basic
"""Triton's interpreter repeats at every operation what has the same outcome each time; tests of kernels wait for it.

Here it does such work once. What kernels compute is the interpreter's as before, operation for operation.
"""

import dataclasses
import functools
import inspect
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any


def quicken_interpreter() -> None:
    """Has an effect once Triton or torch is imported, if the interpreter is as known; further calls change nothing."""
    if "torch" in sys.modules and os.environ.get("TRITON_INTERPRET") == "1":
        with suppress(ImportError):
            import_module("triton.runtime.interpreter")  # whoever has tensors may import it to run kernels on them
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    patch = getattr(interpreter, "_patch_builtin", None)
    if patch is None or patch is patch_builtin or not hasattr(interpreter, "_patch_attr"):
        return
    interpreter._patch_builtin = patch_builtin
    for quicken in (skip_unheard_checks, patch_once_a_launch, remember_types):
        with suppress(AttributeError):  # raised before anything is changed: another Triton's interpreter stays as it is
            quicken(interpreter)


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


def skip_unheard_checks(interpreter: Any) -> None:
    """Without `debug`, the asserts that integers do not overflow are computed, in int64, and then dropped."""
    builder: Any = getattr(interpreter, "interpreter_builder", None)
    options: Any = getattr(builder, "options", None)
    if getattr(options, "sanitize_overflow", False) and not getattr(options, "debug", True):
        builder.options = dataclasses.replace(options, sanitize_overflow=False)


def patch_once_a_launch(interpreter: Any) -> None:
    """A device function need not patch `triton.language` again while its kernel has it patched."""
    core, patch, scope = interpreter.tl.core, interpreter._patch_lang, getattr(interpreter, "_LangPatchScope", None)
    if scope is None:
        return
    modules = (interpreter.tl, core)

    def patch_lang(function: Any) -> Any:
        used = [module for module in modules if any(value is module for value in function.__globals__.values())]
        patched = not any(core.is_builtin(member) for member in (core.tensor.__add__, *(m.load for m in used)))
        return scope() if used and patched else patch(function)

    interpreter._patch_lang = patch_lang


def remember_types(interpreter: Any) -> None:
    """What a type has is found once, and what a tensor has of its type; types are compared by identity first."""
    core, semantic = interpreter.tl.core, type(interpreter.interpreter_semantic)
    make_tensor, make_block, equal = core.tensor.__init__, core.block_type.__init__, core.dtype.__eq__
    broadcast, numpy_type = semantic.broadcast_impl_value, interpreter._get_np_dtype
    tensors: dict[tuple[int, ...], dict[str, Any]] = {}
    blocks: dict[tuple[Any, ...], dict[str, Any]] = {}

    def new_tensor(self: Any, handle: Any, type: Any) -> None:
        shape = (*type.shape.values,) if type.is_block() else ()
        if shape not in tensors:
            make_tensor(self, handle, type)
            tensors[shape] = dict(vars(self))
        vars(self).update(tensors[shape], handle=handle, type=type, dtype=type.scalar)

    def new_block(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = (*(shape.values if isinstance(shape, core.tuple) else shape),)
        if not all(type(size) is int for size in sizes):
            return make_block(self, element_ty, shape)
        key = (element_ty.name, sizes)
        if key not in blocks:
            make_block(self, element_ty, shape)
            blocks[key] = dict(vars(self))
        vars(self).update(blocks[key], element_ty=element_ty)

    def same(self: Any, other: Any) -> bool:
        return self is other or equal(self, other)

    def broadcast_values(self: Any, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        a, b = (x.type.shape.values if x.type.is_block() else None for x in (lhs, rhs))
        return (lhs, rhs) if a == b else broadcast(self, lhs, rhs)

    of_scalars = functools.cache(numpy_type)

    core.tensor.__init__, core.block_type.__init__, core.dtype.__eq__ = new_tensor, new_block, same
    semantic.broadcast_impl_value = broadcast_values
    interpreter._get_np_dtype = lambda kind: (of_scalars if type(kind) is core.dtype else numpy_type)(kind)
