"""What the benchmarks are asked for: lengths are read, and what is missing is said in one line."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import operator, packed

PARSERS: dict[str, Callable[[list[str]], Any]] = {"operator": operator.parse, "packed": packed.parse}


@pytest.mark.parametrize("name", PARSERS)
def test_lengths(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert PARSERS[name](["--device", "cpu", "--lengths", "1K,100,32k"]).lengths == [1024, 100, 32768]
    for wrong in ("1M", "", "0", "-1K", "4096;8192"):
        with pytest.raises(SystemExit):
            PARSERS[name](["--device", "cpu", f"--lengths={wrong}"])
        said = f"error: argument --lengths: {wrong!r}: expected numbers of tokens, as in 4096,32K\n"
        assert capsys.readouterr().err.endswith(said)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", PARSERS)
def test_no_gpu(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        PARSERS[name]([])
    assert ended.value.code == 1
    expected = f"python -m benchmarks.{name} needs a GPU that torch sees; torch {torch.__version__} sees none\n"
    assert capsys.readouterr().err == expected


def test_a_peer_that_is_not_prepared_in_time_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process begins anew without it: a kernel that hangs, or a compiler, ends with nothing less."""
    begun: list[list[str]] = []
    monkeypatch.setattr(operator.os, "execv", lambda _, arguments: begun.append(arguments))
    cell = ["--mask=causal", "--lengths=64", "--device=cpu", "--peers=cudnn,fa4,cmir-triton", "--patience=0.05"]
    monkeypatch.setattr(sys, "argv", ["operator", *cell])
    options = operator.parse()
    with operator.Patience("fa4", options, operator.Clock(100)):
        time.sleep(0.5)
    with operator.Patience("cudnn", options, operator.Clock(100)):
        pass
    ((_, module, name, *arguments),) = begun
    assert (module, name) == ("-m", "benchmarks.operator")
    again = operator.parse(arguments)
    assert (again.peers, again.given_up) == (["cudnn", "cmir-triton"], ["fa4"])
    assert (again.lengths, again.mask) == ([64], ["causal"])
    assert again.budget < 100
    # Of several cells in one process none begins anew.
    several = operator.parse([*cell, "--lengths=64,128"])
    with operator.Patience("fa4", several, operator.Clock(100)):
        time.sleep(0.2)
    assert len(begun) == 1
