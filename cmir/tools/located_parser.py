"""xDSL's parser, with what its users need from error messages.

- Every op gets a `FileLineColLoc`, as in MLIR, unless the text says `loc(...)`.
- An SSA value that is never defined is reported where it is used, not at the end of the file.
- An unknown op, type, attribute or dialect comes with the nearest registered name.
- A comment that reads as the rest of an expression, `j <= i // 2`, is refused: division is floordiv.
- A missing `}` is said to be missing: at an op that stands too deep, or at the end of the file, with the place of `{`.
- Whatever goes wrong inside an op's own parser (an attribute that does not verify, a constructor that refuses) is a
  `ParseError` at that op.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc, UnregisteredAttr
from xdsl.ir import (
    Attribute,
    AttributeInvT,
    Data,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.parser import Parser, ParserState, UnresolvedOperand
from xdsl.traits import HasParent, IsolatedFromAbove
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from cmir.errors import suggestion
from cmir.tools.division_comments import OPS, division_comment

BUILTIN_TYPES = ("index", "none", "i1", "i8", "i32", "i64", "bf16", "f16", "f32", "f64", "tensor", "vector", "memref")
"""Builtin types that a misspelt one may be meant for."""


def _of_comparison(message: str) -> str:
    """The suggestion for `arith.cmpi sel`, if the message is about that."""
    from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS

    name = message.removeprefix("Unknown comparison mnemonic: ")
    return "" if name == message else suggestion(name, CMPI_COMPARISON_OPERATIONS)


_INSTEAD = {
    "%": "a remainder in an expression is written mod",
    "!": "in place of '!' write not",
    "&": "in place of '&' write and",
}
"""Of characters that begin no token, what stands for them in an expression."""


class _Lexer(MLIRLexer):
    """MLIR's tokens, and `!=`, which is a token of expressions; `open_ops` are the ops that are being parsed."""

    def __init__(self, input: Input[str], open_ops: Sequence[tuple[type[Operation], Position]]) -> None:
        super().__init__(input)
        self._open_ops = open_ops

    def lex(self) -> MLIRToken:
        """What is no token, and an operator elsewhere, comes with what to write in an expression."""
        try:
            return super().lex()
        except ParseError as error:
            at = error.span.start
            instead = _INSTEAD.get(self.input.content[at : at + 1])
            if instead is None or not self._open_ops or not self._open_ops[-1][0].name.startswith("maskspec."):
                raise
            raise ParseError(Span(at, at + 1, self.input), instead) from error

    def _consume_whitespace(self) -> None:
        if self._open_ops and self._open_ops[-1][0].name in OPS:
            spec = next((start for op, start in self._open_ops if op.name == "maskspec.spec"), self.pos)
            if (start := division_comment(self.input.content, self.pos, spec)) is not None:
                span = Span(start, start + 2, self.input)
                raise ParseError(span, "`//` begins a comment here; division is floordiv")
        super()._consume_whitespace()

    # Possessive: what is no string is found out in one reading, not in exponentially many.
    _string = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        """A string is UTF-8, however it is spelled: the printer escapes what is not ASCII."""
        found = self._string.match(self.input.content, start_pos)
        if found is None:
            raise ParseError(
                Span(start_pos, start_pos + 1, self.input),
                "a string ends on the line on which it begins, and '\\' stands before n, t, '\"', '\\' or "
                "two hex digits",
            )
        self.pos = found.end()
        try:
            StringLiteral(start_pos, self.pos, self.input).bytes_contents.decode()
        except UnicodeDecodeError:
            return self._form_token(MLIRTokenKind.BYTES_LIT, start_pos)
        return self._form_token(MLIRTokenKind.STRING_LIT, start_pos)

    def _lex_prefixed_ident(self, start_pos: Position) -> MLIRToken:
        if self.input.content.startswith("!=", start_pos):
            self.pos = start_pos + 2
            return self._form_token(MLIRTokenKind.EXCLAMATION_IDENT, start_pos)
        return super()._lex_prefixed_ident(start_pos)


class LocatedParser(Parser):
    """`Parser` for one text; locations refer to `name`."""

    def __init__(self, ctx: Context, input: str, name: str) -> None:
        self._open: list[tuple[type[Operation], Position]] = []  # the ops that are being parsed, and where they begin
        self._file = StringAttr(name)
        self._line_starts = [0, *(k + 1 for k, c in enumerate(input) if c == "\n")]
        self._forward_uses: dict[str, tuple[Span, list[str]]] = {}
        super().__init__(ctx, "", name)  # which reads a token, by a lexer that is not ours
        self._resume_from(ParserState(_Lexer(Input(input, name), self._open)))

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
        except RecursionError:
            self.raise_error("this is nested too deeply")
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

    def raise_error(self, msg: str, at_position: Any = None, end_position: Any = None) -> NoReturn:
        """As xDSL's; names that are not known come with the nearest that is."""
        place: Any = at_position
        if msg == "SSA value used before assignment" and hasattr(place, "text"):
            name = place.text.partition("#")[0]
            msg = f"use of undefined value '{name}'{suggestion(name, [f'%{known}' for known in self.ssa_values])}"
        if msg == "type expected" and self._current_token.kind == MLIRTokenKind.BARE_IDENT:
            msg = f"unknown type '{self._current_token.text}'{suggestion(self._current_token.text, BUILTIN_TYPES)}"
        super().raise_error(msg, place, end_position)

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self._forward_uses[name] = operand.span, [f"%{known}" for known in self.ssa_values]
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> Operation:
        start, depth = self._current_token.span, len(self._open)
        try:
            op = super().parse_operation()
            del self._open[depth:]
        except (ParseError, RecursionError):
            raise
        except Exception as error:
            kind = "" if isinstance(error, VerifyException | ValueError) else f"{type(error).__name__}: "
            raise ParseError(start, f"{kind}{error}{_of_comparison(str(error))}") from error
        if isinstance(op.location, UnknownLoc):
            op.location = self.location_at(start.start)
        return op

    def parse_optional_region(self, arguments: Sequence[Parser.Argument] | None = None) -> Region | None:
        start = self.pos
        try:
            return super().parse_optional_region(arguments)
        except ParseError as error:
            if error.msg.strip() != "in block definition":
                raise
            if self._current_token.kind != MLIRTokenKind.EOF:
                self.raise_error("expected an operation or '}'")
            op = f" of '{self._open[-1][0].name}'" if self._open else ""
            self.raise_error(f"expected '}}': the '{{'{op} at {self._place(start)} is not closed")

    def _place(self, position: Position) -> str:
        place = self.location_at(position)
        return f"{place.line.data}:{place.column.data}"

    def _check_place(self, op_type: type[Operation], name: str) -> None:
        """Raise for an op that belongs further out: a `}` before it is missing."""
        parents = tuple(p for trait in op_type.get_traits_of_type(HasParent) for p in trait.op_types)
        if not parents and op_type.has_trait(IsolatedFromAbove) and any(op == op_type for op, _ in self._open):
            parents = (ModuleOp,)
        if not self._open or not parents or issubclass(self._open[-1][0], parents):
            return
        inner, start = self._open[-1]
        if parents == (ModuleOp,) or any(issubclass(op, parents) for op, _ in self._open):
            self.raise_error(
                f"'{op_type.name}' cannot stand inside '{inner.name}', which begins at {self._place(start)}: "
                "is a '}' missing?",
                *self._span_before(name),
            )

    def _get_op_by_name(self, name: str) -> type[Operation]:
        if op_type := self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack):
            self._check_place(op_type, name)
            self._open.append((op_type, self._span_before(name)[0]))
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
