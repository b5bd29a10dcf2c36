"""cmir: a compiler for attention masks.

A mask is written once, as a rule over rows, columns and metadata (text or Python); cmir compiles it to a preprocess
kernel that turns a batch's metadata into an Execution Descriptor, and to attention kernels that read it.

Every name below is imported when it is first used: `import cmir` imports neither xDSL, NumPy, z3 nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cmir.errors import CmirError, MetadataError, ShapeError, SpecError

if TYPE_CHECKING:
    from cmir import layouts, zoo
    from cmir.frontend.mask_mod import from_mask_mod
    from cmir.frontend.spec import MaskSpec
    from cmir.runtime.attention import attention
    from cmir.runtime.compiling import compile
    from cmir.runtime.descriptor import Descriptor
    from cmir.runtime.mask import CompiledMask

__version__ = "0.1.0"

__all__ = [
    "CmirError",
    "CompiledMask",
    "Descriptor",
    "MaskSpec",
    "MetadataError",
    "ShapeError",
    "SpecError",
    "attention",
    "compile",
    "from_mask_mod",
    "layouts",
    "zoo",
]

_LAZY = {
    "MaskSpec": "cmir.frontend.spec",
    "from_mask_mod": "cmir.frontend.mask_mod",
    "compile": "cmir.runtime.compiling",
    "CompiledMask": "cmir.runtime.mask",
    "attention": "cmir.runtime.attention",
    "Descriptor": "cmir.runtime.descriptor",
}


def __getattr__(name: str) -> Any:
    if name in ("layouts", "zoo"):
        return import_module(f"cmir.{name}")
    if name not in _LAZY:
        from difflib import get_close_matches

        close = [] if name.startswith("_") else get_close_matches(name, __dir__(), 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise AttributeError(f"module 'cmir' has no attribute '{name}'{hint}")
    try:
        value = getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        from cmir.errors import missing_torch

        raise missing_torch(error, f"cmir.{name}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "layouts", "zoo"})
