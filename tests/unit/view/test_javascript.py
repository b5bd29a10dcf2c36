"""JavaScript says what NumPy says: expressions at random, whole masks at every pair, explanations in every word."""

import json
from typing import Any

import numpy as np
import pytest
from viewing import plain, run_node, scenes

from cmir.analysis.facts import facts_of, first_violation
from cmir.dialects.expr import OPERATORS, Expr, boolean, const, make, var
from cmir.interp.domain import NumpyDomain, TableValue
from cmir.interp.evaluate import evaluate
from cmir.view.cell import Explanation, explain
from cmir.view.javascript import expression, literal, program
from cmir.view.scene import Scene

MASKS = (
    *("hstu", "hstu_meta", "shared_prompt", "gemma3", "vertical_slash", "strided", "topk_blocks", "tree_any_order"),
    *("block_diffusion", "flamingo", "clear", "natten_2d", "key_holes", "sinks_window", "qk_sparse"),
)


def mask_script(scene: Scene, values: dict[str, Any], result: str) -> str:
    return (
        f"const mask = {program(scene.spec, scene.tables)};\n"
        f"const $ = environment(mask, {literal(values)});\n"
        f"process.stdout.write(JSON.stringify({result}));"
    )


@pytest.mark.parametrize("name", MASKS)
def test_masks_at_every_pair(name: str):
    pictures = "[brokenFacts(mask, $), [...visiblePairs(mask, $)], [...slotsOfPairs(mask, $, 'rows')], "
    pictures += "[...slotsOfPairs(mask, $, 'cols')], tileStates($, visiblePairs(mask, $), [4, 3])]"
    for scene in scenes(name, 3):
        broken, pairs, rows, cols, tiles = run_node(mask_script(scene, plain(scene), pictures))
        assert broken == []
        shape = scene.rows, scene.cols
        for found in (pairs, rows, cols):
            np.testing.assert_array_equal(np.array(found).reshape(shape) >= 0, scene.dense)
        for axis, found in (("rows", rows), ("cols", cols)):
            numbers, regions = scene.slots(axis)  # pyright: ignore[reportArgumentType]
            first = np.cumsum([0, *(len(r.spans) for r in regions)])
            want = np.where(numbers < 0, -1, first[numbers // 4096] + numbers % 4096)
            np.testing.assert_array_equal(np.array(found).reshape(shape), want)
        np.testing.assert_array_equal(
            np.array(tiles).reshape(scene.tile_states((4, 3)).shape), scene.tile_states((4, 3))
        )


def test_masks_under_metadata_that_break_facts():
    """A slider goes anywhere: the rule is still the rule, and the first entry that breaks each fact is named."""
    from cmir.interp.masks import spec_mask

    rng = np.random.default_rng(5)
    for name in ("hstu", "shared_prompt", "flamingo"):
        (scene,) = scenes(name, 1)
        facts = facts_of(scene.spec)
        for _ in range(4):
            env = dict(scene.env)
            for p in facts.parameters:
                if p.is_table:
                    env[p.name] = TableValue(rng.integers(-3, scene.rows + 3, env[p.name].values.shape))
                else:
                    env[p.name] = int(rng.integers(-3, scene.rows + 3))
            values = {k: v.values.tolist() if isinstance(v, TableValue) else int(v) for k, v in env.items()}
            broken, pairs = run_node(mask_script(scene, values, "[brokenFacts(mask, $), [...visiblePairs(mask, $)]]"))
            want = spec_mask(scene.surface, env)
            np.testing.assert_array_equal(np.array(pairs).reshape(want.shape) >= 0, want)
            first = first_violation(facts, env)
            assert (first is None) == (not broken)
            if first is not None:
                assert (broken[0]["text"], broken[0]["index"]) == (first[0].text, first[1])


def same_words(scene: Scene, said: dict[str, Any], want: Explanation) -> None:
    assert (said["visible"], said["region"]) == (want.visible, want.region)
    assert [(c["name"], c["holds"]) for c in said["clauses"]] == [(c.name, c.holds) for c in want.clauses]
    for mine, theirs in zip(said["clauses"], want.clauses, strict=True):
        assert [(x["text"], x["holds"], x["numbers"]) for x in mine["literals"]] == [
            (x.text, x.holds, x.numbers) for x in theirs.literals
        ]
    for axis, slots in (("rows", want.row_slots), ("cols", want.col_slots)):
        got = [(s["slot"], s["holds"], s["lo"] < s["hi"], s["why"]) for s in said["slots"][axis]]
        # Of a residual that holds the page says nothing.
        why = ["" if s.why.endswith("' holds") else s.why for s in slots]
        assert got == [(s.number, s.holds, s.lo < s.hi, w) for s, w in zip(slots, why, strict=True)]
        ends = [(s["lo"], s["hi"]) for s in said["slots"][axis] if s["lo"] < s["hi"]]
        assert ends == [(s.lo, s.hi) for s in slots if s.lo < s.hi]


@pytest.mark.parametrize("name", ["hstu", "vertical_slash", "strided", "topk_blocks", "clear"])
def test_a_pair_is_explained_in_the_same_words(name: str):
    (scene,) = scenes(name, 1)
    rng = np.random.default_rng(1)
    cells = [(int(rng.integers(scene.rows)), int(rng.integers(scene.cols))) for _ in range(25)]
    found = run_node(
        mask_script(scene, plain(scene), f"{json.dumps(cells)}.map(([i, j]) => explainPair(mask, $, i, j))")
    )
    for said, (i, j) in zip(found, cells, strict=True):
        same_words(scene, said, explain(scene, i, j))


class Terms:
    """Random expressions over every operator of the language."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.bound = 0

    def of(self, sort: str, depth: int, names: tuple[str, ...]) -> Expr:
        ops = [o for o, info in OPERATORS.items() if info.result == sort and (depth > 0 or not info.operands)]
        op = str(self.rng.choice(ops))
        if op == "bool":
            return boolean(bool(self.rng.integers(2)))
        if op == "const" or (op in ("var", "lookup") and not names):
            return const(int(self.rng.integers(-9, 10)))
        if op == "var":
            return var(str(self.rng.choice(names)))
        if op == "isqrt":
            return make("isqrt", make("abs", self.of("int", depth - 1, names)))
        if op == "lookup":
            one = make("lookup", self.of("int", depth - 1, names), data=str(self.rng.choice(["t", "none"])))
            two = make("lookup", *(self.of("int", depth - 1, names) for _ in range(2)), data="lists")
            return one if self.rng.integers(2) else two
        if op in ("exists", "first"):
            self.bound += 1
            name = f"b{self.bound}"
            lo, hi = (make("mod", self.of("int", 0, names), const(7)) for _ in range(2))
            return make(op, lo, hi, self.of("bool", depth - 1, (*names, name)), data=name)
        operands = OPERATORS[op].operands
        sorts = (operands,) * int(self.rng.integers(1, 4)) if isinstance(operands, str) else operands
        return make(op, *(self.of(s, depth - 1, names) for s in sorts))


def test_expressions_at_random():
    terms = Terms(7)
    env = {
        "n": -4,
        "m": 11,
        "rows": 8,
        "cols": 9,
        "t": TableValue(np.array([3, -7, 5, 0])),
        "none": TableValue(np.array([], dtype=np.int64)),
        "lists": TableValue(np.array([[1, 2, 3], [-4, 5, 6]])),
    }
    values = {k: v.values.tolist() if isinstance(v, TableValue) else v for k, v in env.items()}
    expressions = [terms.of(str(terms.rng.choice(["int", "bool"])), 4, ("n", "m", "i", "j")) for _ in range(400)]
    script = [f"const $ = {literal(values)};", "const out = [];"]
    want: list[int] = []
    for e in expressions:
        i, j = (int(x) for x in terms.rng.integers(-5, 9, 2))
        with np.errstate(all="raise"):
            want.append(int(evaluate(e, {**env, "i": np.int64(i), "j": np.int64(j)}, NumpyDomain())))
        script.append(f"out.push(Number((($, i, j) => {expression(e)})($, {i}, {j})));")
    found = run_node("\n".join([*script, "process.stdout.write(JSON.stringify(out));"]))
    wrong = [(str(e), w, f) for e, w, f in zip(expressions, want, found, strict=True) if w != f]
    assert wrong == []


def test_numbers_past_those_of_a_browser_are_refused():
    script = "let said = ''; try { mul(3037000500, 3037000500); } catch (error) { said = error.message; }"
    assert "too large for a browser" in run_node(script + "process.stdout.write(JSON.stringify(said));")


def test_texts_cannot_end_a_script():
    assert literal({"</script>": ["<!--", "a&b"]}) == ('{"\\u003c/script\\u003e": ["\\u003c!--", "a\\u0026b"]}')
