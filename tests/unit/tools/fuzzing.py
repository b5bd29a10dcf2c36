"""Mutants of the texts in the zoo and in the lit tests: what a parser must survive, deterministically.

    for text in mutants(seed=0, count=100): ...

A mutant is one to three small accidents in a text that was right (or wrong in a known way): a token is lost, doubled,
moved or replaced by one of another file, a character flips, the end is missing, brackets pile up, a number is huge, an
invisible or a foreign letter slips in.
"""

import random
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

LIT = Path(__file__).parents[2] / "lit"
LONGEST = 6_000
"""Characters of a text: the largest lit files are cut where they are split anyway."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|[%@!#^]?[A-Za-z_][\w.$]*|\d+|//[^\n]*|\s+|[-<>=!]=|->|.', re.DOTALL)
_NUMBERS = ("0", "-1", "2147483647", "2147483648", "-2147483649", str(2**63), str(10**40), "0x10", "1.5", "1e3", "007")
_STRANGE = (
    *("\0", "\r", "\t", "\f", "\\", "'", '"', "`", "é", "ı", "К", "\u202e", "\u200b", "\ufeff", "\u2028", "𝑖", "٣"),
    *(
        "%",
        "@",
        "#",
        "!",
        "^",
        "$",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ":",
        "=",
        "-",
        "->",
        "==",
        "::",
        "...",
    ),
)


def corpus() -> list[str]:
    """Every text of the zoo, and every piece of the lit tests, in a fixed order."""
    out = [path.read_text(encoding="utf-8") for path in sorted(Path(str(files("cmir") / "zoo")).glob("*.mlir"))]
    for path in sorted(LIT.rglob("*.mlir")):
        if "Output" not in path.parts:
            out += re.split(r"^// -----.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [text for text in out if text.strip() and len(text) <= LONGEST]


def mutants(seed: int, count: int) -> Iterator[str]:
    """`count` texts; the same for the same seed and the same corpus."""
    texts = corpus()
    rng = random.Random(seed)
    words = sorted({token for text in texts for token in _TOKEN.findall(text) if not token.isspace()})
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            text = rng.choice(MUTATIONS)(rng, text, words)
        yield text


Mutation = Callable[[random.Random, str, list[str]], str]


def _on_tokens(change: Callable[[random.Random, list[str], int, list[str]], None]) -> Mutation:
    """A mutation that changes the list of tokens, comments and white space left alone, at one place."""

    def mutate(rng: random.Random, text: str, words: list[str]) -> str:
        tokens = _TOKEN.findall(text)
        places = [k for k, token in enumerate(tokens) if not token.isspace() and not token.startswith("//")]
        if places:
            change(rng, tokens, rng.choice(places), words)
        return "".join(tokens)

    return mutate


def _lose(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    del tokens[k : k + rng.choice((1, 1, 1, 2, 5))]


def _double(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    tokens[k:k] = [*tokens[k : k + rng.choice((1, 1, 4))], " "]


def _swap(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    other = rng.randrange(len(tokens))
    tokens[k], tokens[other] = tokens[other], tokens[k]


def _replace(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    tokens[k] = rng.choice(words)


def _insert(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    tokens[k:k] = [rng.choice(words), " "]


def _huge(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    numbers = [n for n, token in enumerate(tokens) if token.isdigit()]
    tokens[rng.choice(numbers) if numbers else k] = rng.choice(_NUMBERS)


def _nest(rng: random.Random, tokens: list[str], k: int, words: list[str]) -> None:
    opening, closing = rng.choice(("()", "[]", "{}", "<>"))
    depth = rng.choice((1, 2, 30, 3000))
    tokens[k] = opening * depth + tokens[k] + closing * rng.choice((depth, depth - 1, 0))


def _flip(rng: random.Random, text: str, words: list[str]) -> str:
    k = rng.randrange(len(text)) if text else 0
    return text[:k] + rng.choice((*_STRANGE, chr(ord(text[k : k + 1] or " ") ^ 1))) + text[k + 1 :]


def _slip_in(rng: random.Random, text: str, words: list[str]) -> str:
    k = rng.randrange(len(text) + 1)
    return text[:k] + rng.choice(_STRANGE) + text[k:]


def _truncate(rng: random.Random, text: str, words: list[str]) -> str:
    return text[: rng.randrange(len(text) + 1)]


MUTATIONS: tuple[Mutation, ...] = (
    *(_on_tokens(change) for change in (_lose, _double, _swap, _replace, _replace, _insert, _huge, _nest)),
    *(_flip, _slip_in, _truncate),
)
