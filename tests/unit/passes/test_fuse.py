"""Slots that may overlap are fused one after another: the closure holds every pair that may overlap on the way."""

from itertools import combinations
from random import Random

from cmir.dialects.interval import closure_of_fuse


def by_definition(pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    out = set(pairs)
    for a in range(max((b for _, b in out), default=0)):
        out |= set(combinations(sorted(c for x, c in out if x == a), 2))
    return out


def test_closure() -> None:
    random = Random(0)
    for _ in range(500):
        share = random.choice([0.1, 0.3, 0.7])
        pairs = [p for p in combinations(range(random.randint(1, 14)), 2) if random.random() < share]
        assert closure_of_fuse(pairs) == by_definition(pairs)
