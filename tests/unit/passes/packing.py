"""Random packs: sequences that satisfy the facts of a spec, and the metadata of them one after another."""

from collections.abc import Mapping, Sequence

import numpy as np

from cmir.analysis.facts import Facts
from cmir.analysis.sampling import draw
from cmir.interp.domain import TableValue, Value

Env = Mapping[str, Value]


def draw_sequences(facts: Facts, rng: np.random.Generator, count: int, size: int) -> list[Env]:
    """Metadata of `count` sequences, each of at most about `size` rows; free tables are those of the first."""
    out: list[Env] = []
    for _ in range(50 * count):
        if len(out) == count:
            break
        # Small sizes now and then, so that there are sequences of no rows or no columns where the facts allow them.
        env = draw(facts, rng, int(rng.choice([1, 2, size])))
        if env is None:
            continue
        if out:
            env = {**env, **{p.name: out[0][p.name] for p in facts.parameters if p.kind == "free"}}
        out.append(env)
    return out


def pack_env(facts: Facts, sequences: Sequence[Env], tail: tuple[int, int] = (0, 0)) -> dict[str, Value]:
    """What the packed form of a spec is given, as values of the NumPy interpreter."""

    def lengths(what: str) -> list[int]:
        return [int(env[what]) for env in sequences]

    def table(values: Sequence[int] | np.ndarray) -> TableValue:
        return TableValue(np.asarray(values, dtype=np.int64))

    out: dict[str, Value] = {
        "rows": sum(lengths("rows")) + tail[0],
        "cols": sum(lengths("cols")) + tail[1],
        "cu_rows": table([0, *np.cumsum(lengths("rows"))]),
        "cu_cols": table([0, *np.cumsum(lengths("cols"))]),
        "longest": max([*lengths("rows"), *lengths("cols")], default=0),
    }
    for p in facts.parameters:
        if p.kind == "scalar":
            out[p.name] = table(lengths(p.name) or [0])
        elif p.kind == "free":
            out[p.name] = (
                sequences[0][p.name] if sequences else table(np.zeros((1, *([p.entries] if p.entries else []))))
            )
        else:
            pad = tail[0 if p.kind == "row" else 1]
            parts = [env[p.name].values for env in sequences]
            out[p.name] = table(np.concatenate([*parts, np.full((pad, *([p.entries] if p.entries else [])), -7)]))
    return out


def places(sequences: Sequence[Env]) -> list[tuple[int, int, Env]]:
    """The first row and column of every sequence, with its metadata."""
    rows = np.cumsum([0, *(int(env["rows"]) for env in sequences)])
    cols = np.cumsum([0, *(int(env["cols"]) for env in sequences)])
    return [(int(r), int(c), env) for r, c, env in zip(rows, cols, sequences, strict=False)]
