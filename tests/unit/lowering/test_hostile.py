# pyright: basic
"""Whatever things are called, the generated module is the same but for their names: text is never code."""

import ast
import keyword
from collections.abc import Mapping
from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr

import cmir
from cmir.dialects.expr import KEYWORDS
from cmir.errors import SpecError
from cmir.runtime import compiling, loader
from cmir.tools.driver import emit, parse

SPEC = """\
maskspec.spec @{spec}(%{scalar}: index, %{table}: !maskspec.table<row>, %{free}: !maskspec.table<free>) {{
  maskspec.assume 0 <= {scalar} and {scalar} <= rows
  maskspec.assume rows == cols
  maskspec.assume 0 <= {table}[i] and {table}[i] <= i
  maskspec.assume for k in [0, 8) : 0 <= {free}[k]
  maskspec.region @{region} rows [0, {scalar}) {{
    maskspec.clause {free}[0] <= j and j <= i
  }}
  maskspec.region @{region}_2 rows [{scalar}, rows) {{
    maskspec.clause {table}[i] <= j and j <= i
  }}
}}
"""
ROLES = {"spec": "mask", "scalar": "number", "table": "start", "free": "place", "region": "all"}
LENGTH = 24  # metadata of one mask
PREFIXES = ("meta", "stride", "pointer", "length", "value")


def compiled(**names: str) -> str:
    """The generated module of the mask with other names for some of its things."""
    return emit(parse(SPEC.format(**ROLES | names), "hostile.mlir"), "triton")


class _Renamed(ast.NodeTransformer):
    """Names of things that come from a spec as those of another one; no docstrings."""

    def __init__(self, others: Mapping[str, str]) -> None:
        self.names = {f"{prefix}_{name}": f"{prefix}_{other}" for name, other in others.items() for prefix in PREFIXES}

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, str):
                setattr(node, field, self.names.get(value, value))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = "a docstring"
        return super().generic_visit(node)


def shape(source: str, others: Mapping[str, str] | None = None) -> str:
    return ast.dump(_Renamed(others or {}).visit(ast.parse(source)))


@pytest.fixture(scope="module")
def plain() -> str:
    return compiled()


@pytest.fixture(scope="module")
def plain_shape(plain: str) -> str:
    return shape(plain)


def kernel_names(source: str) -> list[str]:
    """What a name of a spec could be taken for: names of the module, and all names of functions that read metadata."""
    tree = ast.parse(source)
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in tree.body:
        nodes = list(ast.walk(function))
        inside = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}
        if isinstance(function, ast.FunctionDef) and any(name.startswith("value_") for name in inside):
            names |= inside | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return sorted(names)


def many(words: list[str]) -> str:
    """The module of a mask with a scalar, a row table or a free table of each of these names."""
    types = ("index", "!maskspec.table<row>", "!maskspec.table<free>")
    facts = ("0 <= {}", "0 <= {}[i]", "for k_ in [0, 8) : 0 <= {}[k_]")
    parameters = ", ".join(f"%{word}: {types[n % 3]}" for n, word in enumerate(words))
    assumptions = "\n".join(f"maskspec.assume {facts[n % 3].format(word)}" for n, word in enumerate(words))
    rule = f"{words[0]} <= j and {words[1]}[i] <= j and {words[2]}[0] <= j"
    region = f"maskspec.region @all rows [0, rows) {{ maskspec.clause {rule} }}"
    return emit(parse(f"maskspec.spec @m({parameters}) {{\n{assumptions}\n{region}\n}}", "many.mlir"), "triton")


def test_names_of_python_triton_and_the_kernels(plain: str) -> None:
    """Every name that a spec may have, as metadata of three kinds: all are told from the module's own."""
    words = [*keyword.kwlist, *keyword.softkwlist, "print", "eval", "exec", "open", "self", "META"]
    words += [*kernel_names(plain), "n" * 200, "meta_start", "stride_start", "length_place", "a__import__", "x____"]
    allowed = [w for w in dict.fromkeys(words) if w[0].isalpha() and w not in KEYWORDS]
    harmless = [f"p{n}" for n in range(LENGTH)]
    expected = shape(many(harmless))
    for start in range(0, len(allowed), LENGTH):
        mine = allowed[start : start + LENGTH]
        mine += [f"more{n}" for n in range(LENGTH - len(mine))]
        assert shape(many(mine), dict(zip(mine, harmless, strict=True))) == expected, mine


@pytest.mark.parametrize("word", ["lambda", "tl", "n" * 5000, "rows"])
def test_names_of_specs_and_regions(word: str, plain_shape: str) -> None:
    for role in ("spec", "region"):
        assert shape(compiled(**{role: word})) == plain_shape


