# pyright: basic
"""What a mask function is, apart from its data: two closures of one structure are one mask with other metadata.

    structure(f) = (key, tensors)

`key` holds the code of the function and of the functions that it captures, and every number among what they capture;
`tensors` are the tensors that they capture, in the order in which they are met. Equal keys mean that the functions do
the same, up to where they ask for a shape or a value of their tensors. One that asks for none says the same about all
tensors: what was compiled for it serves each function of its key, given that one's tensors.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Hashable
from functools import partial
from typing import Any

import torch

_PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device)
_FIXED = ("builtins", "torch", "math", "operator")
"""Modules whose contents are the same at all times. Any other may hold numbers that change, as may a class."""


class Opaque(Exception):
    """A function captures what this module cannot compare."""


def structure(function: Any) -> tuple[Hashable, list[torch.Tensor]]:
    """(key, tensors) of a function; raises Opaque where it captures something else than numbers, tensors, functions,
    and tuples, lists and dicts of those."""
    walk = _Walk()
    return walk.key_of(function), walk.tensors


class _Walk:
    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self._met: dict[int, tuple[int, Any]] = {}
        """By identity: which value it was, and itself, which keeps the identity its own."""

    def key_of(self, value: Any) -> Hashable:
        if type(value) in _PLAIN:
            return (type(value), value)
        if isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
            return _fixed(value)
        if id(value) in self._met:
            return ("met", self._met[id(value)][0])
        self._met[id(value)] = len(self._met), value
        if isinstance(value, torch.Tensor):
            if vars(value):
                raise Opaque("a tensor has attributes of its own")
            self.tensors.append(value)
            return (type(value), value.dtype, value.device, value.dim())
        if isinstance(value, partial):
            return ("partial", *map(self.key_of, (value.func, value.args, value.keywords)))
        if isinstance(value, types.MethodType):
            raise Opaque(f"{value!r} has an object of its own")
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if type(value) is dict:
            return (dict, *((self.key_of(name), self.key_of(x)) for name, x in value.items()))
        if type(value) in (tuple, list):
            return (type(value), *map(self.key_of, value))
        raise Opaque(f"a {type(value).__name__} is captured")

    def _function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        names = _names(code)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        outside = {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
        parts = (cells, outside, function.__defaults__, function.__kwdefaults__, vars(function))
        return (code, *map(self.key_of, parts))


def _fixed(value: Any) -> Hashable:
    """The name of a module, class or builtin function that is not the user's to change."""
    module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__ or ""
    owner = value.__self__ if isinstance(value, types.BuiltinFunctionType) else None
    if module.partition(".")[0].lstrip("_") not in _FIXED or not isinstance(owner, types.ModuleType | type | None):
        raise Opaque(f"{value!r} may change")
    return ("fixed", module, getattr(value, "__qualname__", value.__name__))


def _names(code: types.CodeType) -> set[str]:
    """Names that code looks up, among them all its globals, with those of the functions defined in it."""
    if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(code)):
        raise Opaque("a function imports")
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
