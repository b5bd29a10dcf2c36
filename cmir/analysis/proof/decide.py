"""Proved, refuted in numbers, or unknown: what becomes of the claims about a pass.

z3 is asked for a solution of every question: without the facts about indices first, then with ever more of what they
say. None: proved. If there may be one, a counterexample is looked for: among random metadata, in z3's models, and in
z3's models of worlds of a few rows in which every fact is told at every index. It counts if the metadata fit in int32,
as all that kernels compute with do (NumPy's products of larger numbers wrap around), satisfy all facts, and NumPy finds
the claim broken: on the whole mask or, of thousands of rows, at the row and column of the model. Otherwise the claim is
unknown, and that so many draws agreed is all that is said for it.

z3's resource count bounds the work of a question; clocks stop only what would take a minute a pass.
"""
# z3 has no type information worth the name.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any, Literal

import numpy as np
import z3
from xdsl.ir import Operation

from cmir.analysis.facts import first_violation
from cmir.analysis.proof.claims import Claim
from cmir.analysis.proof.meaning import Env
from cmir.analysis.proof.world import LEVELS, World
from cmir.analysis.sampling import sample
from cmir.interp.domain import TableValue, Value

RESOURCES = 20_000_000
"""z3's rlimit per question: some seconds."""

TIMEOUT = 10_000
"""Milliseconds per question."""

SECONDS = 60.0
"""Of processor time for one pass, after which no further claim is asked about."""

DRAWS = 100
"""Random metadata that an open claim is tried on, of about `SIZE` rows."""
SIZE = 16

BOUNDS = (2, 4)
"""Lengths of the small worlds."""

_INT32 = np.iinfo(np.int32)

MOST = 2_000
"""Rows of a model of which NumPy is given the whole mask."""
LONGEST = 1_000_000
"""Rows of a model of which NumPy is asked for one pair."""


@dataclass(frozen=True)
class Refutation:
    """What is wrong, where in the module, and with which metadata."""

    claim: str
    op: Operation
    counterexample: str


@dataclass(frozen=True)
class Outcome:
    """What became of the claims about one pass."""

    status: Literal["proved", "refuted", "unknown"]
    claims: int
    questions: int
    seconds: float
    refutation: Refutation | None = None
    unknown: tuple[str, ...] = ()
    """Claims that were not decided."""
    draws: int = 0
    """Random metadata on which all of those hold."""
    unsaid: tuple[str, ...] = ()
    """What the pass did that no claim speaks of."""

    def __str__(self) -> str:
        """As the command line says it."""
        if self.claims == 0:
            return ", ".join(["unknown", *self.unsaid]) if self.unsaid else "nothing to prove"
        many = f"{self.questions} question{'' if self.questions == 1 else 's'}"
        if self.status == "unknown":
            tested = f"{self.draws} random draws agree" if self.draws else "no random draw was tried"
            undecided = f"{many}; {tested}; whether {' and '.join(self.unknown)}" if self.unknown else many
            return ", ".join([f"unknown after {self.seconds:.2f} s ({undecided})", *self.unsaid])
        return f"{self.status} ({self.seconds:.2f} s, {many})"


def decide(claims: Iterable[Claim], unsaid: Sequence[str] = ()) -> Outcome:
    """Decide all claims; the first that is refuted ends it. With anything `unsaid`, a pass is not proved."""
    start, total, count, draws = process_time(), 0, 0, 0
    unknown: list[str] = []
    for total, claim in enumerate(claims, 1):
        asked, proved, found = _decide(claim, process_time() - start < SECONDS)
        count += asked
        if proved:
            continue
        if isinstance(found, int):
            unknown.append(claim.what)
            draws = found if len(unknown) == 1 else min(draws, found)
            continue
        refutation = Refutation(claim.what, claim.op, found)
        return Outcome("refuted", total, count, process_time() - start, refutation)
    seconds = process_time() - start
    status = "unknown" if unknown or unsaid else "proved"
    return Outcome(status, total, count, seconds, None, tuple(unknown), draws, tuple(unsaid))


def _decide(claim: Claim, ask: bool = True) -> tuple[int, bool, str | int]:
    """(questions asked, whether all are proved, the counterexample or else the draws that agree)."""
    world = claim.world()
    if not ask:
        return 0, False, _tested(claim, world)
    try:
        questions = claim.questions(world)
    except z3.Z3Exception:  # what has no meaning in z3
        return 0, False, _tested(claim, world)
    models: list[Any] = []
    still_open = False
    for question in questions:
        answer = _ask(world, question)
        still_open |= answer is not None
        models += [answer] if isinstance(answer, z3.ModelRef) else []
        if answer is False:  # given up, as others of the claim would be
            break
    if not still_open:
        return len(questions), True, 0
    found = _tested(claim, world)
    if isinstance(found, int):
        found = _from_models(claim, world, models) or _from_small_worlds(claim) or found
    return len(questions), False, found


