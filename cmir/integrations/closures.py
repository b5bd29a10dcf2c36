# pyright: basic
"""What a mask function is, apart from its data: two closures of one structure are one mask with other metadata.

    structure(f) = (key, tensors)

`key` holds the code of the function and of the functions that it captures, and every number among what they capture;
`tensors` are the tensors that they capture, in the order in which they are met. Equal keys mean that the functions say
the same about their tensors: what was compiled for one serves the other, given the other's tensors.
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import torch

_PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device)


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
        if isinstance(value, _PLAIN):
            return (type(value).__name__, value)
        if isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
            return ("fixed", getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__))
        if id(value) in self._met:
            return ("met", self._met[id(value)][0])
        self._met[id(value)] = len(self._met), value
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return ("tensor", value.dtype, value.dim())
        if isinstance(value, partial):
            return ("partial", *map(self.key_of, (value.func, value.args, value.keywords)))
        if isinstance(value, types.MethodType):
            raise Opaque(f"{value!r} has an object of its own")
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, Mapping):
            return ("dict", *((str(name), self.key_of(x)) for name, x in value.items()))
        if isinstance(value, tuple | list):
            return (type(value).__name__, *map(self.key_of, value))
        raise Opaque(f"a {type(value).__name__} is captured")

    def _function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        names = _names(code)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        outside = {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
        return (code, *map(self.key_of, (cells, outside, function.__defaults__, function.__kwdefaults__)))


def _names(code: types.CodeType) -> set[str]:
    """Names that code looks up, among them all its globals, with those of the functions defined in it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
