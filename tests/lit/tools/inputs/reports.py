"""A pass that reports what the names of functions say: `@error_x` an error, `@warning_x`, `@remark_x` (with a note)."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from cmir.errors import Note, Remark, SpecError, emit_remark, locate


@dataclass(frozen=True)
class Report(ModulePass):
    """Report what the names of functions say."""

    name = "report"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if not isinstance(function, FuncOp):
                continue
            kind, _, name = function.sym_name.data.partition("_")
            if kind == "error":
                raise SpecError(f"an error of @{name}", function)
            if kind == "warning":
                emit_remark(Remark(f"a warning of @{name}", locate(function), severity="warning"))
            if kind == "remark":
                note = Note(f"a note of @{name}", locate(function))
                emit_remark(Remark(f"a remark of @{name}", locate(function), (note,)))
