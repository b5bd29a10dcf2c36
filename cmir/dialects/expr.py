"""Index expressions: the one small term language that guards, facts, clauses and endpoints are written in.

SSA is the right form for a rule that a user writes and for code that a kernel runs. In between, the compiler *reasons*:
it compares endpoints, solves for a variable, asks whether a fact implies an inequality. There an expression is a value,
as `AffineExpr` is in MLIR's affine dialect, and cmir keeps it in an attribute that prints inline. Names refer to the
metadata of the enclosing spec.

    expr    ::= or
    or      ::= and (`or` and)*
    and     ::= unary (`and` unary)*
    unary   ::= `not` unary | cmp
    cmp     ::= sum ((`<` | `<=` | `==` | `!=` | `>` | `>=`) sum)*   // a <= b < c means a <= b and b < c
    sum     ::= product ((`+` | `-`) product)*
    product ::= factor ((`*` | `floordiv` | `mod`) factor)*          // floor division, by a positive integer
    factor  ::= integer | `true` | `false` | name | name `[` expr (`,` expr)? `]` | `-` factor | `(` expr `)`
              | (`min` | `max`) `(` expr (`,` expr)* `)` | `abs` `(` expr `)` | `isqrt` `(` expr `)`
              | `select` `(` expr `,` expr `,` expr `)`
              | `exists` name `in` `[` expr `,` expr `]` `:` expr    // both ends included; static ends
              | `forall` name `in` `[` expr `,` expr `]` `:` expr    // not exists .. : not expr
              | `first` name `in` `[` expr `,` expr `)` `:` expr     // least name with expr, or the upper end

Integers are mathematical integers; `i` is the row, `j` the column, `rows` and `cols` the lengths. `start[i]` is an
entry of a table, `sel[i, t]` number `t` of the integers of an entry that holds several. A look-up outside its table
reads the nearest entry, along each of its indices (an empty table reads 0), and a division by less than 1 is one by 1,
so that every expression has a value whatever the metadata. `a != b` is read as `not a == b`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cmir.errors import suggestion

Sort = Literal["int", "bool"]


@dataclass(frozen=True)
class Operator:
    """What the language knows of one operator: sorts of its operands and result, and how it is written."""

    operands: tuple[Sort, ...] | Sort  # a bare sort: any number of operands of it
    result: Sort
    symbol: str  # infix symbol or function name
    precedence: int = 100  # of an infix symbol; 100: never needs parentheses


OPERATORS: Final[Mapping[str, Operator]] = {
    "or": Operator("bool", "bool", "or", 10),
    "and": Operator("bool", "bool", "and", 20),
    "not": Operator(("bool",), "bool", "not", 30),
    "lt": Operator(("int", "int"), "bool", "<", 40),
    "le": Operator(("int", "int"), "bool", "<=", 40),
    "eq": Operator(("int", "int"), "bool", "==", 40),
    "add": Operator(("int", "int"), "int", "+", 50),
    "sub": Operator(("int", "int"), "int", "-", 50),
    "mul": Operator(("int", "int"), "int", "*", 60),
    "floordiv": Operator(("int", "int"), "int", "floordiv", 60),
    "mod": Operator(("int", "int"), "int", "mod", 60),
    "neg": Operator(("int",), "int", "-", 70),
    "min": Operator("int", "int", "min"),
    "max": Operator("int", "int", "max"),
    "abs": Operator(("int",), "int", "abs"),
    "isqrt": Operator(("int",), "int", "isqrt"),
    "select": Operator(("bool", "int", "int"), "int", "select"),
    "lookup": Operator("int", "int", "[]"),
    "exists": Operator(("int", "int", "bool"), "bool", "exists", 5),
    "first": Operator(("int", "int", "bool"), "int", "first", 5),
    "const": Operator((), "int", ""),
    "bool": Operator((), "bool", ""),
    "var": Operator((), "int", ""),
}
INFIX: Final = {info.symbol: name for name, info in OPERATORS.items() if info.precedence in (40, 50, 60)}
BINDERS: Final = frozenset({"exists", "first"})
RESERVED: Final = frozenset({"i", "j", "rows", "cols"})
KEYWORDS: Final = RESERVED | {
    *("and", "or", "not", "floordiv", "mod", "min", "max", "abs", "isqrt", "select"),
    *("exists", "forall", "first", "in", "true", "false", "when", "for", "nondecreasing", "contiguous", "over"),
}


FUNCTIONS: Final = ("min", "max", "abs", "isqrt", "select")
MAX_SIZE: Final = 100_000


class ExpressionTooLargeError(RecursionError):
    """A term whose text would be too long: rewriting has doubled it again and again."""


@dataclass(frozen=True, eq=False)
class Expr:
    """An immutable term.

    `data` is the value of a `const` or `bool`, the name of a `var`, the table of a `lookup`, what a binder binds.
    """

    op: str
    args: tuple[Expr, ...] = ()
    data: int | str = 0
    _hash: int = field(init=False, repr=False, default=0)
    _size: int = field(init=False, repr=False, default=1)  # as written out: a shared subterm counts each time

    def __post_init__(self) -> None:
        object.__setattr__(self, "_size", 1 + sum(a._size for a in self.args))
        if self._size > MAX_SIZE:
            raise ExpressionTooLargeError(f"an expression of the rule grows past {MAX_SIZE} terms; make it simpler")
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.data)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expr)
            and self._hash == other._hash
            and self.op == other.op
            and self.data == other.data
            and self.args == other.args
        )

    @property
    def sort(self) -> Sort:
        return OPERATORS[self.op].result

    @property
    def name(self) -> str:
        """The name that a `var`, `lookup` or binder carries."""
        assert isinstance(self.data, str)
        return self.data

    @property
    def value(self) -> int:
        """The value of a `const` or `bool`."""
        assert isinstance(self.data, int)
        return self.data

    def __str__(self) -> str:
        return show(self)


# Constructors. They check sorts and do no rewriting.


def make(op: str, *args: Expr, data: int | str = 0) -> Expr:
    sorts = OPERATORS[op].operands
    want = (sorts,) * len(args) if isinstance(sorts, str) else sorts
    assert tuple(a.sort for a in args) == want, f"{op} takes {want}, got {[str(a) for a in args]}"
    return Expr(op, args, data)


def const(value: int) -> Expr:
    return Expr("const", (), value)


def var(name: str) -> Expr:
    return Expr("var", (), name)


def boolean(value: bool) -> Expr:
    return Expr("bool", (), int(value))


TRUE: Final = boolean(True)
FALSE: Final = boolean(False)
I: Final = var("i")  # noqa: E741  the row
J: Final = var("j")  # the column
ROWS: Final = var("rows")
COLS: Final = var("cols")
ZERO: Final = const(0)
ONE: Final = const(1)


def add(a: Expr, b: Expr) -> Expr:
    return make("add", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return make("sub", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return make("mul", a, b)


def lt(a: Expr, b: Expr) -> Expr:
    return make("lt", a, b)


def le(a: Expr, b: Expr) -> Expr:
    return make("le", a, b)


def eq(a: Expr, b: Expr) -> Expr:
    return make("eq", a, b)


def not_(a: Expr) -> Expr:
    return make("not", a)


def select(cond: Expr, a: Expr, b: Expr) -> Expr:
    return make("select", cond, a, b)


def lookup(table: str, *indices: Expr) -> Expr:
    """An entry of a table: one index, or two where every entry holds several integers."""
    return make("lookup", *indices, data=table)


def first(name: str, lo: Expr, hi: Expr, pred: Expr) -> Expr:
    return make("first", lo, hi, pred, data=name)


def _nary(op: str, neutral: Expr, absorbing: Expr, args: Sequence[Expr]) -> Expr:
    """Flatten, drop repeats and neutral operands; one operand stands for itself."""
    flat = dict.fromkeys(x for a in args for x in (a.args if a.op == op else (a,)) if x != neutral)
    if absorbing in flat:
        return absorbing
    if len(flat) <= 1:
        return next(iter(flat), neutral)
    return make(op, *flat)


def and_(*args: Expr) -> Expr:
    return _nary("and", TRUE, FALSE, args)


def or_(*args: Expr) -> Expr:
    return _nary("or", FALSE, TRUE, args)


def minimum(*args: Expr) -> Expr:
    return _extremum("min", args)


def maximum(*args: Expr) -> Expr:
    return _extremum("max", args)


def _extremum(op: str, args: Sequence[Expr]) -> Expr:
    flat = dict.fromkeys(x for a in args for x in (a.args if a.op == op else (a,)))
    return next(iter(flat)) if len(flat) == 1 else make(op, *flat)


# Structure.


def walk(e: Expr) -> Iterator[Expr]:
    """Every subterm, parents first."""
    yield e
    for a in e.args:
        yield from walk(a)


def size(e: Expr) -> int:
    """The number of terms that `e` is written with."""
    return e._size  # pyright: ignore[reportPrivateUsage]


@cache
def free_names(e: Expr) -> frozenset[str]:
    """Names of variables and tables that the term reads, bound names left out."""
    own = frozenset({e.name}) if e.op in ("var", "lookup") else frozenset[str]()
    if e.op in BINDERS:
        lo, hi, body = e.args
        return own | free_names(lo) | free_names(hi) | (free_names(body) - {e.name})
    return own.union(*map(free_names, e.args)) if e.args else own


def depends(e: Expr, name: str) -> bool:
    return name in free_names(e)


def rebuild(e: Expr, args: tuple[Expr, ...]) -> Expr:
    return e if args == e.args else Expr(e.op, args, e.data)


def substitute(e: Expr, env: Mapping[Expr, Expr]) -> Expr:
    """Replace subterms. A binder hides its own name."""
    if e in env:
        return env[e]
    if not e.args:
        return e
    if e.op in BINDERS and (bound := var(e.name)) in env:
        env = {k: v for k, v in env.items() if k != bound}
    return rebuild(e, tuple(substitute(a, env) for a in e.args))


def map_bottom_up(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Apply `f` to every subterm, children first."""
    return f(rebuild(e, tuple(map_bottom_up(a, f) for a in e.args)) if e.args else e)


