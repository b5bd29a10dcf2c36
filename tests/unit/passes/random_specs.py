"""Random specs, as text: one to three Regions over every kind of metadata, with facts that a pass may need."""

from typing import ClassVar

from hypothesis import strategies as st

from cmir.dialects.expr import (
    OPERATORS,
    Expr,
    add,
    and_,
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
    var,
)

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
)
GUARDS = (
    (("0", "rows"),),
    (("0", "s"), ("s", "rows")),
    (("0", "s"), ("s", "s + 2"), ("s + 2", "rows")),
    (("s - 3", "s + 3"),),
    (("-2", "4"), ("4", "rows + 5")),
    (("min(s, rows)", "rows"), ("0", "min(s, rows)")),
)
# fmt: on
PARAMETERS = (
    "%s: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>, %w: index = 3, "
    "%g: index, %lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>, %pair: !maskspec.table<free x 3>"
)
BOTTOM_RIGHT = add(var("i"), make("sub", var("cols"), var("rows")))
"""Written as `maskspec.position bottom_right %i`."""
ROW, COLUMN, ANY = "row", "column", "any"


@st.composite
def atoms(draw: st.DrawFn) -> Expr:
    offset = const(draw(st.integers(-1, 1)))
    return draw(
        st.sampled_from(
            [
                *(var("i"), var("j")) * 4,
                var("s"),
                var("w"),
                var("rows"),
                var("cols"),
                lookup("t", var("i")),
                lookup("t", add(var("i"), offset)),
                lookup("c", var("j")),
                lookup("f", add(var("i"), offset)),
                lookup("f", make("floordiv", var("j"), const(2))),
                lookup("f", var("s")),
                lookup("f", lookup("t", var("i"))),
                BOTTOM_RIGHT,
                lookup("t", lookup("t", var("i"))),
                lookup("lo", var("i"), const(draw(st.integers(0, 1)))),
                lookup("hi", add(var("i"), offset), const(draw(st.integers(-1, 2)))),
                lookup("hi", var("i"), make("mod", var("j"), const(2))),
                lookup("pair", lookup("t", var("i")), const(draw(st.integers(0, 2)))),
                lookup("pair", make("floordiv", var("j"), const(3)), add(var("s"), const(-1))),
            ]
        )
    )


@st.composite
def terms(draw: st.DrawFn, depth: int = 2) -> Expr:
    if depth == 0:
        a = draw(atoms())
        scale, shift = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])), draw(st.integers(-3, 4))
        a = a if scale == 1 else mul(a, const(scale))
        return a if shift == 0 else add(a, const(shift))
    shape = draw(
        st.sampled_from(["leaf", "leaf", "leaf", "sum", "difference", "floordiv", "mod", "min", "max", "select"])
    )
    a = draw(terms(depth - 1))
    match shape:
        case "leaf":
            return a
        case "sum":
            return add(a, draw(terms(depth - 1)))
        case "difference":
            return make("sub", a, draw(terms(depth - 1)))
        case "floordiv" | "mod":
            return make(shape, a, draw(st.sampled_from([const(1), const(2), const(3), const(5), var("g"), var("g")])))
        case "min" | "max":
            return (minimum if shape == "min" else maximum)(a, draw(terms(depth - 1)))
        case _:
            return select(draw(comparisons(0)), a, draw(terms(depth - 1)))


@st.composite
def comparisons(draw: st.DrawFn, depth: int = 1) -> Expr:
    a, b = draw(terms(depth)), draw(terms(depth))
    return draw(st.sampled_from([lt, le, lt, le, eq, unequal]))(a, b)


def unequal(a: Expr, b: Expr) -> Expr:
    return not_(eq(a, b))


