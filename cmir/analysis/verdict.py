"""What a proof attempt answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True)
class Verdict:
    """`counterexample`: metadata and indices in words, when the claim is refuted."""

    status: Literal["proved", "refuted", "unknown"]
    counterexample: str = ""

    @property
    def proved(self) -> bool:
        return self.status == "proved"


PROVED: Final = Verdict("proved")
UNKNOWN: Final = Verdict("unknown")