# Text.


def show(e: Expr, precedence: int = 0) -> str:
    """The text of a term, with the parentheses it needs under an operator of that precedence."""
    info = OPERATORS["exists" if is_forall(e) else e.op]
    text = _show(e, info)
    return (
        f"({text})" if info.precedence < precedence or (e.op == "const" and e.value < 0 and precedence > 60) else text
    )


def is_forall(e: Expr) -> bool:
    """Whether a term is `not exists .. : not p`, which reads `forall .. : p`."""
    return e.op == "not" and e.args[0].op == "exists" and e.args[0].args[2].op == "not"


def _show(e: Expr, info: Operator) -> str:
    match e.op:
        case "not" if is_forall(e):
            inside = e.args[0]
            lo, hi, body = inside.args
            return f"forall {inside.name} in [{show(lo)}, {show(hi)}] : {show(body.args[0], 6)}"
        case "const":
            return str(e.value)
        case "bool":
            return "true" if e.value else "false"
        case "var":
            return e.name
        case "lookup":
            return f"{e.name}[{', '.join(map(show, e.args))}]"
        case "exists":
            return f"exists {e.name} in [{show(e.args[0])}, {show(e.args[1])}] : {show(e.args[2], 6)}"
        case "first":
            return f"first {e.name} in [{show(e.args[0])}, {show(e.args[1])}) : {show(e.args[2], 6)}"
        case "not" | "neg":
            sign = "not " if e.op == "not" else "-"
            return sign + show(e.args[0], info.precedence + (e.op == "neg"))
        case "min" | "max" | "abs" | "isqrt" | "select":
            return f"{info.symbol}({', '.join(show(a) for a in e.args)})"
        case _:
            # Infix, left to right: the right operand (of a comparison, both) needs parentheses at equal strength.
            head, *tail = e.args
            strict = info.precedence + (info.precedence >= 40)
            left = show(head, strict if info.precedence == 40 else info.precedence)
            return f" {info.symbol} ".join([left, *(show(a, strict) for a in tail)])


