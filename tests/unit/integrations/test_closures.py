# pyright: basic
"""Structure of mask functions: equal for equal rules on other data, different where a number or the code differs."""

import types
from collections import namedtuple
from functools import partial
from typing import Any

import pytest
import torch

from cmir.integrations.closures import Opaque, structure

LIMIT = 5


def window(size, table):
    def inside(b, h, q, k):
        return (q - k < size) & (table[q] <= k)

    return inside


def both(*parts):
    return lambda b, h, q, k: parts[0](b, h, q, k) & parts[1](b, h, q, k)


def below_limit(b, h, q, k):
    return k < LIMIT


def scaled(b, h, q, k, factor=2):
    return q * factor >= k


def test_other_tensors_are_the_same_structure_in_the_same_order() -> None:
    a, b = torch.arange(4), torch.arange(9)
    (first, of_first), (second, of_second) = (structure(both(window(3, t), window(4, t + 1))) for t in (a, b))
    assert first == second
    assert [len(t) for t in of_first] == [4, 4] and [len(t) for t in of_second] == [9, 9]
    assert of_first[0] is a


def test_one_tensor_twice_is_not_two() -> None:
    t = torch.arange(4)
    once, twice = structure(both(window(3, t), window(3, t))), structure(both(window(3, t), window(3, t.clone())))
    assert once[0] != twice[0]
    assert (len(once[1]), len(twice[1])) == (1, 2)


def test_numbers_dtypes_code_globals_and_defaults_count(monkeypatch: pytest.MonkeyPatch) -> None:
    t = torch.arange(4)
    keys = [
        structure(f)[0]
        for f in (
            window(3, t), window(4, t), window(True, t), window(3, t.int()), window(3, t[None]), below_limit, scaled,
            partial(scaled, factor=3), partial(scaled, factor=4), both(window(3, t), below_limit),
            both(below_limit, window(3, t)),
        )
    ]  # fmt: skip
    monkeypatch.setattr(below_limit, "limit", 7, raising=False)
    keys.append(structure(below_limit)[0])
    monkeypatch.setitem(globals(), "LIMIT", 6)
    keys.append(structure(below_limit)[0])
    assert len(set(keys)) == len(keys)
    assert structure(window(3, t))[0] == keys[0]


def test_what_cannot_be_compared_says_so() -> None:
    class Rule:
        def __call__(self, b, h, q, k):
            return q >= k

        def rule(self, b, h, q, k):
            return q >= k

    class Limits:
        limit = 5

    Two = namedtuple("Two", "a b")
    marked = torch.arange(3)
    marked.limit = 5  # pyright: ignore[reportAttributeAccessIssue]

    def imports(b, h, q, k):
        from sys import maxsize

        return k < maxsize

    hidden: tuple[Any, ...] = (Limits, Two(1, 2), marked, marked.size, types)
    functions = [lambda b, h, q, k, x=x: k < x.limit for x in hidden]
    for function in (Rule(), Rule().rule, both(Rule(), below_limit), imports, *functions):
        with pytest.raises(Opaque):
            structure(function)
