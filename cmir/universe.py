"""What cmir adds to xDSL: dialects, passes and targets by name, each imported when it is first used.

This module is the `xdsl.universe` entry point, so that `xdsl-opt` knows our names as well. `PASSES` stands in the
order of the pipeline; its help lines are the first lines of the pass docstrings (a test compares them), written here
so that `cm-opt --help` imports no pass.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from xdsl.universe import Universe


class PassEntry(NamedTuple):
    """Where a pass lives, and the line about it in `cm-opt --help`."""

    name: str
    module: str
    class_name: str
    help: str


PASSES = (
    PassEntry("dnf-normalize", "cmir.passes.dnf_normalize", "DnfNormalize", ""),
    PassEntry("extract-intervals", "cmir.passes.extract_intervals", "ExtractIntervals", ""),
    PassEntry("canonicalize-intervals", "cmir.passes.canonicalize_intervals", "CanonicalizeIntervals", ""),
    PassEntry("merge-slots", "cmir.passes.merge_slots", "MergeSlots", ""),
    PassEntry("lower-intervals", "cmir.passes.lower_intervals", "LowerIntervals", ""),
    PassEntry("transpose", "cmir.passes.transpose", "Transpose", ""),
    PassEntry("lower-descriptor", "cmir.passes.lower_descriptor", "LowerDescriptor", ""),
    PassEntry("lower-attention", "cmir.passes.lower_attention", "LowerAttention", ""),
)

DIALECTS = {
    "maskspec": ("cmir.dialects.maskspec", "MaskSpec"),
    "interval": ("cmir.dialects.interval", "Interval"),
    "descriptor": ("cmir.dialects.descriptor", "Descriptor"),
    "attention": ("cmir.dialects.attention", "Attention"),
}

TARGETS = {"triton": ("cmir.lowering.triton", "TritonTarget")}


def _lazy(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)


CMIR = Universe(
    all_dialects={name: _lazy(*where) for name, where in DIALECTS.items()},
    all_passes={entry.name: _lazy(entry.module, entry.class_name) for entry in PASSES},
    all_targets={name: _lazy(*where) for name, where in TARGETS.items()},
)
