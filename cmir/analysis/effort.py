"""What the proofs of a pass may cost, so that a compile ends in seconds whatever the rule.

It is counted in work, not in time: a compile gives the same slots on every machine. One unit is one linear form that is
looked at (some tens of microseconds); evaluating a claim and asking z3 are charged what they take on average. A pass
that has spent its share goes on without proofs, which is always safe: intervals that could be one stay two.
"""

from __future__ import annotations

from dataclasses import dataclass

from cmir.errors import Remark, emit_remark, locate

WORK = 70_000  # of one pass over one spec; the masks of the zoo take half of it at most
QUESTION = 100  # a question to z3, and one more for as many instances of facts


@dataclass
class Effort:
    """The work that is left."""

    left: int = WORK

    @property
    def spent(self) -> bool:
        return self.left <= 0

    def charge(self, work: int) -> None:
        self.left -= work


def remark_if_spent(effort: Effort, op: object, what: str) -> None:
    """Say it where proofs ended early: the spec is right, but may be slower than it need be."""
    if effort.spent:
        emit_remark(
            Remark(
                f"{what}: too much to prove; from here on intervals are neither merged nor simplified, which is right "
                "but may be slow",
                locate(op),
            )
        )
