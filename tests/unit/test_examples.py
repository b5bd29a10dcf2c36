"""The examples run, and the out-of-tree package passes its own tests and is found, installed or loaded."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"


def run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")])}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


# As `python PATH`, with a quick interpreter of Triton's kernels.
QUICKLY = """
import runpy, sys
sys.argv.pop(0)
sys.path[0] = sys.argv[0].rpartition("/")[0]
import torch
from quicker import quicken_interpreter
quicken_interpreter()
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(path: Path):
    if "transformers" in path.name:
        pytest.importorskip("transformers")
    assert "equal" in run("-c", QUICKLY, str(path))


PACKAGE = EXAMPLES / "custom_pass"


def test_the_custom_pass_passes_its_own_tests():
    pytest.importorskip("lit")
    # The package lit has no module to run.
    said = run("-c", "from lit.main import main; main()", "-v", "examples/custom_pass/tests")
    assert f"Passed: {len(list((PACKAGE / 'tests').glob('*.mlir')))}" in said
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/custom_pass/tests")


WINDOWED = ("-m", "cmir.tools.cm_opt", "--dnf-normalize", "--window=size=4", "cmir/zoo/causal.mlir")


def with_installed(folder: Path) -> str:
    """What cm-opt prints where `folder` is a folder of installed packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(folder)])}
    result = subprocess.run(
        [sys.executable, *WINDOWED], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    return result.stdout + result.stderr


def test_the_custom_pass_is_found_by_its_entry_point(tmp_path: Path):
    """As an installer lays it: the package, and beside it what its pyproject.toml says of entry points."""
    shutil.copytree(PACKAGE / "cmir_extra", tmp_path / "cmir_extra")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [f"{name} = {where}\n" for name, where in project["entry-points"]["xdsl.universe"].items()]
    (info / "entry_points.txt").write_text("[xdsl.universe]\n" + "".join(points))
    assert "maskspec.clause j <= i and i < j + 4" in with_installed(tmp_path)


def test_the_custom_pass_is_installed_by_pip(tmp_path: Path):
    pytest.importorskip("setuptools", minversion="77")
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(PACKAGE, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    run("-m", "pip", "install", *options, "--target", str(target), str(source))
    assert "maskspec.clause j <= i and i < j + 4" in with_installed(target)


def test_without_it_the_pass_is_unknown(tmp_path: Path):
    assert with_installed(tmp_path).startswith("cm-opt: error: unknown option '--window'")