_OPERATORS_ELSEWHERE: Final = {
    "%": "a remainder in an expression is written mod",
    "|": "in place of '|' write or; in place of an or of clauses, a second clause",
}


class ExprParser:
    """The grammar above on the tokens of an MLIR parser, by recursive descent."""

    def __init__(self, parser: AttrParser) -> None:
        self.p = parser

    def parse(self) -> Expr:
        return self._junction("or", lambda: self._junction("and", self._not))

    def of_sort(self, sort: Sort) -> Expr:
        start = self.p.pos
        e = self.parse()
        if e.sort != sort:
            noun = {"int": "an integer", "bool": "a condition"}
            end = self.p.pos
            hint = suggestion(e.name, ("exists", "forall", "first", "not")) if e.op == "var" else ""
            if not hint and (following := self.p.parse_optional_identifier()) is not None:
                hint = suggestion(following, ("floordiv", "mod", "and", "or"))
            self.p.raise_error(f"expected {noun[sort]}, got {noun[e.sort]}: {e}{hint}", start, end)
        return e

    def _refuse_other_operators(self) -> None:
        """On the line of an operand, `%w` and `|` are operators of other languages."""
        content, at = self.p.lexer.input.content, self.p.pos
        instead = _OPERATORS_ELSEWHERE.get(content[at : at + 1])
        if instead is not None and content[content.rfind("\n", 0, at) + 1 : at].strip():
            self.p.raise_error(instead, at, at + 1)

    def _junction(self, op: str, operand: Callable[[], Expr]) -> Expr:
        start = self.p.pos
        args = [operand()]
        while self.p.parse_optional_keyword(op):
            args.append(operand())
        flat = [x for a in args for x in (a.args if a.op == op else (a,))]
        return args[0] if len(args) == 1 else self._make(op, flat, start)

    def _not(self) -> Expr:
        start = self.p.pos
        if self.p.parse_optional_keyword("not"):
            return self._make("not", [self._not()], start)
        return self._comparison()

    def _comparison(self) -> Expr:
        start = self.p.pos
        left = self._sum()
        parts: list[Expr] = []
        while (symbol := self._comparison_symbol()) is not None:
            right = self._sum()
            swap = symbol.startswith(">")
            pair = [right, left] if swap else [left, right]
            op = {">": "lt", ">=": "le", "!=": "eq"}.get(symbol) or INFIX[symbol]
            part = self._make(op, pair, start)
            parts.append(not_(part) if symbol == "!=" else part)
            left = right
        return left if not parts else parts[0] if len(parts) == 1 else make("and", *parts)

    def _comparison_symbol(self) -> str | None:
        p = self.p
        if p.parse_optional_punctuation("<"):
            return "<=" if p.parse_optional_punctuation("=") else "<"
        if p.parse_optional_punctuation(">"):
            return ">=" if p.parse_optional_punctuation("=") else ">"
        if p.parse_optional_punctuation("="):
            p.parse_punctuation("=", " in an expression: equality is written ==")
            return "=="
        return p.parse_optional_characters("!=")  # a token of the driver's parser; plain xDSL's has none

    def _sum(self) -> Expr:
        start = self.p.pos
        left = self._product()
        while True:
            if self.p.parse_optional_punctuation("+"):
                left = self._make("add", [left, self._product()], start)
            elif self.p.parse_optional_punctuation("-"):
                left = self._make("sub", [left, self._product()], start)
            else:
                return left

    def _product(self) -> Expr:
        start = self.p.pos
        left = self._factor()
        while True:
            if self.p.parse_optional_punctuation("/"):
                self.p.raise_error("division in an expression rounds down: write floordiv", self.p.pos - 1, self.p.pos)
            if self.p.parse_optional_punctuation("*"):
                left = self._make("mul", [left, self._factor()], start)
            elif (word := self.p.parse_optional_keyword_in(("floordiv", "mod"))) is not None:
                left = self._make(word, [left, self._factor()], start)
            else:
                self._refuse_other_operators()
                return left

    def _factor(self) -> Expr:
        p, start = self.p, self.p.pos
        if p.parse_optional_punctuation("-"):
            inner = self._factor()
            return const(-inner.value) if inner.op == "const" else self._make("neg", [inner], start)
        if p.parse_optional_punctuation("("):
            e = self.parse()
            p.parse_punctuation(")")
            return e
        if (number := p.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
            return const(number)
        name = p.parse_optional_identifier()
        if name is None and p.lexer.input.content.startswith("%", start):
            p.raise_error("names stand without % in expressions", start, start + 1)
        if name is None:
            p.raise_error("expected an expression: a number, a name, or '('")
        if name in ("true", "false"):
            return boolean(name == "true")
        if name in FUNCTIONS:
            return self._make(name, p.parse_comma_separated_list(p.Delimiter.PAREN, self.parse), start)
        if name in BINDERS:
            return self._binder(name, start)
        if name == "forall":
            return self._forall(start)
        if name in KEYWORDS - RESERVED:
            p.raise_error(f"'{name}' is a keyword of the expression language", start, start + len(name))
        if p.parse_optional_punctuation("("):
            hint = suggestion(name, FUNCTIONS) or f"; they are {', '.join(FUNCTIONS)}"
            p.raise_error(f"unknown function '{name}'{hint}", start, start + len(name))
        if p.parse_optional_punctuation("["):
            indices = [self.parse()]
            if p.parse_optional_punctuation(","):
                indices.append(self.parse())
            p.parse_punctuation("]")
            return self._make("lookup", indices, start, name)
        return var(name)

    def _forall(self, start: int) -> Expr:
        some = self._binder("exists", start)
        lo, hi, body = some.args
        return not_(make("exists", lo, hi, not_(body), data=some.name))

    def _binder(self, op: str, start: int) -> Expr:
        p = self.p
        name = p.parse_identifier(context_msg=f" after '{op}'")
        p.parse_keyword("in")
        p.parse_punctuation("[")
        lo = self.parse()
        p.parse_punctuation(",")
        hi = self.parse()
        p.parse_punctuation("]" if op == "exists" else ")")
        p.parse_punctuation(":")
        return self._make(op, [lo, hi, self.parse()], start, name)

    def _make(self, op: str, args: list[Expr], start: int, data: int | str = 0) -> Expr:
        """`make`, with the sort errors of a user's text reported at that text."""
        info = OPERATORS[op]
        want = (info.operands,) * len(args) if isinstance(info.operands, str) else info.operands
        if len(want) != len(args) or not args:
            self.p.raise_error(
                f"'{info.symbol}' takes {len(want) or 'at least one'} operands, got {len(args)}", start, self.p.pos
            )
        for a, sort in zip(args, want, strict=True):
            if a.sort != sort:
                noun = {"int": "an integer", "bool": "a condition"}
                self.p.raise_error(f"'{info.symbol}' takes {noun[sort]}, got {noun[a.sort]}: {a}", start, self.p.pos)
        return Expr(op, tuple(args), data)


def parse_expr(parser: AttrParser, sort: Sort) -> Expr:
    """Parse one expression of the given sort at the parser's position; a located ParseError if there is none."""
    return ExprParser(parser).of_sort(sort)


@irdl_attr_definition
class ExprAttr(Data[Expr]):
    """`#maskspec.expr<[start[i] + 1]>`; the ops of maskspec and interval print it inline."""

    name = "maskspec.expr"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Expr:
        # The square brackets keep a closing `>` from being read as a comparison.
        with parser.in_angle_brackets(), parser.in_square_brackets():
            return ExprParser(parser).parse()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets(), printer.in_square_brackets():
            printer.print_string(show(self.data))
