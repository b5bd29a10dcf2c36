"""A package outside of cmir that adds passes and an op to it: installed, `cm-opt` and `xdsl-opt` know them by name.

`UNIVERSE` is what pyproject.toml names under the entry point `xdsl.universe`: names, each with a function that imports
what it names when it is first used.
"""

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _window() -> type[ModulePass]:
    from cmir_extra.window import Window

    return Window


def _require_causal() -> type[ModulePass]:
    from cmir_extra.causal import RequireCausal

    return RequireCausal


def _extra() -> Dialect:
    from cmir_extra.blocks import EXTRA

    return EXTRA


UNIVERSE = Universe(
    all_passes={"window": _window, "require-causal": _require_causal},
    all_dialects={"extra": _extra},
)
