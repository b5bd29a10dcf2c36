"""The masks that are measured: the closed area, FlexAttention's mask_mod and cmir's rule say the same pairs."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.masks import SUITES, Case

LENGTH = 1024
EVERY = {name: make for suite in SUITES.values() for name, make in suite.items()}


@pytest.mark.parametrize("name", EVERY)
def test_every_way_to_say_a_mask_agrees(name: str) -> None:
    import torch

    make: Callable[[int, str], Case] = EVERY[name]
    case = make(LENGTH, "cpu")
    place = torch.arange(case.tokens)
    shown = case.mask_mod(None, None, place[:, None], place[None, :])
    dense = torch.broadcast_to(shown, (case.tokens, case.tokens)).numpy()
    assert dense.sum() == case.area
    metadata = {k: v for k, v in case.metadata.items() if k != "max_seqlen"}
    rule = case.compiled.dense(rows=case.tokens, cols=case.tokens, **metadata)
    np.testing.assert_array_equal(rule, dense)
    if case.order is not None:
        assert case.raster is not None
        raster = case.raster(None, None, place[:, None], place[None, :]).numpy()
        order = case.order.numpy()
        np.testing.assert_array_equal(raster[order][:, order], dense)
