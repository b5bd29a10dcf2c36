# pyright: basic
"""Small cases for compute-sanitizer (sanitize.sh): every kernel once or twice, tables and bits, good metadata and bad.

CMIR_SANITIZE=triton,gluon says with which backends; by default those that are available.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from support import BACKENDS, BF16, DEVICE, attend_with, make_tensors, missing_backend, step

import cmir
from cmir import zoo

DIM = 64


def descriptors() -> list[cmir.Descriptor]:
    """Masks by rows, by columns, by bits; a pack; metadata that break their facts, at the ends of their range."""
    n, rng = 150, np.random.default_rng(0)
    start = torch.arange(n, dtype=torch.int32, device=DEVICE) // 7 * 7
    made = [
        zoo.load("causal").describe(rows=n, device=DEVICE),
        zoo.load("global_window_causal").describe(rows=n, cols=130, device=DEVICE, tile=(64, 32)),
        zoo.load("strided").describe(rows=n, device=DEVICE),
        zoo.load("hstu").describe(rows=n, history=40, start=start.clamp(min=40)),
        zoo.load("random_eviction").describe(rows=n, **_eviction(n, rng)),
        zoo.load("causal").describe(rows=n, cu_seqlens=torch.tensor([0, 3, 3, 90, 140], device=DEVICE)),
    ]
    for low, high in ((-(2**31), 2**31), (-5, n + 5)):
        wild = torch.as_tensor(rng.integers(low, high, n), dtype=torch.int32, device=DEVICE)
        made.append(zoo.load("hstu").describe(rows=n, history=wild[:1], start=wild[None]))
        made.append(zoo.load("causal").describe(rows=n, cu_seqlens=wild[:9]))
    return made


def _eviction(n: int, rng: np.random.Generator) -> dict[str, Any]:
    names = [p.name for p in zoo.load("random_eviction").signature.parameters]
    return {name: torch.as_tensor(rng.integers(0, n, n), dtype=torch.int32, device=DEVICE) for name in names}


def main() -> None:
    """Runs all cases with all backends."""
    asked = os.environ.get("CMIR_SANITIZE", ",".join(BACKENDS)).split(",")
    for name in asked:
        if missing := missing_backend(name):
            print(f"skipped {name}: {missing}")
            continue
        attend = attend_with(name)
        for desc in descriptors():
            if name == "gluon" and desc.tile != (128, 128):  # tiles that its kernels do not take
                continue
            found = step(attend, desc, make_tensors(1, (2, 1), desc.rows, desc.cols, DIM, BF16))
            torch.cuda.synchronize()
            print(name, desc, float(found[0].float().norm()))


if __name__ == "__main__":
    main()
