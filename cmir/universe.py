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


GROUPS = {
    "lint": "Looking at a spec",
    "layout": "From a rule to the intervals of every row",
    "transpose": "To columns, and to packs",
    "choose-axis": "To kernels",
}
"""The title in `cm-opt --help` of the passes that begin with this one."""


PASSES = (
    PassEntry(
        "lint",
        "cmir.passes.lint",
        "Lint",
        "Warn of parts of rules, Regions, metadata and facts that change nothing, unseen columns.",
    ),
    PassEntry(
        "check-regions",
        "cmir.passes.check_regions",
        "CheckRegions",
        "Refuse a spec whose Regions may overlap, with a counterexample in numbers.",
    ),
    PassEntry(
        "layout",
        "cmir.passes.layout",
        "Layout",
        "Rewrite a spec for tokens that are stored in another order: patches, shards, residues.",
    ),
    PassEntry(
        "dnf-normalize",
        "cmir.passes.dnf_normalize",
        "DnfNormalize",
        "Rewrite every rule as a disjunction of clauses; fold statics and constant tables.",
    ),
    PassEntry(
        "extract-intervals",
        "cmir.passes.extract_intervals",
        "ExtractIntervals",
        "Solve every clause for the column: one span per clause, or per repetition of it.",
    ),
    PassEntry(
        "canonicalize-intervals",
        "cmir.passes.canonicalize_intervals",
        "CanonicalizeIntervals",
        "Simplify endpoints under the facts of the spec and drop empty spans.",
    ),
    PassEntry(
        "merge-slots",
        "cmir.passes.merge_slots",
        "MergeSlots",
        "Merge spans that provably touch, overlap or exclude each other; number the slots.",
    ),
    PassEntry(
        "lower-intervals",
        "cmir.passes.lower_intervals",
        "LowerIntervals",
        "Run the six passes from a rule to the fewest intervals per row.",
    ),
    PassEntry("transpose", "cmir.passes.transpose", "Transpose", "Derive the intervals of rows that see each column."),
    PassEntry(
        "pack",
        "cmir.passes.pack",
        "Pack",
        "Put many sequences into one row of tokens: compose the tables with cumulative lengths.",
    ),
    PassEntry(
        "choose-axis",
        "cmir.passes.choose_axis",
        "ChooseAxis",
        "Decide what each kernel tests: the row table, the column table or packed bits.",
    ),
    PassEntry(
        "lower-descriptor",
        "cmir.passes.lower_descriptor",
        "LowerDescriptor",
        "Build the preprocess kernel: metadata in, Execution Descriptor out.",
    ),
    PassEntry(
        "lower-attention",
        "cmir.passes.lower_attention",
        "LowerAttention",
        "Build the attention kernels as structure: loops over tiles, visibility tests chosen.",
    ),
)

DIALECTS = {
    "maskspec": ("cmir.dialects.maskspec", "MaskSpec"),
    "interval": ("cmir.dialects.interval", "Interval"),
    "descriptor": ("cmir.dialects.descriptor", "Descriptor"),
    "attention": ("cmir.dialects.attention", "Attention"),
}

TARGETS = {
    "gluon": ("cmir.lowering.gluon", "GluonTarget"),
    "triton": ("cmir.lowering.triton", "TritonTarget"),
}


def _lazy(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)


CMIR = Universe(
    all_dialects={name: _lazy(*where) for name, where in DIALECTS.items()},
    all_passes={entry.name: _lazy(entry.module, entry.class_name) for entry in PASSES},
    all_targets={name: _lazy(*where) for name, where in TARGETS.items()},
)
