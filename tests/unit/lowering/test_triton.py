"""The generated source: golden files for what a mask decides, and nothing of a spec in it but numbers and names."""

import ast
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cmir
from cmir import zoo
from cmir.lowering.hooks import hook_names
from cmir.lowering.triton import PARTS, skeleton

GOLDEN = Path(__file__).parents[2] / "golden"
ROOT = Path(__file__).parents[3]
MASKS: list[tuple[str, dict[str, int]]] = [
    ("causal", {}),
    ("hstu", {}),
    ("hstu_meta", {}),
    ("shared_prompt", {}),
    ("clear", {"radius": 2, "height": 8, "width": 8, "text": 5}),
    ("strided", {"stride": 8}),
]
IDS = [name for name, _ in MASKS]


@functools.cache
def printed(name: str) -> str:
    """The module of one of MASKS."""
    statics = dict(MASKS)[name]
    return cmir.compile(Path(zoo.__file__).with_name(f"{name}.mlir"), statics=statics).source("triton")


def functions(source: str) -> dict[str, str]:
    """Top-level functions of a module by name, decorators included."""
    lines = source.splitlines()
    out: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            out[node.name] = "\n".join(lines[start : node.end_lineno])
    return out


def hooks() -> set[str]:
    return set(hook_names(skeleton(PARTS)))


def generated(source: str) -> str:
    """What a mask decides: the docstring and the hooks."""
    head = source[: source.index("import triton")]
    return head + "\n\n".join(text for name, text in functions(source).items() if name in hooks()) + "\n"


@pytest.mark.parametrize("name", IDS)
def test_golden(name: str) -> None:
    """`CMIR_UPDATE_GOLDEN=1 pytest tests/unit/lowering` rewrites the files; read the difference."""
    text = generated(printed(name))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("CMIR_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


def test_the_rest_is_the_skeletons() -> None:
    source = functions(zoo.load("causal").source("triton"))
    skeletons = functions(skeleton(PARTS))
    assert source.keys() == skeletons.keys()
    same = [name for name in skeletons if name not in hooks() and "META" not in skeletons[name]]
    assert len(same) > 10
    for name in same:
        assert source[name] == skeletons[name], name


@pytest.mark.parametrize("name", IDS)
def test_formatted_and_standing_alone(name: str) -> None:
    source = printed(name)
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "--diff", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    imports = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert {a.name for n in imports for a in n.names} == {"triton", "triton.language"}
    assert "META" not in source and "# hook" not in source


@pytest.mark.parametrize("name", IDS)
def test_every_generated_line_says_where_it_came_from(name: str) -> None:
    source = functions(printed(name))
    for hook in ("store_row_slots", "store_col_slots", "row_hull", "pair_visible", "byte_visible"):
        body = source[hook].split("):\n", 1)[1].splitlines()
        search = re.compile(
            r"\s+(first_\d+\w* =|while first_\d+_steps)"
        )  # the lines under the noted first line of a search
        for before, line in zip(["", *body], body, strict=False):  # a note that does not fit stands on the line above
            notes = [word in text for word in ("# slot", "# hull", "# pair", "# its slots") for text in (line, before)]
            plain = any(word in line for word in ("value_", "= wide(", "tl.store", "return ", "pass"))
            told = any(notes) or plain
            assert told or search.match(line), f"{hook}: {line}"


def test_deterministic(tmp_path: Path) -> None:
    program = (
        "import cmir.zoo; import hashlib; "
        "print(hashlib.sha256(cmir.zoo.load('hstu_meta').source('triton').encode()).hexdigest())"
    )
    texts = set[str]()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "CMIR_CACHE_DIR": str(tmp_path / seed), "PYTHONPATH": str(ROOT)}
        texts.add(
            subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
        )
    assert len(texts) == 1


@pytest.mark.parametrize(
    "name", ["tl", "triton", "z", "table", "value_a", "at_1", "lambda", "None", "print", "mask", "preprocess"]
)
def test_names_of_python_are_harmless(name: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.mlir"
    path.write_text(f"""maskspec.spec @{name}(%{name}: index, %{name}2: !maskspec.table<row>) {{
  maskspec.region @{name} rows [0, {name}) {{
    maskspec.clause j < {name} and {name}2[i] <= j
  }}
}}
""")
    mask = cmir.compile(path)
    import torch

    desc = mask.describe(rows=5, **{name: 3, f"{name}2": torch.tensor([0, 1, 2, 0, 0])}, tile=(16, 16)).check()
    assert desc.area.tolist() == [3 + 2 + 1]


HOSTILE = "x\\0A@triton.jit\\0Adef evil(): import os\\22\\22\\22"


@pytest.mark.parametrize(
    "text",
    [
        f'maskspec.spec @"{HOSTILE}"() {{\n}}\n',
        f'maskspec.spec @a() {{\n  maskspec.region @"{HOSTILE}" rows [0, rows) {{\n  }}\n}}\n',
        f'maskspec.spec @a() {{\n  maskspec.constants @"{HOSTILE}" [1]\n}}\n',
        '"maskspec.spec"() <{sym_name = "a", names = ["b); import os #"], statics = [""]}> '
        "({\n^bb0(%x: index):\n}) : () -> ()\n",
    ],
)
def test_hostile_names_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.mlir"
    path.write_text(text)
    with pytest.raises(cmir.SpecError, match="identifier"):
        cmir.compile(path)


def test_hostile_words_in_hand_written_ir_stay_words(tmp_path: Path) -> None:
    """The kernels can be printed from any stage, so strings that the passes did not write may arrive there."""
    from cmir.tools import driver

    text = f"""descriptor.preprocess @p of @m () {{
  descriptor.slots rows (%i) {{
    %0 = arith.constant 0 : index
    descriptor.endpoints [%0, %i) from "{HOSTILE}"
  }}
  descriptor.fact 1 "{HOSTILE}" over scalar {{
    %1 = maskspec.rows
    %2 = maskspec.cols
    %3 = arith.cmpi eq, %1, %2 : index
    descriptor.holds %3
  }}
}}
"""
    source = driver.emit(driver.parse(text), "triton")
    assert "evil" not in functions(source) and "import os" not in {ast.unparse(n) for n in ast.walk(ast.parse(source))}
