# pyright: basic
"""FlashMask's form of random specs: where one is proved, it says the mask, whatever the metadata.

CMIR_FUZZ=2000 tries that many specs instead of a few, CMIR_FUZZ_SEED=1 others.
"""

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from differential import spec_in, stages, tables_in
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_specs import specs

from cmir.analysis.facts import facts_of
from cmir.analysis.sampling import sample
from cmir.errors import CmirError, SpecError
from cmir.interp.masks import spec_mask, table_intervals
from cmir.runtime.flashmask import FlashMask, form_of, to_flashmask
from cmir.tools.driver import parse

REFUSED = ("clauses in disjunctive normal form", "this fact never holds", "anything could be proved")
FOUND: dict[tuple[bool, int] | None, int] = {}


def decoded(flash: FlashMask, rows: int) -> np.ndarray:
    """What a column hides, by PaddlePaddle's documentation."""
    columns = flash.startend_row_indices[0, 0].tolist()
    seen = np.ones((rows, len(columns)), dtype=bool)
    for j, r in enumerate(columns):
        has_end = len(r) == (2 if flash.causal else 4)
        seen[r[0] : r[1] if has_end else rows, j] = False
        if flash.causal:
            seen[: max(0, j - (len(columns) - rows)), j] = False
        else:
            seen[slice(r[2], r[3]) if has_end else slice(0, r[1]), j] = False
    return seen


@seed(int(os.environ.get("CMIR_FUZZ_SEED", "0")))
@settings(
    max_examples=int(os.environ.get("CMIR_FUZZ", "30")),
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]  an enumeration, iterated
)
@given(specs())
def check_one(text: str) -> None:
    surface = spec_in(parse(text, "surface.mlir"))
    try:
        *_, (_, module) = stages(text)
        facts = facts_of(spec_in(module))
        draws = sample(facts, count=12, seed=1, size=12)
    except SpecError as error:
        assert any(reason in error.message for reason in REFUSED), error.message
        return
    table = next(t for t in tables_in(module) if t.axis.data == "cols")
    try:
        form = form_of(table, facts, "random")
    except CmirError:
        FOUND[None] = FOUND.get(None, 0) + 1
        return
    FOUND[form.causal, form.numbers] = FOUND.get((form.causal, form.numbers), 0) + 1
    for draw in draws:
        want = spec_mask(surface, draw.env)
        columns = table_intervals(table, draw.env)
        desc: Any = SimpleNamespace(
            rows=want.shape[0], cols=want.shape[1], masks=1, batch=(), device="cpu",
            col_table=torch.from_numpy(np.array(columns, dtype=np.int32))[None] if len(columns) else None,
            signature=SimpleNamespace(name="random"),
        )  # fmt: skip
        assert np.array_equal(decoded(to_flashmask(desc, form), want.shape[0]), want)


def test_a_form_that_is_proved_says_the_mask() -> None:
    check_one()
    assert len(FOUND) >= 3, FOUND