@st.composite
def rules(draw: st.DrawFn, depth: int = 2) -> Expr:
    shape = draw(st.sampled_from(["leaf", "and", "or", "not", "exists", "forall", "slots"])) if depth else "leaf"
    match shape:
        case "and" | "or":
            parts = draw(st.lists(rules(depth - 1), min_size=2, max_size=3))
            return (and_ if shape == "and" else or_)(*parts)
        case "not":
            return not_(draw(rules(depth - 1)))
        case "slots":
            index, number = draw(st.sampled_from([var("i"), add(var("i"), const(1))])), var("d")
            inside = and_(le(lookup("lo", index, number), var("j")), lt(var("j"), lookup("hi", index, number)))
            return make("exists", const(0), const(1), inside, data="d")
        case "exists" | "forall":
            lo = draw(st.integers(-2, 1))
            a, b = draw(terms(1)), draw(terms(1))
            body = draw(st.sampled_from([lt, le, eq]))(add(a, mul(var("d"), const(draw(st.integers(1, 3))))), b)
            other, last = draw(comparisons(0)), const(lo + draw(st.integers(0, 2)))
            if shape == "exists":
                return make("exists", const(lo), last, and_(body, other), data="d")
            return not_(make("exists", const(lo), last, not_(or_(body, other)), data="d"))
        case _:
            return draw(comparisons(1))


@st.composite
def specs(draw: st.DrawFn, depth: int = 2) -> str:
    facts = draw(st.lists(st.sampled_from(FACTS), unique=True, max_size=5))
    lines = [f"maskspec.spec @random({PARAMETERS}) {{", "  maskspec.assume 1 <= g", *(f"  {fact}" for fact in facts)]
    for n, (lo, hi) in enumerate(draw(st.sampled_from(GUARDS))):
        lines += [f"  maskspec.region @r{n} rows [{lo}, {hi}) (%i, %j) {{", *Surface().rule(draw(rules(depth))), "  }"]
    return "\n".join([*lines, "}"]) + "\n"


class Surface:
    """A condition as the SSA of a surface rule."""

    ops: ClassVar = {
        "add": "addi",
        "sub": "subi",
        "mul": "muli",
        "floordiv": "floordivsi",
        "min": "minsi",
        "max": "maxsi",
    }
    joins: ClassVar = {"and": "andi", "or": "ori"}
    predicates: ClassVar = {"lt": "slt", "le": "sle", "eq": "eq"}

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
        if e.op == "var":
            return self.new(f"maskspec.{e.name}") if e.name in ("rows", "cols") else f"%{e.name}"
        if e.op == "exists":
            return self.exists(e)
        if e == BOTTOM_RIGHT:
            return self.new("maskspec.position bottom_right %i")
        args = [self.value(a) for a in e.args]
        if e.op == "not" and e.args[0].op == "eq":
            first, second = (self.value(a) for a in e.args[0].args)
            return self.new(f"arith.cmpi ne, {first}, {second} : index")
        if e.op in ("const", "bool"):
            return self.new(
                f"arith.constant {e.value} : index" if e.op == "const" else f"arith.constant {bool(e.value)!s}".lower()
            )
        if e.op in self.predicates:
            return self.new(f"arith.cmpi {self.predicates[e.op]}, {args[0]}, {args[1]} : index")
        if e.op == "mod":
            return self.new(f"maskspec.mod {args[0]}, {args[1]}")
        if e.op == "lookup":
            return self.new(f"maskspec.lookup %{e.name}[{', '.join(args)}]")
        if e.op == "select":
            return self.new(f"arith.select {', '.join(args)} : index")
        if e.op == "not":
            true = self.new("arith.constant true")
            return self.new(f"arith.xori {args[0]}, {true} : i1")
        name = self.ops.get(e.op) or self.joins[e.op]
        sort = "index" if OPERATORS[e.op].result == "int" else "i1"
        out = args[0]
        for a in args[1:]:
            out = self.new(f"arith.{name} {out}, {a} : {sort}")
        return out

    def exists(self, e: Expr) -> str:
        outer, self.lines, self.indent = self.lines, [], self.indent + "  "
        inner = self.value(e.args[2])
        body = [*self.lines, f"{self.indent}maskspec.yield {inner}"]
        self.lines, self.indent = outer, self.indent[2:]
        self.count += 1
        name = f"%v{self.count}"
        head = f"{self.indent}{name} = maskspec.exists %{e.name} in [{e.args[0]}, {e.args[1]}] {{"
        self.lines += [head, *body, f"{self.indent}}}"]
        return name
