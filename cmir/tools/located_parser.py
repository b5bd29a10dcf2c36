"""xDSL's parser, with what its users need from error messages.

- Every op gets a `FileLineColLoc`, as in MLIR, unless the text says `loc(...)`.
- An SSA value that is never defined is reported where it is used, not at the end of the file.
- An unknown op, type, attribute or dialect comes with the nearest registered name.
- Whatever goes wrong inside an op's own parser (an attribute that does not verify, a constructor that refuses) is a
  `ParseError` at that op.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc, UnregisteredAttr
from xdsl.ir import Attribute, AttributeInvT, Data, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind


def suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean 'x'?` for the known name nearest to `name`, shown behind `prefix`; or nothing."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f"; did you mean '{prefix}{near[0]}'?" if near else ""


class LocatedParser(Parser):
    """`Parser` for one text; locations refer to `name`."""

    def __init__(self, ctx: Context, input: str, name: str) -> None:
        self._file = StringAttr(name)
        self._line_starts = [0, *(k + 1 for k, c in enumerate(input) if c == "\n")]
        self._forward_uses: dict[str, tuple[Span, list[str]]] = {}
        super().__init__(ctx, input, name)

    def location_at(self, position: Position) -> FileLineColLoc:
        """The location attribute of a position in the text."""
        line = bisect_right(self._line_starts, position)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(position - self._line_starts[line - 1] + 1))

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        start = self.pos
        if self._current_token.kind == MLIRTokenKind.EOF:
            return ModuleOp([])
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as error:
            if error.msg.startswith("values used but not defined"):
                self._raise_undefined_value()
            if error.msg == "Could not parse entire input!":
                self.raise_error("expected an operation")
            raise
        if isinstance(module.location, UnknownLoc):
            module.location = self.location_at(start)
        return module

    def _raise_undefined_value(self) -> NoReturn:
        name = next(iter(self.forward_ssa_references))
        span, visible = self._forward_uses[name]
        self.raise_error(f"use of undefined value '%{name}'{suggestion(f'%{name}', visible)}", span)

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self._forward_uses[name] = operand.span, [f"%{known}" for known in self.ssa_values]
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> Operation:
        start = self._current_token.span
        try:
            op = super().parse_operation()
        except (ParseError, RecursionError):
            raise
        except Exception as error:
            kind = "" if isinstance(error, VerifyException | ValueError) else f"{type(error).__name__}: "
            raise ParseError(start, f"{kind}{error}") from error
        if isinstance(op.location, UnknownLoc):
            op.location = self.location_at(start.start)
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        if op_type := self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack):
            return op_type
        if "." in name:
            self._raise_unknown("operation", name, lambda dialect: dialect.operations)
        # A bare name is looked up in the dialects of the enclosing ops.
        stack = [self.ctx.get_dialect(dialect) for dialect in set(self._parser_state.dialect_stack)]
        known = [op.name.partition(".")[2] for dialect in stack for op in dialect.operations]
        self.raise_error(f"unknown operation '{name}'{suggestion(name, known)}", *self._span_before(name))

    def _parse_dialect_type_or_attribute_body(
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: Position | None
    ) -> UnregisteredAttr | ParametrizedAttribute | Data[Any]:
        if "." in attr_name:
            lookup = self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr
            if lookup(attr_name) is None:
                self._raise_unknown(
                    "type" if is_type else "attribute",
                    attr_name,
                    lambda dialect: (a for a in dialect.attributes if issubclass(a, TypeAttribute) == is_type),
                )
        return super()._parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)

    def _raise_unknown(
        self, kind: str, name: str, members: Callable[[Dialect], Iterable[type[Operation] | type[Attribute]]]
    ) -> NoReturn:
        """Raise for a name `dialect.x` that was just parsed and is not registered."""
        dialect_name = name.partition(".")[0]
        dialect = self.ctx.get_optional_dialect(dialect_name)
        if dialect is None:
            hint = suggestion(dialect_name, self.ctx.registered_dialect_names)
            self.raise_error(f"unknown dialect '{dialect_name}' of {kind} '{name}'{hint}", *self._span_before(name))
        # Compare what follows the dialect's name, which every candidate shares.
        prefix = f"{dialect_name}."
        hint = suggestion(name.removeprefix(prefix), (m.name.removeprefix(prefix) for m in members(dialect)), prefix)
        self.raise_error(f"unknown {kind} '{name}'{hint}", *self._span_before(name))

    def _span_before(self, name: str) -> tuple[Position, Position]:
        """Where `name` stands, which was the last thing parsed."""
        start = self.lexer.input.content.rfind(name, 0, self.pos)
        return start, start + len(name)
