"""`--prove`: after every pass, a proof that what is visible is what it was; see `cmir.analysis.proof`.

    prove: merge-slots: proved (0.12 s, 5 questions)
    prove: mine: unknown after 3.10 s (4 questions; 100 random draws agree; whether a span of @m_rows leaves the axis)

What was refuted is an error that points at the op and shows the numbers; what is unknown is one only if that is asked
for. It is read off the IR, so any pass is proved, with no work by who wrote it.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cmir.errors import CmirError, SpecError
from cmir.tools.driver import Observer

if TYPE_CHECKING:
    from cmir.analysis.proof.decide import Outcome


class Prover(Observer):
    """Proves every pass that it is told about; `outcomes` has what came of it, in order.

    Args:
        strict: what is unknown is an error too.
        report: is given one line a pass.
    """

    def __init__(self, strict: bool = False, report: Callable[[str], None] | None = None) -> None:
        self._strict = strict
        self._report = report
        self._module: ModuleOp | None = None
        self.outcomes: list[tuple[str, Outcome]] = []

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._module = module.clone()

    def verified(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Prove the pass.

        Raises:
            SpecError: the pass changed what is visible, or (strict) it is unknown whether it did.
        """
        from cmir.analysis.proof.decide import decide  # imports z3
        from cmir.analysis.proof.stages import claims_of, unsaid

        assert self._module is not None
        outcome = decide(claims_of(pass_.name, self._module, module), unsaid(self._module, module))
        self.outcomes.append((pass_.name, outcome))
        if self._report is not None:
            self._report(f"prove: {pass_.name}: {outcome}")
        if (found := outcome.refutation) is not None:
            raise SpecError(f"pass '{pass_.name}' is wrong: {found.claim}: {found.counterexample}", found.op)
        if self._strict and outcome.status == "unknown":
            notes = [*(f"unknown whether {claim}" for claim in outcome.unknown), *outcome.unsaid]
            raise SpecError(f"pass '{pass_.name}' is not proved", module, notes)


def prover_of(value: str | None) -> Observer:
    """What `--prove=value` asks for; None: nothing."""
    if value is None:
        return Observer()
    if value not in ("", "strict"):
        raise CmirError(f"--prove takes no value or 'strict', got '{value}'")
    return Prover(value == "strict", lambda line: print(line, file=sys.stderr))
