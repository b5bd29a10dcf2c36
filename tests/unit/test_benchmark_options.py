"""What the benchmarks are asked for: lengths are read, and what is missing is said in one line."""

import sys
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
