"""Passes, a dialect and a target for tests of --load."""

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from cmir.errors import SpecError


@irdl_op_definition
class Nothing(IRDLOperation):
    """An op that does nothing."""

    name = "toy.nothing"
    assembly_format = "attr-dict"


Toy = Dialect("toy", [Nothing])


@dataclass(frozen=True)
class RejectAdditions(ModulePass):
    """Complain about the first addition.

    `how` says in which of the ways that a pass may fail.
    """

    name = "reject-additions"

    how: str = "spec-error"
    verbose: bool = False
    sizes: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        addition = next(o for o in op.walk() if isinstance(o, AddiOp))
        match self.how:
            case "spec-error":
                notes = ["for instance i = 3, j = 5", ("the operand", addition.rhs.owner)]
                raise SpecError("no additions", addition, notes)
            case "emit-error":
                addition.emit_error("no additions", PassFailedException("no additions"))
            case "no-location":
                raise PassFailedException("no additions")
            case "bug":
                raise KeyError("additions")
            case "invalid-ir":
                addition.lhs.replace_all_uses_with(addition.result)
            case _:
                pass


@dataclass(frozen=True)
class Twice(ModulePass):
    """Reject additions, twice, without complaint."""

    name = "twice"

    def expand(self) -> tuple[ModulePass, ...]:
        return RejectAdditions("quiet"), RejectAdditions("quiet", verbose=True)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for pass_ in self.expand():
            pass_.apply(ctx, op)


@dataclass(frozen=True)
class CountTarget(Target):
    """The number of ops."""

    name = "count"

    unit: str = "ops"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        print(sum(1 for _ in module.walk()), self.unit, file=output)