def _ask(world: World, question: Any) -> Any:
    """None: no solution. Else a model that may be one, or False."""
    answer: Any = False
    divisions = _divisions(question)
    if divisions and _check([z3.substitute(question, *divisions), *world.told], world) is None:
        return None
    known = -1
    for level in range(LEVELS):
        try:
            assumptions = world.assumptions(level)
            if len(assumptions) == known:  # there is no more to tell
                continue
            known = len(assumptions)
            answer = _check([question, *assumptions], world)
        except z3.Z3Exception:
            return False
        if answer is None:
            return None
    return answer


def _check(assertions: Sequence[Any], world: World) -> Any:
    """None: unsatisfiable. A model, or False where z3 gives up."""
    context = world.domain.context
    for resources, logic in ((RESOURCES // 10, None), (RESOURCES, "QF_UFLIA")):
        # The tactics of a logic take longer than most of these questions do.
        solver = z3.SimpleSolver(ctx=context) if logic is None else z3.SolverFor(logic, ctx=context)
        solver.set("rlimit", resources)
        solver.set("timeout", TIMEOUT)  # which the resource count all but never leaves to it
        try:
            solver.add(*assertions)
            result = solver.check()
        except z3.Z3Exception:  # the product of two unknowns is of no such logic
            continue
        if result != z3.unknown:
            return None if result == z3.unsat else solver.model()
    return False


def _divisions(question: Any) -> list[tuple[Any, Any]]:
    """Every quotient and remainder, with an unknown to stand for it: often they are the same on both sides."""
    found: dict[int, tuple[Any, Any]] = {}
    seen: set[int] = set()
    todo = [question]
    while todo:
        term = todo.pop()
        if term.get_id() in seen or not z3.is_app(term):
            continue
        seen.add(term.get_id())
        if z3.is_idiv(term) or z3.is_mod(term):
            found[term.get_id()] = term, z3.Int(f"quotient!{len(found)}", term.ctx)
        todo += term.children()
    return list(found.values())


def _tested(claim: Claim, world: World) -> str | int:
    """A counterexample among random metadata, or the number of those that agree."""
    drawn = claim.draws or (lambda: [draw.env for draw in sample(world.facts, count=DRAWS, seed=5, size=SIZE)])
    agree = 0
    for env in drawn():
        if (words := _broken(claim, world, env)) is not None:
            return words
        agree += 1
    return agree


def _from_models(claim: Claim, world: World, models: Sequence[Any]) -> str | None:
    for model in models:
        env = world.read(model, MOST)
        words = _broken(claim, world, env) if env is not None else _broken_at_its_pair(claim, world, model)
        if words is not None:
            return words
    return None


def _broken_at_its_pair(claim: Claim, world: World, model: Any) -> str | None:
    """`_broken` of a model with more rows than a whole mask is made for, at the row and column of the model."""
    ask = claim.counterexample_at
    if ask is None or (env := world.read(model, LONGEST, MOST)) is None:
        return None
    i, j = (model.eval(world.env[index], model_completion=True).as_long() for index in ("i", "j"))
    return _broken(claim, world, env, lambda env: ask(env, i, j))


def _from_small_worlds(claim: Claim) -> str | None:
    for bound in BOUNDS:
        world = claim.world()
        questions = claim.questions(world)
        try:
            model = _check([z3.Or(*questions), *world.ground(bound)], world)
        except z3.Z3Exception:
            return None
        if isinstance(model, z3.ModelRef) and (words := _from_models(claim, world, [model])) is not None:
            return words
    return None


def _broken(
    claim: Claim, world: World, env: dict[str, Value] | Any, ask: Callable[[Env], str | None] | None = None
) -> str | None:
    """What is wrong, by `ask` or anywhere, with metadata that satisfy the facts, with the metadata."""
    if not all(map(_fits, env.values())) or first_violation(world.facts, env) is not None:
        return None
    words = (ask or claim.counterexample)(env)
    return None if words is None else f"{words}, where {', '.join(_show(env))}"


def _fits(value: Value) -> bool:
    """Whether a scalar, or every entry of a table, is within int32."""
    numbers = np.asarray(value.values if isinstance(value, TableValue) else value)
    return not numbers.size or (_INT32.min <= numbers.min() and numbers.max() <= _INT32.max)


def _show(env: dict[str, Value]) -> Iterator[str]:
    for name, value in env.items():
        yield f"{name}={value.values.tolist() if isinstance(value, TableValue) else int(value)}"
