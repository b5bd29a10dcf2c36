"""Terms: what `j < history` is in Python. Integers and conditions over rows, columns and metadata, built by operators.

A term knows what it means (`expr`), how a rule computes it (`op` on `operands`), and where the user wrote it
(`location`). What cannot be in the rule language is refused here, when it is written: a `TypeError` for the wrong kind
of operand, a `SpecError` with the user's line for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Final, Literal, NoReturn

from cmir.analysis.linear import simplify
from cmir.dialects import expr as ex
from cmir.dialects.expr import Expr, free_names, show
from cmir.dialects.maskspec import Parameter
from cmir.dialects.spec_names import CIRCLE, instead_of_square
from cmir.errors import SourceLocation, SpecError, as_python
from cmir.frontend.bound import BOUND, unique_name, users_name
from cmir.frontend.source import not_too_deep, user_location

CHAIN: Final = (
    "a term has no truth value while the spec is written: write (0 <= a) & (a <= b) for 0 <= a <= b, "
    "&, |, ~ for and, or, not, spec.where(...) for if, spec.minimum and spec.maximum for min and max"
)


@dataclass(eq=False)
class Owner:
    """The spec that terms belong to, as far as they need to know it."""

    name: str
    parameters: dict[str, Parameter] = field(default_factory=dict[str, Parameter])
    bound: int = 0

    def per(self, name: str) -> str:
        """The kind of a declared name; constant tables are read like free ones."""
        return self.parameters[name].kind if name in self.parameters else "free"

    def value(self, e: Expr) -> int | None:
        """The value of a term that is known when the spec is written: literals and statics only."""
        if not self.is_static(e):
            return None
        values = {name: self.parameters[name].value for name in free_names(e)}
        statics = {ex.var(name): ex.const(value) for name, value in values.items() if value is not None}
        known = simplify(ex.substitute(e, statics))
        return known.value if known.op == "const" else None

    def is_static(self, e: Expr, *, bound: bool = False) -> bool:
        """Whether a term reads nothing but statics (and, with `bound`, indices of an `exists`)."""
        return all(self.per(name) == "static" or (bound and name.startswith(BOUND)) for name in free_names(e))

    def fresh(self, name: str) -> str:
        """A name for a bound index that differs from every other name, so that no term can capture it."""
        self.bound += 1
        return unique_name(name, self.bound)


class Term:
    """An integer or a condition over `spec.i`, `spec.j`, lengths and metadata.

    Integers take `+ - abs()`, `*` by an integer known at compile time, `//` and `%` (rounding down) by a positive one
    or by a scalar that a fact says is at least 1, and the comparisons, `==` and `!=` too; conditions take `& | ~`.
    Python's chains (`a <= b <= c`), `and`, `or`, `not`, `if`, `min` and `max` ask a term for its truth value and raise
    `TypeError`. Terms are hashed by identity.
    """

    __slots__ = ("expr", "location", "op", "operands", "owner")
    __array_ufunc__ = None  # a NumPy integer on the left leaves the operator to the term

    def __init__(self, owner: Owner, op: str, expr: Expr, operands: tuple[Term, ...] = ()) -> None:
        self.owner = owner
        self.op = op
        self.expr = expr
        self.operands = operands
        self.location: SourceLocation | None = user_location()

    def __repr__(self) -> str:
        return re.sub(rf"\b{BOUND}\w+_\d+\b", lambda bound: users_name(bound[0]), as_python(show(self.expr)))

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(CHAIN)

    def __add__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "add", "+", self, other)

    def __radd__(self, other: int) -> Term:
        return _arithmetic(self.owner, "add", "+", other, self)

    def __sub__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "sub", "-", self, other)

    def __rsub__(self, other: int) -> Term:
        return _arithmetic(self.owner, "sub", "-", other, self)

    def __mul__(self, other: Term | int) -> Term:
        return _product(self.owner, self, other)

    def __rmul__(self, other: int) -> Term:
        return _product(self.owner, other, self)

    def __floordiv__(self, other: Term | int) -> Term:
        return _division(self.owner, "floordiv", "//", self, other)

    def __rfloordiv__(self, other: int) -> Term:
        return _division(self.owner, "floordiv", "//", other, self)

    def __mod__(self, other: Term | int) -> Term:
        return _division(self.owner, "mod", "%", self, other)

    def __rmod__(self, other: int) -> Term:
        return _division(self.owner, "mod", "%", other, self)

    def __truediv__(self, other: object) -> NoReturn:
        raise TypeError("a mask is integer arithmetic: write // (rounding down), not /")

    __rtruediv__ = __truediv__

    def __pow__(self, other: object) -> NoReturn:
        raise TypeError(
            "a rule has no **: write x * x where x is known at compile time; "
            f"{CIRCLE}: spec.exists(-r, r, lambda d: ..)"
        )

    __rpow__ = __pow__

    @not_too_deep
    def __neg__(self) -> Term:
        x = integer(self.owner, self, "'-'")
        return Term(self.owner, "sub", ex.make("neg", x.expr), (constant(self.owner, 0), x))

    @not_too_deep
    def __abs__(self) -> Term:
        x = integer(self.owner, self, "'abs'")
        return Term(self.owner, "max", ex.make("abs", x.expr), (x, -x))

    def __lt__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "lt", "<", self, other)

    def __le__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "le", "<=", self, other)

    def __gt__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "lt", ">", other, self)

    def __ge__(self, other: Term | int) -> Term:
        return _arithmetic(self.owner, "le", ">=", other, self)

    def __eq__(self, other: Term | int) -> Term:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _arithmetic(self.owner, "eq", "==", self, other)

    @not_too_deep
    def __ne__(self, other: Term | int) -> Term:  # pyright: ignore[reportIncompatibleMethodOverride]
        same = _arithmetic(self.owner, "eq", "!=", self, other)
        return Term(self.owner, "ne", ex.not_(same.expr), same.operands)

    def __and__(self, other: Term | bool) -> Term:
        return _junction(self.owner, "and", "&", self, other)

    def __rand__(self, other: bool) -> Term:
        return _junction(self.owner, "and", "&", other, self)

    def __or__(self, other: Term | bool) -> Term:
        return _junction(self.owner, "or", "|", self, other)

    def __ror__(self, other: bool) -> Term:
        return _junction(self.owner, "or", "|", other, self)

    @not_too_deep
    def __invert__(self) -> Term:
        p = condition(self.owner, self, "'~'")
        return Term(self.owner, "xor", ex.not_(p.expr), (p, condition(self.owner, True, "'~'")))


class Indexed:
    """A table: its entries are terms, the table itself is none. `index` is what one reads it by, for messages."""

    def __init__(self, owner: Owner, name: str) -> None:
        self.owner = owner
        self.name = name

    index = "k"

    def advice(self) -> str:
        return f"'{self.name}' is a table: read an entry of it, as in {self.name}[{self.index}]"

    def refuse(self, *_: object) -> NoReturn:
        raise TypeError(self.advice())

    __hash__ = object.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = refuse
    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = __iter__ = __contains__ = __len__ = refuse
    __eq__ = __ne__ = refuse  # pyright: ignore[reportAssignmentType]

    @not_too_deep
    def entry(self, *indices: Term) -> Term:
        return Term(self.owner, "lookup", ex.lookup(self.name, *(at.expr for at in indices)), indices)


# Operands: what a user wrote, as a term of the right sort and the right spec.


def integer(owner: Owner, value: object, what: str) -> Term:
    """An integer operand; a Python (or NumPy) integer becomes a constant.

    Raises:
        TypeError: not an integer; `what` names the operator or argument that takes one.
        SpecError: a term of another spec.
    """
    literal = _literal(value)
    return _term(owner, value, what, "int") if literal is None else constant(owner, literal)


def condition(owner: Owner, value: object, what: str) -> Term:
    """A condition; True and False are conditions. Errors as `integer`."""
    if isinstance(value, bool):
        return Term(owner, "bool", ex.boolean(value))
    return _term(owner, value, what, "bool")


def constant(owner: Owner, value: int) -> Term:
    return Term(owner, "const", ex.const(value))


_NOUN = {"int": "an integer", "bool": "a condition"}
_INSTEAD = {
    "int": "spec.where(condition, 1, 0) makes it a number",
    "bool": "compare it, and keep comparisons around & and | in parentheses, as in (0 <= a) & (a <= b)",
}


def _term(owner: Owner, value: object, what: str, sort: ex.Sort) -> Term:
    if isinstance(value, Indexed):
        raise TypeError(f"{what} takes {_NOUN[sort]}; {value.advice()}")
    if not isinstance(value, Term):
        raise TypeError(f"{what} takes {_NOUN[sort]}, got {_shown(value)}")
    same_owner(owner, value.owner, value, what)
    if value.expr.sort != sort:
        raise TypeError(f"{what} takes {_NOUN[sort]}, got {_NOUN[value.expr.sort]}: {value!r}; {_INSTEAD[sort]}")
    return value


def same_owner(owner: Owner, other: Owner, thing: object, what: str) -> None:
    if other is not owner:
        mixed = f"{what} mixes two specs: '{thing!r}' belongs to '{other.name}', not to '{owner.name}'"
        raise SpecError(mixed, user_location())


def number(value: object, what: str) -> int:
    """A Python (or NumPy) integer.

    Raises:
        TypeError: anything else, terms and bools among them.
    """
    literal = _literal(value)
    if literal is None:
        raise TypeError(f"{what} is a Python integer, got {_shown(value)}")
    return literal


def static(owner: Owner, term: Term, what: str) -> tuple[str, int]:
    """The name and the value of a static, where a number or a static is taken. Raises TypeError for other terms."""
    value = owner.value(term.expr)
    if term.expr.op != "var" or value is None:
        raise TypeError(f"{what} is a Python integer or a static, got {_shown(term)}")
    same_owner(owner, term.owner, term, what)
    return term.expr.name, value


def _literal(value: object) -> int | None:
    if isinstance(value, bool):  # an Integral to Python, a condition here
        return None
    return int(value) if isinstance(value, Integral) else None


def _shown(value: object) -> str:
    if isinstance(value, Term):
        return f"the term {value!r}"
    return f"the bool {value}" if isinstance(value, bool) else f"{value!r} ({type(value).__name__})"


def length_range(owner: Owner, ends: Sequence[Term | int], what: str) -> tuple[Expr, Expr]:
    """`(lo, hi)`, half-open, each one number for the whole sequence.

    Raises:
        TypeError: not a pair, or an end is not an integer.
        SpecError: an end reads a row, a column or a bound index.
    """
    if isinstance(ends, Term | int | Indexed) or len(ends) != 2:
        raise TypeError(f"{what} takes a range (lo, hi), half-open, got {ends!r}")
    lo, hi = (integer(owner, end, what) for end in ends)
    for end in (lo, hi):
        check_bound(end)
        if index := min({"i", "j"} & free_names(end.expr), default=None):
            wrong = f"an end of {what} is one number for the whole sequence: '{end!r}' reads '{index}'"
            raise SpecError(wrong, user_location())
    return lo.expr, hi.expr


def check_bound(term: Term, *inside: str) -> None:
    """No index of an `exists` is used outside of it; `inside` are the bound names that may be read."""
    if stray := min((n for n in free_names(term.expr) if n.startswith(BOUND) and n not in inside), default=None):
        raise SpecError(f"'{users_name(stray)}' is used outside of the function that binds it", term.location)


# Operators.


@not_too_deep
def _arithmetic(owner: Owner, op: str, symbol: str, left: object, right: object) -> Term:
    a, b = (integer(owner, x, f"'{symbol}'") for x in (left, right))
    return Term(owner, op, ex.make(op, a.expr, b.expr), (a, b))


def _product(owner: Owner, left: object, right: object) -> Term:
    out = _arithmetic(owner, "mul", "*", left, right)
    for factor in out.operands:
        # An index of an `exists` is as good as a constant: it takes static values.
        if owner.is_static(factor.expr, bound=True):
            return out
    instead = instead_of_square(*(factor.expr for factor in out.operands))
    raise SpecError(f"'*' multiplies by an integer known at compile time, got {out!r}{instead}", user_location())


def _division(owner: Owner, op: str, symbol: str, left: object, right: object) -> Term:
    out = _arithmetic(owner, op, symbol, left, right)
    divisor = out.operands[1]
    value = owner.value(divisor.expr)
    whole = all(
        name in ("rows", "cols") or owner.per(name) in ("scalar", "static") for name in free_names(divisor.expr)
    )
    if not whole or (value is not None and value <= 0):
        shown = f"{divisor!r}" if value is None or divisor.op == "const" else f"{divisor!r} = {value}"
        raise SpecError(
            f"'{symbol}' divides by a positive integer, the same for the whole sequence: known at compile time or a "
            f"scalar; got {shown}",
            user_location(),
        )
    return out


def _junction(owner: Owner, op: Literal["and", "or"], symbol: str, left: object, right: object) -> Term:
    a, b = (condition(owner, x, f"'{symbol}'") for x in (left, right))
    return fold(op, ex.and_ if op == "and" else ex.or_, [a, b])


@not_too_deep
def fold(op: str, make: Callable[..., Expr], terms: Sequence[Term]) -> Term:
    """Join terms two by two; where an operand adds nothing (`p & True`, `min(x, x)`), the other one stands for both."""
    out = terms[0]
    for term in terms[1:]:
        joined = make(out.expr, term.expr)
        if joined == term.expr:
            out = term
        elif joined != out.expr:
            out = Term(out.owner, op, joined, (out, term))
    return out
