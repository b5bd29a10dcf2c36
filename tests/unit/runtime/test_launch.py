# pyright: basic
"""The short way to launch: straight to what Triton compiled, never with arguments that it was not compiled for."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from cmir.runtime import launch as launching
from cmir.runtime.driver import MOVES
from cmir.runtime.launch import launch

CPU = torch.device("cpu")
NAMES = ["x", "n", "stride", "SIZE", "FLAG"]
CONSTANT = {"stride", "SIZE", "FLAG"}


class Kernel:
    """Stands for a JIT function: notes what Triton was asked to compile and launch, and what was launched directly."""

    def __init__(self) -> None:
        self.arg_names = NAMES
        self.params = [SimpleNamespace(is_constexpr=name in CONSTANT) for name in NAMES]
        self.through_triton: list[tuple] = []
        self.direct: list[tuple] = []

    def __getitem__(self, grid):
        def run(*arguments, **named):
            self.through_triton.append((grid, arguments, named))
            return Compiled(self)

        return run


class Compiled:
    """Of no CUDA kernel, so that later launches are Triton's too."""

    kinds: ClassVar[dict[str, str]] = {}

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.src = SimpleNamespace(signature=self.kinds)
        self.metadata = SimpleNamespace(target=SimpleNamespace(backend="hip"))

    def __getitem__(self, grid):
        return lambda *arguments, stream: self.kernel.direct.append((grid, arguments))


@pytest.fixture
def kernel(monkeypatch) -> Kernel:
    monkeypatch.setattr(launching, "interpreting", lambda: False)
    monkeypatch.setattr(launching, "_ready", {})
    monkeypatch.setattr(launching, "current_stream", lambda device: 0)
    return Kernel()


def go(kernel: Kernel, *arguments, SIZE=128, FLAG=False, num_warps=4, grid=(1, 1, 1), device=CPU) -> None:
    launch(kernel, grid, arguments, {"SIZE": SIZE, "FLAG": FLAG}, {"num_warps": num_warps}, device)


def test_the_second_launch_goes_straight_to_the_compiled_kernel(kernel) -> None:
    x, y = torch.zeros(64), torch.ones(64)
    go(kernel, x, 48, 7)
    go(kernel, y, 64, 7, grid=(5, 2, 1))
    assert kernel.through_triton == [((1, 1, 1), (x, 48, 7), {"SIZE": 128, "FLAG": False, "num_warps": 4})]
    assert kernel.direct == [((5, 2, 1), (y.data_ptr(), 64, 7, 128, False))]


def addresses(arguments) -> tuple:
    return tuple(x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments)


BASE = (torch.zeros(64), 48, 7)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((torch.zeros(64, dtype=torch.float16), 48, 7), {}),
        ((torch.zeros(65)[1:], 48, 7), {}),  # not aligned
        ((BASE[0], 1, 7), {}),
        ((BASE[0], 47, 7), {}),
        ((BASE[0], 2**31, 7), {}),
        ((BASE[0], -(2**31) - 16, 7), {}),
        ((BASE[0], 2.5, 7), {}),
        ((BASE[0], True, 7), {}),
        ((BASE[0], 48, 8), {}),  # a compile-time constant among the arguments
        (BASE, {"SIZE": 64}),
        (BASE, {"FLAG": True}),
        (BASE, {"num_warps": 8}),
        (BASE, {"device": torch.device("cuda", 1)}),
    ],
)
def test_what_triton_compiles_apart_is_never_mixed_up(kernel, arguments, named) -> None:
    go(kernel, *BASE)
    go(kernel, *arguments, **named)
    assert len(kernel.through_triton) == 2
    assert kernel.direct == []
    go(kernel, *arguments, **named)
    go(kernel, *BASE)
    assert len(kernel.through_triton) == 2
    assert [sent[1][:3] for sent in kernel.direct] == [addresses(arguments), addresses(BASE)]


def test_kernels_do_not_share_what_was_compiled(kernel) -> None:
    other = Kernel()
    go(kernel, *BASE)
    go(other, *BASE)
    assert len(kernel.through_triton) == len(other.through_triton) == 1


def test_a_direct_launch_has_addresses_and_no_number_that_was_compiled_in(kernel, monkeypatch) -> None:
    sent: list[tuple] = []

    def direct_of(compiled, arguments):
        assert [x if x is not MOVES else "moves" for x in arguments] == ["moves", 1, "moves"]
        return lambda grid, stream, moving: not sent.append((grid, stream, moving))

    monkeypatch.setattr(launching, "direct_of", direct_of)
    kinds = {"x": "*fp32", "n": "constexpr", "stride": "i32", "SIZE": "constexpr", "FLAG": "constexpr"}
    monkeypatch.setattr(Compiled, "kinds", kinds)
    x, y = torch.zeros(64), torch.zeros(64)
    go(kernel, x, 1, 7)
    go(kernel, y, 1, 7, grid=(5, 2, 1))
    assert sent == [((5, 2, 1), 0, [y.data_ptr(), 7])]
    assert kernel.direct == []
