"""Parsing and printing that several ops of `maskspec` and its neighbours share.

range ::= `[` expr `,` expr `)`     // half-open; closed, `]`, where an index is bound
where ::= `where` name `=` expr     // text may use the name in place of the expression; the IR holds the expression
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from cmir.dialects.expr import Expr, ExprAttr, parse_expr, show


def parse_range(parser: AttrParser, close: Literal[")", "]"] = ")") -> tuple[ExprAttr, ExprAttr]:
    """`[lo, hi)`: a half-open range of integer expressions (`]`: closed)."""
    start = parser.pos
    if parser.parse_optional_punctuation("[") is None:
        parser.raise_error(f"expected a range [lo, hi{close}", start, start + 1)
    lo = parse_expr(parser, "int")
    parser.parse_punctuation(",", " between the ends of a range")
    hi = parse_expr(parser, "int")
    if parser.parse_optional_punctuation(close) is None:
        parser.raise_error(f"expected '{close}': a range here is [lo, hi{close}", parser.pos, parser.pos + 1)
    return ExprAttr(lo), ExprAttr(hi)


def print_range(printer: Printer, lo: ExprAttr, hi: ExprAttr, close: str = ")") -> None:
    printer.print_string(f"[{show(lo.data)}, {show(hi.data)}{close}")


def parse_body(parser: Parser, args: Sequence[Parser.Argument] = ()) -> Region:
    """A region of one block, which may be empty: `{}`."""
    region = parser.parse_region(args)
    if not region.blocks:
        region.add_block(Block())
    return region


def print_body(printer: Printer, body: Region) -> None:
    """`{ ... }`; the op has printed the arguments."""
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)


def parse_value(parser: Parser) -> SSAValue:
    """An operand of whatever type: the verifier has the better message when it is the wrong one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return parser.parse_operand()  # pyright: ignore[reportDeprecated]


def parse_where(parser: AttrParser) -> tuple[str, Expr] | None:
    """`where s = first s in [0, n) : i < ends[s]`: the name that text uses in place of an expression."""
    if parser.parse_optional_keyword("where") is None:
        return None
    name = parser.parse_identifier(context_msg=" after 'where'")
    parser.parse_punctuation("=")
    return name, parse_expr(parser, "int")
