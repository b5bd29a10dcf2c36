"""What the documents show is what happens: their code runs, and prints what they say it prints.

- A ```python block is run, the blocks of a document in one namespace; the ```text block below it is what it prints.
- A ```sh block with lines `$ COMMAND` shows what each command prints, `...` standing for any lines. Others are not run.
- `<!-- file: PATH -->` above a block says that the block stands in that file.
- A ```mlir block with a spec is one that `cm-opt` accepts.

`python tests/unit/test_docs.py` rewrites the shown output, where it has no `...`, and the shown files.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

import pytest

from cmir.tools.driver import parse

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = (
    *("README.md", "CONTRIBUTING.md", "examples/custom_pass/README.md"),
    *sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md")),
)

_BLOCK = re.compile(r"(?:^<!-- file: (\S+) -->\n)?^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A fenced block: its language, its text and where that stands, and the file it is said to come from."""

    language: str
    text: str
    start: int
    stop: int
    file: str | None


def blocks(document: str) -> list[Block]:
    return [Block(m[2], m[3], m.start(3), m.end(3), m[1]) for m in _BLOCK.finditer(document)]


def run_python(sources: list[str]) -> list[str]:
    """What each source prints, run one after another in one namespace."""
    # A process of its own: the examples set what triton reads when it is imported.
    mark = "\0\n"
    script = f"print({mark!r}, end='')\n".join(s + "\n" for s in sources)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TRITON_INTERPRET": "1"}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split(mark)


def run_shell(command: str) -> str:
    """What a command prints, standard error included. `cm-opt` and the others are those of this environment."""
    command = re.sub(r"(?<![\w/-])cm-(opt|view)(?= )", r"python -m cmir.tools.cm_\1", command)
    command = re.sub(r"^lit ", "python -c 'from lit.main import main; main()' ", command)
    command = re.sub(r"\bpython\b", f"'{sys.executable}'", command)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TRITON_INTERPRET": "1"}
    result = subprocess.run(
        ["bash", "-c", command], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    return result.stdout + result.stderr


def transcript(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a ```sh block with what it says they print."""
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines(keepends=True)
        size = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield "".join(lines[:size]), "".join(lines[size:])


def matches(shown: str, printed: str) -> bool:
    pattern = re.escape(_trimmed(shown)).replace(re.escape("...\n"), "(?:.*\n)*?")
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def _trimmed(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def corrected(document: str) -> str:
    """The document with its shown output and its shown files as they are."""
    found = blocks(document)
    new = {id(b): b.text for b in found}
    sources = [b for b in found if b.language == "python" and b.file is None]
    if sources:
        for source, printed in zip(sources, run_python([b.text for b in sources]), strict=True):
            below = next((b for b in found if b.language == "text" and _follows(document, source, b)), None)
            if below is not None:
                if not matches(below.text, printed):
                    new[id(below)] = printed
            else:
                assert printed == "", f"no text block shows what this prints:\n{source.text}\n{printed}"
    for block in found:
        if block.language == "sh":
            for command, shown in transcript(block):
                printed = run_shell(command)
                if not matches(shown, printed):
                    old = f"$ {command}{shown}"
                    blank = "\n" if shown.endswith("\n\n") else ""
                    new[id(block)] = new[id(block)].replace(old, f"$ {command}{printed.rstrip()}\n{blank}")
        if block.file is not None:
            text = (REPOSITORY / block.file).read_text()
            if not block.text or block.text not in text:
                new[id(block)] = text
    for block in reversed(found):
        document = document[: block.start] + new[id(block)] + document[block.stop :]
    return document


def _follows(document: str, first: Block, second: Block) -> bool:
    """Whether nothing stands between two blocks."""
    return re.fullmatch(r"```\s*```\w*\n", document[first.stop : second.start]) is not None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_shows_what_happens(name: str):
    document = (REPOSITORY / name).read_text()
    assert corrected(document) == document


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str):
    assert [link for link in links(name) if not link.exists()] == []


def links(name: str) -> list[Path]:
    """The files that a document links to; links are relative to its own folder."""
    document = (REPOSITORY / name).read_text()
    prose = document
    for block in reversed(blocks(document)):
        prose = prose[: block.start] + prose[block.stop :]
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose) + re.findall(r'src="([^"]+)"', prose)
    return [(REPOSITORY / name).parent / link for link in found if not link.startswith("http")]


def test_every_page_is_reached_from_the_readme():
    reached, fresh = set[str](), {"README.md"}
    while fresh:
        reached |= fresh
        there = {path.resolve() for name in fresh for path in links(name) if path.suffix == ".md"}
        fresh = {str(path.relative_to(REPOSITORY)) for path in there} - reached
    assert [name for name in DOCUMENTS if name not in reached] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_specs_that_are_shown_are_specs(name: str):
    for block in blocks((REPOSITORY / name).read_text()):
        if block.language == "mlir" and "maskspec.spec" in block.text:
            parse(block.text, name)


def test_the_pictures_are_what_their_script_draws(tmp_path: Path):
    matplotlib = pytest.importorskip("matplotlib")
    from cmir.view.picture import description, save

    script = REPOSITORY / "docs" / "make_images.py"
    scope = run_path(str(script), run_name="make_images")
    for picture in scope["PICTURES"]:
        scene, text = picture.scene(), picture.file.read_text()
        assert description(scene, picture.tile) in text, f"python docs/make_images.py draws {picture.file.name} anew"
        if f"matplotlib {matplotlib.__version__}" in text:  # another version draws it a little differently
            save(scene, str(tmp_path / "again.svg"), picture.tile)
            assert (tmp_path / "again.svg").read_text() == text


def test_what_a_document_must_not_show_is_found():
    wrong = "```python\nprint(1)\n```\n```text\n2\n```\n```sh\n$ echo a; echo b; echo c\na\n...\nd\n```\n"
    right = "```python\nprint(1)\n```\n```text\n1\n```\n```sh\n$ echo a; echo b; echo c\na\nb\nc\n```\n"
    assert corrected(wrong) == right
    assert corrected(right) == right
    assert matches("a\n...\nc\n", "a\nb\nb\nc\n")
    assert not matches("a\n...\nc\n", "a\nb\n")


def test_a_block_that_fails_is_reported():
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        corrected("```python\n1 / 0\n```\n")
    with pytest.raises(AssertionError, match="no text block"):
        corrected("```python\nprint(1)\n```\n")


if __name__ == "__main__":
    for name in DOCUMENTS:
        path = REPOSITORY / name
        path.write_text(corrected(path.read_text()))
