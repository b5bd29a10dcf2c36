"""Random specs, as text: all that the language can say, of Regions, rules and clauses over every kind of metadata.

`terms`, `comparisons` and `rules` draw expressions, `specs` whole specs. What must be possible is listed, and looked
for in what is drawn, by test_language.py. Every name that is drawn is declared by `PARAMETERS` and `CONSTANTS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar, Final

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from cmir.dialects.expr import (
    COLS,
    ONE,
    OPERATORS,
    ROWS,
    ZERO,
    Expr,
    add,
    and_,
    boolean,
    const,
    eq,
    le,
    lookup,
    lt,
    make,
    maximum,
    minimum,
    mul,
    not_,
    or_,
    select,
    show,
    sub,
    var,
)
from cmir.interp.domain import TableValue

PARAMETERS = (
    "%s: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>, %w: index = 3, "
    "%g: index, %lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>, %pair: !maskspec.table<free x 3>, "
    "%k: index = 2, %near: !maskspec.table<col x k>"
)
CONSTANTS = (
    "maskspec.constants @odd [2, -1, 3, 0]",
    "maskspec.constants @root for d in [1 - w, w) : isqrt(w * w - d * d) - d mod 2",
)
STATICS: Final[Mapping[str, int | TableValue]] = {
    "w": 3,
    "k": 2,
    "odd": TableValue(np.array([2, -1, 3, 0])),
    "root": TableValue(np.array([2, 1, 3, 1, 2]), base=-2),
}
"""What `PARAMETERS` and `CONSTANTS` say at compile time."""
WIDTHS = {"lo": 2, "hi": 2, "pair": 3, "near": 2}
"""Of the tables whose entries are lists."""
LINES = 90
"""Of a spec at most: a longer one has hundreds of clauses, which take a minute and say nothing new."""

# fmt: off
FACTS = (
    "maskspec.assume 0 <= s and s <= rows",
    "maskspec.assume rows == cols",
    "maskspec.assume for i in [s, rows) : s <= t[i] and t[i] <= i",
    "maskspec.assume 0 <= t[i] and t[i] <= i",
    "maskspec.assume t[i] <= t[t[i]]",
    "maskspec.assume c[j] <= rows",
    "maskspec.assume for e in [0, 6) : 0 <= f[e]",
    "maskspec.nondecreasing t",
    "maskspec.nondecreasing t over [s, rows)",
    "maskspec.nondecreasing t over [0, s)",
    "maskspec.nondecreasing c",
    "maskspec.nondecreasing f",
    "maskspec.nondecreasing f over [1, s)",
    "maskspec.assume lo[i, 0] <= hi[i, 0] and lo[i, 1] <= hi[i, 1]",
    "maskspec.assume for i in [s, rows) : 0 <= lo[i, 0] and hi[i, 0] <= lo[i, 1]",
    "maskspec.assume for e in [0, s) : 0 <= pair[e, 0]",
    "maskspec.nondecreasing lo",
    "maskspec.contiguous t",
    "maskspec.contiguous c over [1, cols)",
    "maskspec.contiguous f over [0, s)",
    "maskspec.nondecreasing pair over [1, s)",
    "maskspec.nondecreasing near",
    "maskspec.contiguous near over [0, abs(s))",
    "maskspec.assume for j in [0, cols - w) : near[j, 0] < near[j, k - 1]",
    "maskspec.assume abs(s) <= 6 + isqrt(w)",
    "maskspec.assume s mod 4 != 1 or g floordiv 2 < 3",
    "maskspec.assume not (s < 2 and rows < s)",
    "maskspec.assume t[i] <= last where last = rows + w",
    'maskspec.assume select(s < 2, 0, min(s, cols)) <= rows as "not many in s"',
    "maskspec.assume exists d in [0, k] : s mod 5 == d or exists d in [4, 3 + w] : s mod 7 == d",
    "maskspec.assume for i in [0, s) : forall d in [0, 1] : t[i] <= i + 2 * d",
    "maskspec.assume -max(t[i], s) <= root[0] and odd[s] <= rows + 3",
    "maskspec.assume c[j] != j",
    "maskspec.assume true and 0 <= rows - 0 * s",
    "maskspec.assume for e in [0, g) : f[e] <= f[e + 1] + odd[e] or false",
)
GUARDS = (
    (("0", "rows"),),
    (("0", "s"), ("s", "rows")),
    (("0", "s"), ("s", "s + 2"), ("s + 2", "rows")),
    (("s - 3", "s + 3"),),
    (("-2", "4"), ("4", "rows + 5")),
    (("min(s, rows)", "rows"), ("0", "min(s, rows)")),
    (("0", "0"), ("abs(s)", "rows")),
    (("rows - 1", "rows"), ("0", "rows - 1")),
)
# fmt: on

# Conditions that SSA has an op for and the expression language spells out.


def unequal(a: Expr, b: Expr) -> Expr:
    return not_(eq(a, b))


def choice(p: Expr, a: Expr, b: Expr) -> Expr:
    """`a` where `p` holds, else `b`: `arith.select` of conditions."""
    return make("or", make("and", p, a), make("and", not_(p), b))


def same(a: Expr, b: Expr) -> Expr:
    """`arith.cmpi eq` of conditions."""
    return choice(a, b, not_(b))


def differ(a: Expr, b: Expr) -> Expr:
    """`arith.xori`."""
    return choice(a, not_(b), b)


def bottom_right(row: Expr) -> Expr:
    """`maskspec.position bottom_right`."""
    return add(row, sub(COLS, ROWS))


@dataclass(frozen=True)
class Scope:
    """What an expression may read: the row, the column (`indices`), and what quantifiers around it bind.

    Of a table whose entries are lists, SSA may ask for an integer that is not there, and `text` may not.
    """

    indices: str = "ij"
    bound: tuple[str, ...] = ()
    text: bool = False

    def without(self, index: str) -> "Scope":
        return replace(self, indices=self.indices.replace(index, ""))

    def binding(self, name: str) -> "Scope":
        return replace(self, bound=(*self.bound, name))


PAIR = Scope()
TEXT = Scope(text=True)
SCALAR = Scope("", text=True)


@st.composite
def atoms(draw: st.DrawFn, scope: Scope = PAIR) -> Expr:
    names = [*scope.indices] * 4 + [*scope.bound] * 6
    tables = ["t", "t", "c", "f", "f", "lo", "hi", "pair", "near", "odd", "root"]
    if "i" in scope.indices:
        tables += ["t", "lo", "hi", "aligned"]
    name = draw(st.sampled_from([*names, "s", "w", "rows", "cols", *tables]))
    if name not in tables:
        return var(name)
    inside = scope.without({"t": "j", "lo": "j", "hi": "j", "aligned": "j", "c": "i", "near": "i"}.get(name, ""))
    index = draw(indices(inside))
    if name == "aligned":
        return bottom_right(index)
    if name not in WIDTHS:
        return lookup(name, index)
    last = WIDTHS[name] - 1
    number = draw(st.sampled_from(["constant", "constant", "other", *(["bound"] if scope.bound else [])]))
    if number == "constant":
        return lookup(name, index, const(draw(st.integers(0, last) if scope.text else st.integers(-1, last + 1))))
    read = var(draw(st.sampled_from(scope.bound))) if number == "bound" else draw(indices(inside))
    return lookup(name, index, read if number == "bound" else make("mod", read, const(2)))


@st.composite
def indices(draw: st.DrawFn, scope: Scope) -> Expr:
    """Where a table is read: at the row or column, near it, at a part of it, or where another table says."""
    simple = [*scope.indices, *scope.bound, *(() if scope.indices else ("s", "rows"))]
    index = var(draw(st.sampled_from(simple)))
    match draw(st.sampled_from(["plain"] * 3 + ["near"] * 3 + ["part", "table", "scalar", "any"])):
        case "plain":
            return index
        case "near":
            return add(index, const(draw(st.integers(-1, 1))))
        case "part":
            return make(draw(st.sampled_from(["floordiv", "mod"])), index, const(draw(st.integers(2, 3))))
        case "table":
            here = lookup("f", index) if "i" not in scope.indices or "j" in scope.indices else lookup("t", index)
            return here if draw(st.booleans()) else add(here, const(draw(st.integers(-1, 1))))
        case "scalar":
            return add(var("s"), const(draw(st.integers(-1, 0))))
        case _:
            return minimum(index, draw(atoms(scope)))


def divisors() -> st.SearchStrategy[Expr]:
    g, numbers = var("g"), [const(1), const(2), const(3), const(5), var("w")]
    return st.sampled_from([*numbers, g, g, add(g, ONE), maximum(var("s"), ONE)])


@st.composite
def terms(draw: st.DrawFn, depth: int = 2, scope: Scope = PAIR) -> Expr:
    if depth == 0:
        a = draw(atoms(scope))
        scale, shift = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])), draw(st.integers(-3, 4))
        a = a if scale == 1 else mul(a, const(scale))
        return a if shift == 0 else add(a, const(shift))
    shapes = ("sum", "difference", "floordiv", "mod", "min", "max", "select", "abs", "neg", "number")
    shape = draw(st.sampled_from(["leaf"] * 6 + [*shapes]))
    a = draw(terms(depth - 1, scope))
    match shape:
        case "sum":
            return add(a, draw(terms(depth - 1, scope)))
        case "difference":
            return sub(a, draw(terms(depth - 1, scope)))
        case "floordiv" | "mod":
            return make(shape, a, draw(divisors()))
        case "min" | "max":
            return (minimum if shape == "min" else maximum)(a, draw(terms(depth - 1, scope)))
        case "select":
            return select(draw(comparisons(0, scope)), a, draw(terms(depth - 1, scope)))
        case "abs" | "neg":
            return make(shape, a)
        case "number":  # of what is known at compile time
            bound = draw(st.sampled_from([*map(var, scope.bound), var("w")]))
            known = [bound, lookup("odd", bound), lookup("root", bound), make("isqrt", const(draw(st.integers(0, 20))))]
            number = draw(st.sampled_from(known))
            return number if number.op == "isqrt" else mul(number, draw(atoms(scope)))
        case _:
            return a


@st.composite
def comparisons(draw: st.DrawFn, depth: int = 1, scope: Scope = PAIR) -> Expr:
    a, b = draw(terms(depth, scope)), draw(terms(depth, scope))
    if scope.text:  # a clause says `!=` by two clauses
        return draw(st.sampled_from([lt, le, le, eq]))(a, b)
    return draw(st.sampled_from([lt, le, lt, le, eq, unequal]))(a, b)


@st.composite
def rules(draw: st.DrawFn, depth: int = 2, scope: Scope = PAIR) -> Expr:
    shapes = ["leaf", "leaf", "and", "or", "not", "exists", "exists", "forall", "slots", "choice", "choice", "constant"]
    match draw(st.sampled_from(shapes)) if depth else "leaf":
        case "and" | "or" as shape:
            parts = draw(st.lists(rules(depth - 1, scope), min_size=2, max_size=3))
            return (and_ if shape == "and" else or_)(*parts)
        case "not":
            return not_(draw(rules(depth - 1, scope)))
        case "choice":
            of = draw(st.sampled_from([choice, choice, same, differ]))
            parts = [draw(rules(0, scope)) for _ in range(3 if of is choice else 2)]
            return of(*parts)
        case "constant":
            return draw(st.sampled_from([and_, or_]))(boolean(draw(st.booleans())), draw(rules(depth - 1, scope)))
        case "slots":
            index = draw(st.sampled_from([var("i"), add(var("i"), ONE)]))
            a, b, at = ("lo", "hi", var("j")) if draw(st.booleans()) else ("near", "near", var("i"))
            first = var("slot")
            last = first if a == "lo" else add(first, ONE)
            index = index if a == "lo" else var("j")
            inside = and_(le(lookup(a, index, first), at), lt(at, lookup(b, index, last)))
            return make("exists", ZERO, sub(var("k"), ONE), inside, data="slot")
        case "exists" | "forall" as shape:
            name = draw(st.sampled_from([n for n in ("d", "e", "d2") if n not in scope.bound]))
            start = draw(st.integers(-2, 1))
            last = const(start + draw(st.integers(-1, 1)))
            ends = draw(st.sampled_from([(const(start), last)] * 3 + [(sub(ONE, var("w")), sub(var("w"), var("w")))]))
            here = scope.binding(name)
            a, b = draw(terms(1, scope)), draw(terms(1, here))
            moved = add(a, mul(var(name), const(draw(st.integers(1, 3)))))
            body = draw(st.sampled_from([lt, le, eq]))(moved, b)
            whole = not scope.bound and draw(st.integers(0, 2)) == 0
            other = draw(rules(depth - 1, here) if whole else comparisons(0, here))
            if shape == "exists":
                return make("exists", *ends, and_(body, other), data=name)
            return not_(make("exists", *ends, not_(or_(body, other)), data=name))
        case _:
            return draw(comparisons(1, scope))


@st.composite
def guards(draw: st.DrawFn) -> Sequence[tuple[str, str]]:
    """The row guards of disjoint Regions."""
    if draw(st.integers(0, 3)):
        return draw(st.sampled_from(GUARDS))
    cut = draw(terms(1, SCALAR))
    later = show(add(cut, const(2)))
    return draw(st.permutations([("0", show(cut)), (show(cut), later), (later, "rows")]))


@st.composite
def facts(draw: st.DrawFn) -> list[str]:
    """Some of `FACTS`, and now and then one that is drawn: metadata seldom satisfy many of those."""
    out: list[str] = [*draw(st.lists(st.sampled_from(FACTS), unique=True, max_size=5))]
    match draw(st.sampled_from(["none", "none", "none", "scalar", "row", "col"])):
        case "scalar":
            out.append(f"maskspec.assume {show(draw(comparisons(1, SCALAR)))}")
        case "row":
            bound = draw(terms(1, Scope("i", text=True)))
            out.append(f"maskspec.assume {show(draw(st.sampled_from([lt, le]))(lookup('t', var('i')), bound))}")
        case "col":
            bound = draw(terms(1, Scope("j", text=True)))
            out.append(f"maskspec.assume {show(le(bound, lookup('c', var('j'))))}")
        case _:
            pass
    return out


@st.composite
def specs(draw: st.DrawFn, depth: int = 2) -> str:
    said = ["maskspec.assume 1 <= g", *draw(facts()), *CONSTANTS]
    parameters = PARAMETERS
    if draw(st.booleans()):  # the same numbers, as statics and as numbers
        parameters = parameters.replace("x 2", "x K").replace("x k", "x 2").replace("x K", "x k").replace("x 3", "x w")
    lines = [f"maskspec.spec @random({parameters}) {{", *(f"  {line}" for line in said)]
    for n, (lo, hi) in enumerate(draw(guards())):
        head = f"  maskspec.region @r{n} rows [{lo}, {hi})"
        if draw(st.integers(0, 3)):
            lines += [f"{head} (%i, %j) {{", *Surface().rule(draw(rules(depth))), "  }"]
        else:
            clauses = draw(st.lists(st.lists(comparisons(depth - 1, TEXT), min_size=1, max_size=3), max_size=3))
            lines += [f"{head} {{", *(f"    maskspec.clause {show(and_(*c))}" for c in clauses), "  }"]
    assume(len(lines) <= LINES)
    return "\n".join([*lines, "}"]) + "\n"


class Surface:
    """A condition as the SSA of a surface rule. What can be said in several ways is said in each in turn."""

    ops: ClassVar = {
        "add": "addi",
        "sub": "subi",
        "mul": "muli",
        "floordiv": "floordivsi",
        "min": "minsi",
        "max": "maxsi",
    }
    joins: ClassVar = {"and": "andi", "or": "ori"}
    predicates: ClassVar = {"lt": ("slt", "sgt"), "le": ("sle", "sge"), "eq": ("eq", "eq")}

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.indent = "    "

    def rule(self, e: Expr) -> list[str]:
        self.lines.append(f"{self.indent}maskspec.visible {self.value(e)}")
        return self.lines

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"{self.indent}%v{self.count} = {text}")
        return f"%v{self.count}"

    def value(self, e: Expr) -> str:
        """The name of the value of an expression, after the lines that compute it."""
        if e.op == "var":
            if e.name == "i" and self.count % 4 == 3:
                return self.new("maskspec.position top_left %i")
            return self.new(f"maskspec.{e.name}") if e.name in ("rows", "cols") else f"%{e.name}"
        if e.op == "const":
            return self.new(f"arith.constant {e.value} : index")
        if e.op == "bool":
            return self.new(f"arith.constant {'true' if e.value else 'false'}")
        if e.op == "isqrt":
            return self.value(const(isqrt(e.args[0].value)))
        if e.op == "exists":
            return self.exists(e)
        if e.op == "add" and e == bottom_right(e.args[0]):
            return self.new(f"maskspec.position bottom_right {self.value(e.args[0])}")
        if (written := self.conditional(e)) is not None:
            return written
        args = [self.value(a) for a in e.args]
        match e.op:
            case "lt" | "le" | "eq":
                self.count += 1
                turned = self.count % 2
                a, b = reversed(args) if turned else args
                return self.new(f"arith.cmpi {self.predicates[e.op][turned]}, {a}, {b} : index")
            case "mod":
                return self.new(f"maskspec.mod {args[0]}, {args[1]}")
            case "neg" | "abs":
                zero = self.value(ZERO)
                less = self.new(f"arith.subi {zero}, {args[0]} : index")
                return less if e.op == "neg" else self.new(f"arith.maxsi {args[0]}, {less} : index")
            case "lookup":
                table = f"@{e.name}" if e.name in ("odd", "root") else f"%{e.name}"
                return self.new(f"maskspec.lookup {table}[{', '.join(args)}]")
            case "select":
                return self.new(f"arith.select {', '.join(args)} : index")
            case "not":
                return self.negated(args[0])
            case _:
                name = self.ops.get(e.op) or self.joins[e.op]
                sort = "index" if OPERATORS[e.op].result == "int" else "i1"
                out = args[0]
                for a in args[1:]:
                    out = self.new(f"arith.{name} {out}, {a} : {sort}")
                return out

    def negated(self, condition: str) -> str:
        self.count += 1
        way = self.count % 3
        other = self.new(f"arith.constant {'false' if way == 1 else 'true'}")
        return self.new([f"arith.xori {condition}, {other} : i1", f"arith.cmpi eq, {condition}, {other} : i1",
                         f"arith.cmpi ne, {other}, {condition} : i1"][way])  # fmt: skip

    def conditional(self, e: Expr) -> str | None:
        """A condition that has an op of its own; None: it has not."""
        if e.op == "not" and e.args[0].op == "eq":
            a, b = (self.value(a) for a in e.args[0].args)
            return self.new(f"arith.cmpi ne, {a}, {b} : index")
        if e.op != "or" or len(e.args) != 2 or any(a.op != "and" or len(a.args) != 2 for a in e.args):
            return None
        (p, a), (_, b) = (part.args for part in e.args)
        if e == same(p, a):
            return self.new(f"arith.cmpi eq, {self.value(p)}, {self.value(a)} : i1")
        if e == differ(p, b):
            return self.new(f"arith.xori {self.value(p)}, {self.value(b)} : i1")
        if e == choice(p, a, b):
            return self.new(f"arith.select {self.value(p)}, {self.value(a)}, {self.value(b)} : i1")
        return None

    def exists(self, e: Expr) -> str:
        outer, self.lines, self.indent = self.lines, [], self.indent + "  "
        inner = self.value(e.args[2])
        body = [*self.lines, f"{self.indent}maskspec.yield {inner}"]
        self.lines, self.indent = outer, self.indent[2:]
        self.count += 1
        name = f"%v{self.count}"
        head = f"{self.indent}{name} = maskspec.exists %{e.name} in [{show(e.args[0])}, {show(e.args[1])}] {{"
        self.lines += [head, *body, f"{self.indent}}}"]
        return name
