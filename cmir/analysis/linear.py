"""Linear forms and simplification of index expressions.

A linear form is `c0 + sum(ck * atom_k)`, its atoms being terms that are not themselves linear (a name, a look-up,
`x floordiv 8`, `min(..)`). Two terms with the same form are equal; a comparison whose two sides differ by a constant is
decided. Everything else in the compiler that compares endpoints starts here, because most questions end here.

    simplify((i + 4 * n + 3) floordiv 4)  ->  n + (i + 3) floordiv 4
    simplify(max(0, i, i + 1))            ->  max(0, i + 1)
    simplify(0 < i - 5)                   ->  5 < i
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import gcd, isqrt

from cmir.dialects.expr import (
    BINDERS,
    FALSE,
    TRUE,
    Expr,
    add,
    and_,
    boolean,
    const,
    make,
    maximum,
    minimum,
    mul,
    not_,
    or_,
    rebuild,
    sub,
)


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(coefficient * atom)`, no zero coefficients; the order of `terms` is that of first appearance."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    @staticmethod
    def of(terms: Mapping[Expr, int], constant: int) -> Linear:
        return Linear(tuple((a, c) for a, c in terms.items() if c), constant)

    def plus(self, other: Linear, k: int = 1, constant: int = 0) -> Linear:
        """`self + k * other + constant`."""
        terms = dict(self.terms)
        for a, c in other.terms:
            terms[a] = terms.get(a, 0) + c * k
        return Linear.of(terms, self.constant + other.constant * k + constant)

    def __add__(self, other: Linear) -> Linear:
        return self.plus(other)

    def __sub__(self, other: Linear) -> Linear:
        return self.plus(other, -1)

    def scaled(self, k: int) -> Linear:
        return Linear.of({a: c * k for a, c in self.terms}, self.constant * k)

    def coefficient(self, atom: Expr) -> int:
        for a, c in self.terms:
            if a == atom:
                return c
        return 0

    def without(self, atom: Expr) -> Linear:
        return Linear(tuple((a, c) for a, c in self.terms if a != atom), self.constant)

    @property
    def key(self) -> frozenset[tuple[Expr, int]]:
        """The form without its constant, order forgotten."""
        return frozenset(self.terms)

    @property
    def is_constant(self) -> bool:
        return not self.terms


@cache
def linear(e: Expr) -> Linear:
    """The linear form of an integer term, its atoms simplified."""
    match e.op:
        case "const":
            return Linear((), e.value)
        case "add":
            return _rejoin(linear(e.args[0]) + linear(e.args[1]))
        case "sub":
            return _rejoin(linear(e.args[0]) - linear(e.args[1]))
        case "neg":
            return linear(e.args[0]).scaled(-1)
        case "mul":
            a, b = linear(e.args[0]), linear(e.args[1])
            if a.is_constant:
                return b.scaled(a.constant)
            if b.is_constant:
                return a.scaled(b.constant)
            return _product(a, b)
        case _:
            atom = _simplify_atom(e)
            return linear(atom) if atom.op in ("const", "add", "sub", "neg", "mul") else Linear(((atom, 1),), 0)


def _product(a: Linear, b: Linear) -> Linear:
    """`(2 * q + 1) * d = 2 * (d * q) + d`: products of two unknowns are atoms, their factors in alphabetical order."""
    out = a.scaled(b.constant) + b.scaled(a.constant) - Linear((), a.constant * b.constant)
    for x, m in a.terms:
        for y, n in b.terms:
            out += Linear(((mul(*sorted((x, y), key=str)), m * n),), 0)
    return out


def _rejoin(form: Linear) -> Linear:
    """`k * (u floordiv k) + u mod k = u`, for every multiple of it in the form."""
    for atom, c in form.terms:
        if atom.op == "mod":
            u, k = atom.args
            whole = linear(mul(make("floordiv", u, k), k))  # its atom is the quotient, or the product with a scalar
            if len(whole.terms) == 1 and not whole.constant:
                ((product, n),) = whole.terms
                if form.coefficient(product) == c * n:
                    return _rejoin(form.without(atom).without(product) + linear(u).scaled(c))
    return form


def from_linear(form: Linear) -> Expr:
    """A readable term: positive parts first, the constant last."""
    out: Expr | None = None
    for atom, c in sorted(form.terms, key=lambda t: t[1] < 0):
        part = atom if abs(c) == 1 else mul(atom, const(abs(c)))
        out = (part if c > 0 else make("neg", part)) if out is None else add(out, part) if c > 0 else sub(out, part)
    k = form.constant
    if out is None:
        return const(k)
    if out.op == "neg" and k > 0:
        return sub(const(k), out.args[0])
    return add(out, const(k)) if k > 0 else sub(out, const(-k)) if k < 0 else out


def difference(a: Expr, b: Expr) -> int | None:
    """`a - b` when it is a constant."""
    d = linear(a) - linear(b)
    return d.constant if d.is_constant else None


@cache
def simplify(e: Expr) -> Expr:
    """An equal term, smaller where the linear form or a constant shows how."""
    if e.sort == "int":
        return from_linear(linear(e))
    match e.op:
        case "and":
            return _contradiction(and_(*map(simplify, e.args)))
        case "or":
            return _tautology(or_(*map(simplify, e.args)))
        case "not":
            return negate(simplify(e.args[0]))
        case "lt" | "le" | "eq":
            return comparison(e.op, linear(e.args[1]) - linear(e.args[0]))
        case "exists":
            lo, hi, body = map(simplify, e.args)
            d = difference(lo, hi)
            return FALSE if body == FALSE or (d is not None and d > 0) else rebuild(e, (lo, hi, body))
        case _:
            return e


def comparison(op: str, gap: Linear) -> Expr:
    """`gap >= 0` (le), `gap > 0` (lt) or `gap == 0` (eq): no negative terms on either side, no common factor."""
    if gap.is_constant:
        return boolean({"lt": gap.constant > 0, "le": gap.constant >= 0, "eq": gap.constant == 0}[op])
    k, c = gcd(*(c for _, c in gap.terms)), gap.constant
    if op == "eq" and c % k:
        return FALSE
    c = (c - 1) // k + 1 if op == "lt" else c // k
    # a < b + 1 reads better as a <= b, and a + 1 <= b as a < b.
    op, c = ("le", 0) if (op, c) == ("lt", 1) else ("lt", 0) if (op, c) == ("le", -1) else (op, c)
    left = Linear(tuple((a, -n // k) for a, n in gap.terms if n < 0), max(-c, 0))
    right = Linear(tuple((a, n // k) for a, n in gap.terms if n > 0), max(c, 0))
    return make(op, from_linear(left), from_linear(right))


def inequalities(conditions: Iterable[Expr]) -> Iterator[Linear]:
    """What the comparisons among some conditions say, as forms that are >= 0; other conditions are passed over."""
    for c in conditions:
        if c.op in ("lt", "le", "eq"):
            yield from _forms_of(c)


@lru_cache(maxsize=4096)  # every draw of metadata asks for those of the same facts
def _forms_of(comparison: Expr) -> tuple[Linear, ...]:
    gap = linear(comparison.args[1]) - linear(comparison.args[0])
    match comparison.op:
        case "lt":
            return (gap + Linear((), -1),)
        case "le":
            return (gap,)
        case _:
            return gap, gap.scaled(-1)


def _contradiction(e: Expr) -> Expr:
    return FALSE if e.op == "and" and any(negate(a) in e.args for a in e.args) else e


def _tautology(e: Expr) -> Expr:
    return TRUE if e.op == "or" and any(negate(a) in e.args for a in e.args) else e


def negate(e: Expr) -> Expr:
    """The negation of a condition, pushed through comparisons and connectives; `==` and binders stay under a `not`."""
    match e.op:
        case "bool":
            return boolean(not e.value)
        case "not":
            return e.args[0]
        case "lt":
            return make("le", e.args[1], e.args[0])
        case "le":
            return make("lt", e.args[1], e.args[0])
        case "and":
            return or_(*map(negate, e.args))
        case "or":
            return and_(*map(negate, e.args))
        case _:
            return not_(e)


def _simplify_atom(e: Expr) -> Expr:
    """Simplify a term that is not a sum or product."""
    if e.op in BINDERS:
        lo, hi, body = map(simplify, e.args)
        return hi if body == FALSE else rebuild(e, (lo, hi, body))
    args = tuple(map(simplify, e.args))
    match e.op:
        case "floordiv" | "mod" if args[1].op == "const" and args[1].value > 0:
            return _divide(e.op, args[0], args[1].value)
        case "min" | "max":
            return _extremum(e.op, args)
        case "abs":
            x = args[0]
            return const(abs(x.value)) if x.op == "const" else maximum(x, simplify(make("neg", x)))
        case "isqrt" if args[0].op == "const" and args[0].value >= 0:
            return const(isqrt(args[0].value))
        case "select":
            cond, a, b = args
            return a if a == b or cond == TRUE else b if cond == FALSE else rebuild(e, args)
        case _:
            return rebuild(e, args)


def _divide(op: str, x: Expr, k: int) -> Expr:
    """`(k*q + r) floordiv k = q + r floordiv k` and `(k*q + r) mod k = r mod k`."""
    form = linear(x)
    quotient = Linear.of({a: c // k for a, c in form.terms if c % k == 0}, form.constant // k)
    rest = Linear.of({a: c for a, c in form.terms if c % k}, form.constant % k)
    if rest.is_constant or k == 1:
        return from_linear(quotient) if op == "floordiv" else const(rest.constant if k > 1 else 0)
    inner = from_linear(rest)
    if inner.op in ("floordiv", "mod") and (again := _divide_again(op, inner, k)) is not None:
        return again if op == "mod" else add(from_linear(quotient), again)
    atom = make(op, inner, const(k))
    return atom if op == "mod" or quotient == Linear((), 0) else add(from_linear(quotient), atom)


def _divide_again(op: str, inner: Expr, k: int) -> Expr | None:
    """`(x floordiv a) floordiv k = x floordiv (a * k)`, and a remainder mod a of which k divides a, or a divides k."""
    if inner.args[1].op != "const":
        return None
    x, a = inner.args[0], inner.args[1].value
    match inner.op, op:
        case "floordiv", "floordiv":
            return make("floordiv", x, const(a * k))
        case "mod", "mod" if k % a == 0 or a % k == 0:
            return make("mod", x, const(min(a, k)))
        case "mod", "floordiv" if k >= a:
            return const(0)
        case _:
            return None


def _extremum(op: str, args: Iterable[Expr]) -> Expr:
    """Drop the operands that another operand beats by a constant."""
    build = minimum if op == "min" else maximum
    sign = 1 if op == "min" else -1
    together = build(*args)
    operands = together.args if together.op == op else (together,)
    kept: list[Expr] = []
    for x in operands:
        gaps = [difference(x, y) for y in kept]
        if any(g is not None and g * sign >= 0 for g in gaps):
            continue
        kept = [y for y, g in zip(kept, gaps, strict=True) if g is None]
        kept.append(x)
    return build(*kept)