HOSTILE = {
    "quotes": "a\"'b",
    "a docstring's end": '"""\nimport os\n"""',
    "a newline": "a\nimport os",
    "a return": "a\rimport os",
    "other line ends": "a\u2028b\x85c\x0bd\x0ce",
    "a backslash": "a\\",
    "an end of a comment": "a # b",
    "an f-string": "{__import__('os')}",
    "import": "__import__",
    "a look-alike": "nurnbеr",  # a Cyrillic е
    "a letter that NFKC changes": "ſtart",
    "bidi": "a\u202e\u2066b",
    "a zero-width space": "a\u200bb",
    "a path": "../../etc/passwd",
    "a NUL": "a\0b",
    "a space": "a b",
    "nothing": "",
    "a lone surrogate": "a\ud800",
}


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE.keys())
def test_names_that_are_no_identifiers_are_refused(word: str) -> None:
    """By the Python face at the user's line, and by the verifier whatever made the op; the text cannot say them."""
    spec = cmir.MaskSpec("m")
    for declare in (
        cmir.MaskSpec,
        spec.scalar,
        lambda name: spec.static(name, 1),
        lambda name: spec.table(name, per="row"),
        lambda name: spec.constants(name, [1]),
        lambda name: spec.region(name, 0, spec.rows, visible=True),
    ):
        with pytest.raises(SpecError, match=r"identifier \(letters, digits, _; a letter first\)"):
            declare(word)
    for role in ROLES:
        quoted = f'"{word}"' if role in ("spec", "region") else word
        with pytest.raises(SpecError):
            parse(SPEC.format(**ROLES | {role: quoted}), "hostile.mlir")
        module = parse(SPEC.format(**ROLES), "hostile.mlir")
        op = next(o for o in module.walk() if o.name == ("maskspec.region" if role == "region" else "maskspec.spec"))
        if role in ("spec", "region"):
            op.properties["sym_name"] = StringAttr(word)
            with pytest.raises(SpecError, match="an identifier \\(letters, digits, _\\)"):
                emit_verified(module)


def emit_verified(module) -> str:
    from cmir.tools.verifier import verify

    verify(module)
    return emit(module, "triton")


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_texts_become_comments(words: str, plain_shape: str) -> None:
    """The words of a fact and the origins of slots may be anything; in the module they are a line of plain ASCII."""
    module = parse(SPEC.format(**ROLES), "hostile.mlir")
    fact = next(op for op in module.walk() if op.name == "maskspec.assume")
    fact.properties["text"] = StringAttr(words)
    source = emit(module, "triton")
    assert source.isascii()
    assert shape(source) == plain_shape
    compile(source, "generated", "exec")


@pytest.mark.parametrize("words", [HOSTILE[k] for k in HOSTILE if k != "a lone surrogate"])
def test_origins_become_comments(words: str, plain_shape: str) -> None:
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream).print_string_literal(words)
    text = emit(_through_passes(SPEC.format(**ROLES)))
    changed = text.replace('"all.0"', stream.getvalue())
    assert changed.count(stream.getvalue()) >= 2
    source = emit(parse(changed, "hostile.mlir"), "triton")
    assert source.isascii()
    assert shape(source) == plain_shape


def _through_passes(text: str):
    from cmir.tools.driver import run_pipeline

    module = parse(text, "hostile.mlir")
    run_pipeline(module, ["lower-intervals,transpose,choose-axis,lower-descriptor,lower-attention"])
    return module


@pytest.mark.parametrize(
    "name",
    ['\'"""\'.mlir', "a\nimport os\n.mlir", "a\\.mlir", "\u202e.mlir", "__import__('os').mlir", "# -*- coding: x -*-"],
)
def test_names_of_files_are_not_in_the_module(
    name: str, tmp_path: Path, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_masks", {})
    monkeypatch.setenv("CMIR_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / name
    path.write_text(SPEC.format(**ROLES))
    mask = cmir.compile(path)
    assert mask.source() == plain
    monkeypatch.setattr(loader, "_modules", {})
    stored = Path(str(loader.load(mask.source()).__file__))
    assert stored.parent == tmp_path / "cache"
    assert stored.stem.isalnum()
    assert {p.suffix for p in stored.parent.iterdir()} == {".json", ".py"}


def test_values_are_numbers(plain: str) -> None:
    """What stands where a number does is one, or is refused: statics, constants, layouts."""
    text = Path(cmir.zoo.path("clear")).read_text()
    for bad in ("1) + __import__('os'", "'1'", '"1"', "1e3", "1.5", "True"):
        with pytest.raises(SpecError):
            parse(
                text.replace("%radius: index = 8", f"%radius: index = {bad}").replace("= 16", f"= {bad}"), "clear.mlir"
            )
    for bad in ("1", 1.0, True, None, [1]):
        with pytest.raises(SpecError, match="static 'radius' must be an int"):
            cmir.zoo.load("clear", radius=bad)  # pyright: ignore[reportArgumentType]
