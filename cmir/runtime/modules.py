"""The lowered module of a mask and its Triton source, from the passes or from the on-disk cache of what they gave."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from cmir.dialects.descriptor import PreprocessOp
from cmir.errors import SpecError
from cmir.lowering.triton import lowered, print_module
from cmir.runtime import cache
from cmir.tools import driver
from cmir.tools.registry import Registry


def from_spec(key: str, spec: ModuleOp, test: str) -> tuple[ModuleOp, str]:
    """The module that all passes make of a spec, and its source; `key` is that of the spec's text and of `test`."""
    found = _cached(key)
    return found or _kept(key, lowered(Registry.installed().context(), spec, test))


def packed_from(ir: str, tables: Iterable[Operation]) -> tuple[ModuleOp, str]:
    """The packed form, from the spec, the tables and the tests of a lowered module, whose text is `ir`: the proofs
    have been made."""
    from cmir.passes.pack import Pack

    key = cache.key_of(f"packed\0{ir}")
    if (found := _cached(key)) is not None:
        return found
    context = Registry.installed().context()
    packed = ModuleOp([op.clone() for op in tables])
    Pack().apply(context, packed)
    return _kept(key, lowered(context, packed))


def text_of(module: ModuleOp) -> str:
    """The module as text, as the cache keeps it."""
    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue()


def _kept(key: str, module: ModuleOp) -> tuple[ModuleOp, str]:
    """A lowered module and its source, which the cache now has."""
    triton = print_module(module, next(op for op in module.walk() if isinstance(op, PreprocessOp)))
    cache.write(key, {"ir": text_of(module), "triton": triton})
    return module, triton


def _cached(key: str) -> tuple[ModuleOp, str] | None:
    """The lowered module and its source from the cache, unless there is none that can be read."""
    entry = cache.read(key)
    if entry is None or entry.keys() != {"ir", "triton"}:
        return None
    try:
        return driver.parse(entry["ir"], f"<cached {key}>"), entry["triton"]
    except SpecError:
        return None
