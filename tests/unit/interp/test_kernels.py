"""Kernel stages under NumPy say what the generated kernels say, of metadata that break facts too."""

from typing import Any

import numpy as np
import pytest
import torch
from differential import words  # pyright: ignore[reportMissingImports]
from xdsl.dialects.builtin import ModuleOp

import cmir
from cmir import zoo
from cmir.analysis.sampling import sample
from cmir.dialects.attention import KernelOp
from cmir.dialects.descriptor import PreprocessOp
from cmir.interp.domain import TableValue, Value
from cmir.interp.preprocess import TileLists, kernel_mask, slot_table, status_word, tile_lists, tile_states
from cmir.runtime.mask import CompiledMask
from cmir.tools.driver import parse

TILE = 16, 16

# Facts of every kind: over scalars, rows, columns and entries; searches in tables that facts say rise.
SEARCH = """
maskspec.spec @search(%s: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>) {
  maskspec.assume 0 <= s and s <= rows
  maskspec.nondecreasing t
  maskspec.assume c[j] <= rows
  maskspec.assume for e in [0, 4) : 0 <= f[e]
  maskspec.nondecreasing c
  maskspec.nondecreasing f
  maskspec.region @a rows [0, s) {
    maskspec.clause t[i] <= j and j <= i
  }
  maskspec.region @b rows [s, rows) {
    maskspec.clause f[i] <= j and c[j] <= i
    maskspec.clause j == 0
  }
}
"""
# Slot lists of every kind of table, read at numbers known and not known; facts about them, and about two free tables.
LISTS = """
maskspec.spec @lists(%lo: !maskspec.table<row x 3>, %hi: !maskspec.table<row x 3>, %c: !maskspec.table<col x 2>,
    %f: !maskspec.table<free x 2>, %g: !maskspec.table<free>, %s: index, %g0: index) {
  maskspec.assume not exists t in [0, 2] : hi[i, t] < lo[i, t]
  maskspec.assume c[j, 0] <= rows and 0 <= s and s <= rows
  maskspec.assume for e in [0, 30) : f[e, 0] <= f[e, 1]
  maskspec.assume for e in [0, 30) : 0 <= g[e]
  maskspec.nondecreasing lo
  maskspec.assume 1 <= g0
  maskspec.region @a rows [0, s) {
    maskspec.clause j floordiv g0 == i floordiv g0 and j mod g0 < 3
    maskspec.clause lo[i, 0] <= j and j < hi[i, 0]
    maskspec.clause lo[i, 1] <= j and j < hi[i, 1]
    maskspec.clause lo[i, 2] <= j and j < hi[i + 1, 2]
    maskspec.clause lo[i - 1, i mod 3] == j
  }
  maskspec.region @b rows [s, rows) {
    maskspec.clause f[i floordiv 2, 0] <= j and j < f[i floordiv 2, s - 3]
    maskspec.clause g[i] == j
  }
}
"""
# (mask, statics, draws)
MASKS = {
    "hstu": ({}, 6),
    "hstu_meta": ({"context": 3, "window": 5, "full": 4}, 4),
    "shared_prompt": ({}, 6),
    "clear": ({"radius": 3, "height": 6, "width": 7, "text": 4}, 1),
    "search": ({}, 6),
    "lists": ({}, 6),
    "unbounded": ({}, 4),  # by column, without the fact that f rises
}


def broken(env: dict[str, Value], rng: np.random.Generator) -> dict[str, Value]:
    """The same lengths; some scalars and entries are anything."""
    out: dict[str, Value] = {}
    for name, value in env.items():
        if isinstance(value, TableValue):
            values = value.values.copy()
            where = rng.random(values.shape) < rng.choice([0.02, 0.1, 0.5])
            values[where] = rng.integers(-50, 80, int(where.sum()))
            out[name] = TableValue(values, value.base)
        else:
            out[name] = value if name in ("rows", "cols") or rng.random() < 0.7 else int(rng.integers(-50, 80))
    return out


def tensors(env: dict[str, Value]) -> dict[str, Any]:
    """Metadata as tensors, so that no fact is checked before the kernel runs."""
    return {
        name: int(value)
        if name in ("rows", "cols")
        else torch.as_tensor(value.values if isinstance(value, TableValue) else int(value))
        for name, value in env.items()
    }


def check_against_kernel(mask: CompiledMask, module: ModuleOp, env: dict[str, Value]) -> int:
    """Everything that the kernel stores; returns the status."""
    preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
    desc = mask.describe(**tensors(env), tile=TILE)
    for axis in ("rows", "cols"):
        if preprocess.slots_of(axis) is not None:
            table = desc.view(f"{axis[:-1]}_table")
            np.testing.assert_array_equal(slot_table(preprocess, axis, env), table[0].numpy(), axis)
        states = tile_states(preprocess, axis, env, TILE)
        states = states if axis == "rows" else states.T
        got = TileLists(*(desc.view(f"{axis[:-1]}_{field}")[0].numpy() for field in ("count", "index", "order")))
        want = tile_lists(states)
        np.testing.assert_array_equal(got.count, want.count)
        np.testing.assert_array_equal(got.order, want.order)
        for (partial, full), listed, wanted in zip(got.count, got.index, want.index, strict=True):
            assert listed[:partial].tolist() == wanted[:partial].tolist()
            # Full tiles come in any order.
            assert sorted(listed[len(listed) - full :]) == wanted[len(wanted) - full :].tolist()
    word = status_word(preprocess, env)
    assert int(desc.status[0]) == word
    return word


@pytest.mark.parametrize("name", MASKS)
def test_the_kernel_stores_what_the_stage_means(name: str, tmp_path: Any) -> None:
    statics, draws = MASKS[name]
    texts = {"search": SEARCH, "unbounded": SEARCH.replace("maskspec.nondecreasing f\n", "\n"), "lists": LISTS}
    if name in texts:
        path = tmp_path / "mask.mlir"
        path.write_text(texts[name])
        mask = cmir.compile(path)
    else:
        mask = zoo.load(name, **statics)
    assert (mask.slots["cols"] is None) == (name in ("unbounded", "lists"))
    module = parse(mask.ir, "after.mlir")
    rng = np.random.default_rng(3)
    seen: set[int] = set()
    for drawn in sample(mask.facts, count=draws, seed=5, size=40):
        if not all(len(drawn.env[table].values) for table in ("f", "g") if table in drawn.env):
            continue  # describe takes no empty table
        for env in (dict(drawn.env), broken(dict(drawn.env), rng)):
            try:
                seen.add(check_against_kernel(mask, module, env) >> 32)
            except AssertionError as error:
                raise AssertionError(f"where {words(type(drawn)(env))}") from error
    assert 0 in seen and (len(seen) > 1 or not mask.facts.parameters), seen


def test_a_live_kernel_tests_the_slots_that_touch_the_tile() -> None:
    mask = zoo.load("clear", radius=4, height=9, width=9)
    module = parse(mask.ir, "after.mlir")
    preprocess = next(op for op in module.walk() if isinstance(op, PreprocessOp))
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    assert {k.visible.mode.data for k in kernels} == {"live"}
    length = {"rows": 81 + 512, "cols": 81 + 512}
    dense = mask.dense(**length)
    for kernel in kernels:
        np.testing.assert_array_equal(kernel_mask(kernel, preprocess, length, (32, 16)), dense, kernel.role.data)
