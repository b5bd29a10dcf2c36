"""A pass is right if the IR means after it what it should: masks compared on metadata that satisfy the facts.

check_pass(text, "dnf-normalize,window{size=4}", want=lambda mask, i, j, env: mask & (i - j < 4), load=["window.py"])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from cmir.analysis.facts import facts_of
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.interval import TableOp
from cmir.dialects.maskspec import SpecOp
from cmir.interp.domain import Value
from cmir.interp.masks import spec_mask, table_mask
from cmir.interp.preprocess import kernel_mask

if TYPE_CHECKING:
    import numpy as np
    from xdsl.context import Context

    Want = Callable[["np.ndarray", "np.ndarray", "np.ndarray", Mapping[str, Value]], "np.ndarray"]

TRIES = 100
"""Draws in a row that may fail before the facts are taken to be too hard to satisfy."""

LARGE = 1000
"""Rows or columns beyond which comparing one mask takes seconds, its kernels minutes."""

TILE = (4, 3)
"""Of kernels: small, so that small masks have tiles of every state."""


def check_pass(
    text: str,
    passes: str,
    want: Want | None = None,
    *,
    load: Sequence[str] = (),
    statics: Mapping[str, int] | None = None,
    draws: int = 20,
    size: int = 20,
    seed: int = 0,
) -> ModuleOp:
    """Run passes over a spec, and compare what the IR means with what it should mean.

    Compared are the spec, every interval table and every attention kernel of the result, each as a mask.

    Args:
        text: a module with one `maskspec.spec`.
        passes: a pipeline, as `cm-opt -p` takes it.
        want: the mask that is right after the passes, from the mask before (bool [rows, cols]), `i` [rows, 1],
            `j` [1, cols] and the metadata; by default the same mask.
        load: Python files to load passes from, as `cm-opt --load` does.
        statics: other values for statics of the spec: small ones, `{"window": 5}`, so that masks of `size` rows have
            pairs beyond them. A static that is longer than every mask that is drawn is warned of.
        draws, size, seed: how many draws, of about how many rows and columns, and from which seed.

    Returns:
        The module after the passes.

    Raises:
        AssertionError: some pair is visible and should not be, or the other way round; the message gives the pair, the
            metadata and a command that explains it. Or the facts are too hard to satisfy by drawing.
        SpecError: a pass refused the spec, or it has no such static.

    Warns:
        UserWarning: a static is longer than all masks drawn, so what depends on it is hardly tested; or the facts ask
            for masks of thousands of rows, which takes minutes.
    """
    import numpy as np

    from cmir.analysis.sampling import draw
    from cmir.tools import driver
    from cmir.tools.pipeline import parse_passes
    from cmir.tools.registry import Registry

    registry = Registry.installed()
    for path in load:
        registry.load_file(path)
    context = registry.context()
    before = _spec(_parsed(text, context, statics))
    module = _parsed(text, context, statics)
    driver.run_pipeline(module, parse_passes(passes, registry.passes), context)
    facts, rng = facts_of(_spec(module)), np.random.default_rng(seed)
    done = failed = longest = 0
    while done < draws:
        env = draw(facts, rng, size)
        if env is None:
            failed += 1
            assert failed < TRIES, f"{done} of {draws} draws; the facts of @{facts.name} are hard to satisfy by drawing"
            continue
        failed, done = 0, done + 1
        length = max(int(env["rows"]), int(env["cols"]))
        if length > LARGE >= longest:
            _warn_of_large_masks(before, length)
        longest = max(longest, length)
        mask = spec_mask(before, env)
        i, j = np.ogrid[: mask.shape[0], : mask.shape[1]]
        right = mask if want is None else want(mask, i, j, env)
        for what, got in _masks(module, env):
            _compare(what, got, right, env, statics)
    _warn_of_long_statics(before, longest)
    return module


def _parsed(text: str, context: Context, statics: Mapping[str, int] | None) -> ModuleOp:
    """The module, with other values for some statics of its spec."""
    from xdsl.rewriter import Rewriter

    from cmir.runtime.compiling import with_statics
    from cmir.tools import driver

    module = driver.parse(text, "spec.mlir", context)
    if statics:
        Rewriter.replace_op(spec := _spec(module), with_statics(spec, statics))
    return module


def _warn_of_long_statics(spec: SpecOp, longest: int) -> None:
    """Say which statics no mask reached, so that a pass that is wrong beyond them would not be found."""
    long = {p.name: p.value for p in spec.parameters if p.value is not None and p.value > longest > 0}
    if long:
        given = ", ".join(f"{name} = {value}" for name, value in long.items())
        shorter = {name: max(2, longest // 4) for name in long}
        warnings.warn(
            f"no mask that was drawn has more than {longest} rows or columns, and {given}: what depends on that is "
            f"hardly tested; give check_pass(..., statics={shorter})",
            stacklevel=3,
        )


def _warn_of_large_masks(spec: SpecOp, length: int) -> None:
    """Say, before it takes minutes, that the facts ask for a large mask, and which statics may make it a small one."""
    smaller = {p.name: max(2, p.value // 8) for p in spec.parameters if p.value is not None}
    warnings.warn(
        f"the facts of @{spec.sym_name.data} ask for masks of {length} rows or columns: comparing them takes minutes; "
        + (f"give smaller statics, check_pass(..., statics={smaller})" if smaller else "state facts of shorter ones"),
        stacklevel=3,
    )


def _spec(module: ModuleOp) -> SpecOp:
    specs = [op for op in module.walk() if isinstance(op, SpecOp)]
    assert len(specs) == 1, f"expected one maskspec.spec, found {len(specs)}"
    return specs[0]


def _masks(module: ModuleOp, env: Mapping[str, Value]) -> Iterator[tuple[str, np.ndarray]]:
    """Everything in the module that means a mask."""
    yield "the spec", spec_mask(_spec(module), env)
    for op in module.walk():
        if isinstance(op, TableOp):
            yield f"table @{op.sym_name.data}", table_mask(op, env)
    for preprocess in [op for op in module.walk() if isinstance(op, PreprocessOp)]:
        for op in module.walk():
            if isinstance(op, KernelOp):
                yield f"kernel @{op.sym_name.data}", kernel_mask(op, preprocess, env, TILE)


def _compare(
    what: str, got: np.ndarray, right: np.ndarray, env: Mapping[str, Value], statics: Mapping[str, int] | None
) -> None:
    import numpy as np

    from cmir.view.metadata import Metadata

    wrong = np.argwhere(got != right)
    if len(wrong):
        i, j = (int(x) for x in wrong[0])
        told = "sees" if got[i, j] else "does not see"
        should = "should not" if got[i, j] else "should"
        words = " ".join(Metadata(dict(env), tuple(env)).arguments())
        where = f", with statics {dict(statics)}" if statics else ""
        raise AssertionError(
            f"{what}: row {i} {told} column {j}, and {should} ({len(wrong)} pairs are wrong); "
            f"cm-opt --explain={i},{j} {words} shows it{where}"
        )
