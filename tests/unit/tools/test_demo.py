"""The demo: runs on a bare CPU, says what it did, and fails when anything disagrees."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cmir.runtime import reference
from cmir.tools import demo

REPOSITORY = Path(__file__).parents[3]
INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"


def test_it_runs_without_a_gpu_a_terminal_or_settings(tmp_path: Path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(REPOSITORY), "CMIR_CACHE_DIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    environment |= {"TERM": "dumb", "NO_COLOR": "1"}
    began = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "cmir.tools.demo"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    out = result.stdout
    assert time.perf_counter() - began < 120, "the demo is to take less than 40 s on an idle machine"
    assert "\x1b" not in out and "\r" not in out
    # Every stage, the hooks of the source, the descriptor, the checks.
    for flag in ("dnf-normalize", "extract-intervals", "merge-slots", "transpose", "lower-attention"):
        assert f"--{flag}: " in out
    assert "interval.span [start[i], i + 1)" in out
    assert "def store_row_slots(" in out and "def visible_dkv(" in out
    assert "def preprocess(" not in out
    assert "MetadataError: mask 'hstu': the metadata of mask 1 break the declared fact `start[i] <= i" in out
    assert "WRONG" not in out and "Everything agrees." in out
    (path,) = (Path(line.split()[1]) for line in out.splitlines() if line.startswith("  source "))
    assert path.parent == tmp_path and "def preprocess(" in path.read_text()


@pytest.mark.skipif(not INTERPRETING, reason="the batch of the GPU is not small")
def test_it_fails_if_attention_disagrees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    right = reference.reference_attention
    monkeypatch.setattr(reference, "reference_attention", lambda q, k, v, seen: right(q, k, v * 1.001, seen))
    assert demo.main(["--rows", "20", "--full"]) == 1
    out = capsys.readouterr().out
    assert "WRONG output beside eager attention" in out and "SOMETHING DISAGREES" in out
    assert "def preprocess(" in out  # --full


@pytest.mark.skipif(not INTERPRETING, reason="the batch of the GPU is not small")
def test_it_fails_if_the_compiled_mask_disagrees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from cmir.runtime.mask import CompiledMask

    right = CompiledMask.intervals
    monkeypatch.setattr(CompiledMask, "intervals", lambda *axis, **metadata: right(*axis, **metadata) // 2)
    assert demo.main(["--rows", "20"]) == 1
    assert "WRONG intervals of rows and of columns" in capsys.readouterr().out


def test_it_says_how_commands_get_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def is_there(name: str) -> str | None:
        return "/usr/bin/cm-opt"

    def is_missing(name: str) -> str | None:
        return None

    script = tmp_path / ".venv" / "bin" / "activate"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(demo, "which", is_missing)
    assert demo.activating() == ""
    script.parent.mkdir(parents=True)
    script.touch()
    assert demo.activating() == f"`source {script}`;\n  "
    monkeypatch.chdir(tmp_path)
    assert demo.activating() == "`source .venv/bin/activate`;\n  "
    monkeypatch.setattr(demo, "which", is_there)
    assert demo.activating() == ""


def test_it_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert demo.main([]) == 2
    assert "pip install 'cmir[torch]'" in capsys.readouterr().err


def test_a_sequence_too_short_to_show_anything_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        demo.main(["--rows", "3"])
    assert "--rows: expected at least 16, got 3" in capsys.readouterr().err
