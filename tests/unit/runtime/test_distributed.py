# pyright: basic
"""`cmir.attention` in a model that DistributedDataParallel or FSDP spreads over processes: gradients of one process.

Two processes on gloo, each with its half of the batch and of the metadata, against one process with all of it.
"""

import datetime
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import spawn

import cmir

KINDS = ("ddp", "fsdp")
ROWS, HEADS, DIM, WORLD = 20, 2, 16, 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(HEADS * DIM, 3 * HEADS * DIM)
        self.out = nn.Linear(HEADS * DIM, HEADS * DIM)

    def forward(self, x: torch.Tensor, desc: Any) -> torch.Tensor:
        q, k, v = self.qkv(x).view(len(x), ROWS, 3, HEADS, DIM).permute(2, 0, 3, 1, 4)
        return x + self.out(cmir.attention(q, k, v, desc).transpose(1, 2).flatten(2))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and the document that each belongs to."""
    torch.manual_seed(1)
    return torch.randn(WORLD, ROWS, HEADS * DIM), torch.tensor([[0] * 7 + [1] * 13, [0] * 15 + [1] * 5])


def described(documents: torch.Tensor) -> Any:
    spec = cmir.MaskSpec("documents")
    of = spec.table("of", per="free")
    spec.assume(of.nondecreasing())
    spec.region("all", 0, spec.rows, visible=(of[spec.i] == of[spec.j]) & (spec.j <= spec.i))
    return cmir.compile(spec).describe(rows=ROWS, of=documents, tile=(32, 32)).check()


def gradients(model: Any, x: torch.Tensor, documents: torch.Tensor) -> list[torch.Tensor]:
    model(x, described(documents)).square().mean().backward()
    return [p.grad for p in model.parameters()]


def spread(kind: str) -> Any:
    if kind == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(Block())
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(Block(), mesh=init_device_mesh("cpu", (WORLD,)))


def process(rank: int, folder: str) -> None:
    dist.init_process_group(
        "gloo", f"file://{folder}/meet", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=120)
    )
    torch.set_num_threads(1)
    try:
        x, documents = batch()
        own = slice(rank, rank + 1)
        for kind in KINDS:
            found: list[Any] = gradients(spread(kind), x[own], documents[own])
            whole = [g.full_tensor() if hasattr(g, "full_tensor") else g for g in found]
            if rank == 0:
                torch.save(whole, Path(folder) / f"{kind}.pt")
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")
def test_gradients_are_those_of_one_process(tmp_path: Path) -> None:
    assert os.environ.get("TRITON_INTERPRET") == "1"  # of the processes too
    spawn(process, (str(tmp_path),), nprocs=WORLD)
    want = gradients(Block(), *batch())
    for kind in KINDS:
        for got, expected in zip(torch.load(tmp_path / f"{kind}.pt"), want, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)
