"""Deliberate faults in passes and analyses, each of which the proof of a compile must catch.

    python tests/unit/proof/mutants.py          lists them, how each is caught, and the catch rate

A mutant replaces text in the source of one function (or of several, where one alone changes nothing) and puts the
function's code back afterwards. It is caught if `--prove` refutes a pass, with numbers, or cannot prove what it proves
without the fault, or if a pass crashes over it. A function that has changed since no longer has the text, and the test
says so: say the fault in its new words. `mask` is one of the zoo, with small statics, or one of `SPECS`; after
a colon, `pack` follows in the pipeline.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("proof", "zoo")]

from expected import STATICS, text  # pyright: ignore[reportMissingImports]

from cmir.errors import CmirError
from cmir.tools.driver import parse, run_pipeline
from cmir.tools.proving import Prover


class Edit(NamedTuple):
    """In the function `where`, as `module:name`, `old` becomes `new`."""

    where: str
    old: str
    new: str


class Mutant(NamedTuple):
    name: str
    mask: str
    edits: tuple[Edit, ...]


def mutant(name: str, mask: str, *edits: str) -> Mutant:
    """A fault of one edit, or of several, three strings each: where, old, new."""
    return Mutant(name, mask, tuple(Edit(*edits[n : n + 3]) for n in range(0, len(edits), 3)))


SOLVE, LINEAR, DNF, RULES = (f"cmir.analysis.{m}" for m in ("solve", "linear", "dnf", "rules"))
SOLVER = f"{SOLVE}:_Solver"
MONOTONE, SPLIT = "cmir.analysis.monotonicity", "cmir.analysis.split"
MERGE, DESCRIPTOR, PACK = (f"cmir.passes.{m}" for m in ("merge_slots", "lower_descriptor", "pack"))
CANON, LAYOUT = "cmir.passes.canonicalize_intervals", "cmir.passes.layout"

SPECS = {
    "halves": "maskspec.region @all rows [0, rows) { maskspec.clause 2 * j >= i and 3 * j < 2 * i + 1 }",
    "strict": "maskspec.region @all rows [0, rows) { maskspec.clause j < i and i - 4 < j }",
    "unequal": "maskspec.region @all rows [0, rows) (%i, %j) { %e = arith.cmpi ne, %i, %j : index\n"
    "maskspec.visible %e }",
    "odd": "maskspec.region @all rows [0, rows) { maskspec.clause 2 * j == 2 * i + 1\n maskspec.clause j == 0 }",
    "nested": "maskspec.region @all rows [0, rows) { maskspec.clause (j floordiv 2) floordiv 3 == i floordiv 6 }",
    "offset": "maskspec.region @all rows [0, rows) { maskspec.clause (j + 3) floordiv 4 <= (i + 5) floordiv 4 }",
    "exists": "maskspec.region @all rows [0, rows) (%i, %j) { %seen = maskspec.exists %d in [-1, 1] {\n"
    "%y = arith.addi %i, %d : index\n %e = arith.cmpi eq, %y, %j : index\n maskspec.yield %e }\n"
    "maskspec.visible %seen }",
    "greater": "maskspec.region @all rows [0, rows) (%i, %j) { %e = arith.cmpi sgt, %i, %j : index\n"
    "maskspec.visible %e }",
    "chain": "maskspec.constants @c for d in [0, 4) : (3 * d) mod 4\n maskspec.region @all rows [0, rows) (%i, %j) {\n"
    "%k = maskspec.lookup @c[%i]\n %e = arith.cmpi sle, %j, %k : index\n maskspec.visible %e }",
    "halving": "maskspec.constants @c for d in [-1, 2) : 2 * d + 3\n maskspec.region @all rows [0, rows) (%i, %j) {\n"
    "%seen = maskspec.exists %d in [-1, 1] { %k = maskspec.lookup @c[%d]\n %s = arith.addi %i, %k : index\n"
    "%e = arith.cmpi eq, %s, %j : index\n maskspec.yield %e }\n maskspec.visible %seen }",
    "capped": "maskspec.region @all rows [0, rows) { maskspec.clause min(j, 7) <= i and max(i, 3) <= j + 2 }",
    "apart": "maskspec.region @all rows [0, rows) { maskspec.clause j < i - 5\nmaskspec.clause i - 4 <= j and j <= i }",
    "two_regions": "maskspec.assume rows == cols and 6 <= rows\n"
    "maskspec.region @top rows [0, 5) { maskspec.clause j <= i }\n"
    "maskspec.region @rest rows [5, rows) { maskspec.clause i <= j }",
    "overlapping": "maskspec.region @top rows [0, 5) { maskspec.clause j <= i }\n"
    "maskspec.region @rest rows [4, rows) { maskspec.clause j == i }",
    "fused": "maskspec.assume rows == cols\n"
    "maskspec.region @all rows [0, rows) { maskspec.clause a[i] <= j and j < b[i]\n maskspec.clause j < c[i] }",
    "any_order": "maskspec.region @all rows [0, rows) { maskspec.clause a[i] <= j }",
    "falling": "maskspec.nondecreasing a\n maskspec.region @all rows [0, rows) { maskspec.clause j <= i - 2 * a[i] }",
    "packed_entry": "maskspec.region @all rows [0, rows) { maskspec.clause j < f[i] }",
    "choice": "maskspec.region @all rows [0, rows) { maskspec.clause select(h <= j, j, i) <= i + 3 }",
    "clamped": "maskspec.region @all rows [0, rows) { maskspec.clause j <= max(i, h) + 4 }",
    "remainders": "maskspec.region @all rows [0, rows) { maskspec.clause (j mod 12) mod 4 <= 1 and j <= i }",
    "negative": "maskspec.nondecreasing a\n"
    "maskspec.region @all rows [0, rows) { maskspec.clause a[i] + 5 <= 0 and j <= i }",
    "negated": "maskspec.region @all rows [0, rows) (%i, %j) { %t = arith.constant true\n"
    "%a = arith.cmpi sle, %j, %i : index\n %k = arith.constant 5 : index\n %b = arith.cmpi sle, %i, %k : index\n"
    "%c = arith.andi %a, %b : i1\n %n = arith.xori %c, %t : i1\n maskspec.visible %n }",
    "point": "maskspec.region @all rows [0, rows) { maskspec.clause i <= j and j <= i }",
    "diagonal": "maskspec.region @all rows [0, rows) { maskspec.clause j == i }",
    "implied": "maskspec.region @all rows [0, rows) { maskspec.clause j <= i\n maskspec.clause j <= i and i <= 7 }",
    "even": "maskspec.region @all rows [0, rows) { maskspec.clause 2 * j < 2 * i + 1 }",
    "extreme": "maskspec.region @all rows [0, rows) { maskspec.clause j <= min(i, i + 2) }",
    "gap": "maskspec.region @top rows [0, 5) { maskspec.clause j <= i }",
    "shard": "maskspec.assume rows == cols\n maskspec.layout rows = striped(of = 3, rank = 1)\n"
    "maskspec.region @top rows [0, 7) { maskspec.clause j <= i }\n"
    "maskspec.region @rest rows [7, rows) { maskspec.clause j == i }",
    "zigzag": "maskspec.layout rows, cols = zigzag(of = 2)\n"
    "maskspec.region @all rows [0, rows) { maskspec.clause j <= i }",
}
METADATA = {
    "fused": "%a: !maskspec.table<row>, %b: !maskspec.table<row>, %c: !maskspec.table<row>",
    "any_order": "%a: !maskspec.table<row>",
    "falling": "%a: !maskspec.table<row>",
    "negative": "%a: !maskspec.table<row>",
    "packed_entry": "%f: !maskspec.table<free>",
    "choice": "%h: index",
    "clamped": "%h: index",
}

MUTANTS = [
    # Solving a clause for an index.
    mutant("upper end one too low", "causal", f"{SOLVER}._at_least_zero", "[simplify(add(edge, const(1)))]", "[edge]"),
    mutant(
        "lower end rounded down",
        "halves",
        f"{SOLVER}._at_least_zero",
        "Linear((), c - 1) - rest",
        "Linear((), 0) - rest",
    ),
    mutant(
        "quotient's border forgotten", "block_causal", f"{SOLVER}._at_least_zero", "border + last - u", "border - u"
    ),
    mutant(
        "quotient's sides swapped", "offset", f"{SOLVER}._at_least_zero", "u - border if c > 0", "u - border if c < 0"
    ),
    mutant(
        "min for max",
        "clamped",
        f"{SOLVER}._at_least_zero",
        '(atom.op == "min") == (c > 0)',
        '(atom.op == "max") == (c > 0)',
    ),
    mutant("select's sides swapped", "clamped", f"{SOLVER}._choose", "lo = select(cond,", "lo = select(negate(cond),"),
    mutant("strict taken for non-strict", "strict", f"{SOLVER}._literal", "gap + Linear((), -1)", "gap"),
    mutant(
        "non-strict taken for strict",
        "causal",
        f"{SOLVER}._literal",
        'half.op == "lt" else gap',
        'half.op == "lt" else gap + Linear((), -1)',
    ),
    mutant(
        "equality bounds one side",
        "diagonal",
        f"{SOLVER}._literal",
        '[make("le", a, b), make("le", b, a)]',
        '[make("le", a, b)]',
    ),
    mutant("search for the wrong edge", "causal_document", f"{SOLVER}._by_monotone", "negate(holds)", "holds"),
    mutant(
        "search over all rows",
        "hstu",
        f"{SOLVER}._by_monotone",
        "first(self.index, self.lo,",
        "first(self.index, self.hi,",
    ),
    mutant("literal of the row dropped", "global_window", f"{SOLVER}.run", "out.conditions.append(literal)", "pass"),
    mutant("lower ends: least for greatest", "strict", f"{SOLVER}.run", "maximum(*out.lowers)", "minimum(*out.lowers)"),
    mutant(
        "upper clamp dropped",
        "window_two_sided",
        f"{SOLVER}.run",
        "minimum(*out.uppers)",
        "minimum(*(out.uppers[1:] or out.uppers))",
    ),
    mutant(
        "lower clamp dropped",
        "strict",
        f"{SOLVER}.run",
        "maximum(*out.lowers)",
        "maximum(*(out.lowers[1:] or out.lowers))",
    ),
    mutant(
        "remainder replaced by a sum",
        "sliding_tile_2d",
        f"{SOLVER}._replacements",
        'make("sub", t.args[0]',
        'make("add", t.args[0]',
    ),
    # Which way an expression moves.
    mutant("any table is monotone", "any_order", f"{MONOTONE}:_lookup", "    return None", "    return index"),
    mutant(
        "a difference moves as its second side",
        "falling",
        f"{MONOTONE}:_by_operators",
        "_flip(again(e.args[1]))",
        "again(e.args[1])",
    ),
    mutant(
        "a negation moves as its operand",
        "negative",
        f"{MONOTONE}:_by_operators",
        "return _flip(again(e.args[0]))",
        "return again(e.args[0])",
    ),
    # Normal form.
    mutant(
        "not <: < turned round",
        "hstu_meta",
        f"{LINEAR}:negate",
        'return make("le", e.args[1], e.args[0])',
        'return make("lt", e.args[1], e.args[0])',
    ),
    mutant(
        "not <=: <= turned round",
        "negated",
        f"{LINEAR}:negate",
        'return make("lt", e.args[1], e.args[0])',
        'return make("le", e.args[1], e.args[0])',
    ),
    mutant(
        "not and: and",
        "negated",
        f"{LINEAR}:negate",
        "return or_(*map(negate, e.args))",
        "return and_(*map(negate, e.args))",
    ),
    mutant(
        "not ==: one side",
        "unequal",
        f"{DNF}:_clauses",
        "or_(lt(*inner.args), lt(*inner.args[::-1]))",
        "or_(lt(*inner.args))",
    ),
    mutant(
        "wrong branch of a select",
        "hstu_meta",
        f"{DNF}:_take_apart",
        "and_(negate(cond), substitute(e, {term: b}))",
        "and_(negate(cond), substitute(e, {term: a}))",
    ),
    mutant(
        "select without its condition",
        "hstu_meta",
        f"{DNF}:_take_apart",
        "and_(cond, substitute(e, {term: a}))",
        "substitute(e, {term: a})",
    ),
    mutant(
        "min or max: any for all",
        "capped",
        f"{DNF}:_take_apart",
        '(atom.op == "min") == (c > 0)',
        '(atom.op == "min") != (c > 0)',
    ),
    mutant(
        "the stronger literal dropped",
        "hstu_meta",
        f"{DNF}:_conjoin",
        "lo2 >= lo and hi2 <= hi",
        "lo2 <= lo and hi2 >= hi",
    ),
    mutant(
        "a point is a contradiction",
        "point",
        f"{DNF}:_conjoin",
        "ranges[key][0] > ranges[key][1]",
        "ranges[key][0] >= ranges[key][1]",
    ),
    mutant("the weaker clause dropped", "implied", f"{DNF}:_prune", "(s < sets[k])", "(s > sets[k])"),
    mutant("exists one short", "exists", f"{RULES}:_expand", "range(lo, hi + 1)", "range(lo, hi)"),
    mutant("constants from index 0", "halving", f"{RULES}:fold_constants", "index.value - base", "index.value"),
    mutant("chain of constants shifted", "chain", f"{RULES}:fold_constants", "const(base + k + 1)", "const(base + k)"),
    mutant(
        "> read as <",
        "greater",
        f"{RULES}:_SurfaceReader._compare",
        "make(name, b, a) if swap",
        "make(name, a, b) if swap",
    ),
    # Linear forms.
    mutant("strict comparison rounded up", "even", f"{LINEAR}:comparison", "(c - 1) // k + 1 if", "c // k if"),
    mutant("odd equals even", "odd", f"{LINEAR}:comparison", "c % k", "False"),
    mutant("division rounds up", "offset", f"{LINEAR}:_divide", "form.constant // k)\n", "-(-form.constant // k))\n"),
    mutant("quotient of a quotient", "nested", f"{LINEAR}:_divide_again", "const(a * k)", "const(a + k)"),
    mutant("remainder of a remainder", "remainders", f"{LINEAR}:_divide_again", "const(min(a, k))", "const(max(a, k))"),
    mutant("the wrong extreme kept", "extreme", f"{LINEAR}:_extremum", "g * sign >= 0", "g * sign <= 0"),
    mutant(
        "quotients by others rejoin", "natten_2d", f"{LINEAR}:_rejoin", "form.coefficient(product) == c * n", "True"
    ),
    # Simple intervals, slots, columns.
    mutant(
        "the wrong operand beaten",
        "window_flash",
        f"{CANON}:_extremum",
        'le(b, a) if term.op == "min"',
        'le(a, b) if term.op == "min"',
    ),
    mutant("non-empty spans dropped", "causal", f"{CANON}:_span", "le(hi, lo)", "le(lo, hi)"),
    mutant(
        "select decided the wrong way",
        "hstu_meta",
        f"{CANON}:simplify_under",
        "return a if proved(cond)",
        "return b if proved(cond)",
    ),
    mutant(
        "spans with a gap merged",
        "apart",
        f"{MERGE}:_Span._unite",
        "<= np.minimum(a_hi, b_hi)",
        "<= np.minimum(a_hi, b_hi) + 1",
        f"{MERGE}:_equals_union",
        "le(maximum(a.lo, b.lo), minimum(a.hi, b.hi))",
        "TRUE",
    ),
    mutant(
        "overlapping slots not fused",
        "fused",
        f"{MERGE}:_merge_region",
        "if not spans[a].disjoint(spans[b])",
        "if False",
    ),
    mutant("a merge forgets when", "hstu_meta", f"{MERGE}:_Span.op", ", self.when)", ")"),
    mutant(
        "upper guard dropped in columns",
        "two_regions",
        "cmir.passes.transpose:solve_columns",
        "minimum(ROWS, region.hi.data)",
        "ROWS",
    ),
    mutant(
        "lower guard dropped in columns",
        "two_regions",
        "cmir.passes.transpose:solve_columns",
        "maximum(ZERO, region.lo.data)",
        "ZERO",
    ),
    mutant(
        "columns bounded by rows",
        "causal_bottom_right",
        "cmir.passes.extract_intervals:_region",
        "ZERO, COLS",
        'ZERO, __import__("cmir.dialects.expr").dialects.expr.ROWS',
    ),
    mutant("one quotient too few", "dilated_window", f"{SPLIT}:solve_all", "range(count)", "range(count - 1)"),
    mutant(
        "overlapping Regions pass",
        "overlapping",
        "cmir.passes.check_regions:CheckRegions._check",
        "if verdict.proved:",
        "if True:",
    ),
    mutant(
        "half symmetric is symmetric",
        "prefix_lm",
        "cmir.analysis.symmetry:is_symmetric",
        "return all(",
        "return any(True or ",
    ),
    # Preprocess kernels.
    mutant("empty rows forgotten", "hstu", f"{DESCRIPTOR}:_slots", "span.condition, lt(lo, hi)", "span.condition"),
    mutant(
        "kernel's upper guard dropped", "gap", f"{DESCRIPTOR}:_inside", "TRUE if hi == length else lt(here, hi)", "TRUE"
    ),
    mutant(
        "kernel's clamp dropped",
        "hstu",
        f"{DESCRIPTOR}:_slots",
        "simplify(minimum(end, span.hi.data))",
        "simplify(span.hi.data)",
    ),
    mutant(
        "union by the greater lower end", "fused", f"{DESCRIPTOR}:_fuse", "minimum(a_lo, b_lo)", "maximum(a_lo, b_lo)"
    ),
    mutant(
        "both fused slots kept",
        "fused",
        f"{DESCRIPTOR}:_fuse",
        "empty = select(overlap, ZERO, a_lo)",
        "empty = select(overlap, a_lo, a_lo)",
        f"{DESCRIPTOR}:_fuse",
        "select(overlap, ZERO, a_hi)",
        "a_hi",
    ),
    mutant(
        "a fact checked outside its range",
        "hstu",
        f"{DESCRIPTOR}:_fact",
        "or_(negate(here), condition)",
        "or_(here, condition)",
    ),
    mutant("bits without lower ends", "strided", f"{DESCRIPTOR}:_held", "for a in lows)", "for a in lows[:0])"),
    # Layouts and packs.
    mutant("layout's guard rounded down", "shard", f"{LAYOUT}:_Rewrite._of_piece", "const(stride - 1)", "const(0)"),
    mutant(
        "layout's pieces of columns run over",
        "zigzag",
        f"{LAYOUT}:_Rewrite._between",
        "else lt(J, piece.hi)",
        "else TRUE",
    ),
    mutant(
        "layout's row and column swapped",
        "zigzag",
        f"{LAYOUT}:_Rewrite._moved",
        "{I: row, J: column,",
        "{I: row, J: row,",
    ),
    mutant(
        "pack without offset",
        "causal:pack",
        f"{PACK}:Place.range",
        "add(start, self(e)) for e in (hi",
        "self(e) for e in (hi",
    ),
    mutant(
        "pack's index from the pack",
        "causal:pack",
        f"{PACK}:Place._variable",
        "return sub(e, self.start(e.name))",
        "return e",
    ),
    mutant("pack finds the next sequence", "causal:pack", f"{PACK}:Packing.owner", "add(s, const(1))", "s"),
    mutant(
        "pack's rows run over",
        "causal:pack",
        f"{PACK}:Place.end",
        "add(self.sequence, const(1))",
        "add(self.sequence, const(2))",
    ),
    mutant(
        "pack reads a table in its place",
        "packed_entry:pack",
        f"{PACK}:Place._lookup",
        "add(start, self(position, bound))",
        "self(position, bound)",
    ),
]


def source_of(mask: str) -> str:
    """The text of a spec of this table, or of the zoo with small statics."""
    if mask in SPECS:
        return f"maskspec.spec @m({METADATA.get(mask, '')}) {{\n{SPECS[mask]}\n}}"
    return text(mask, STATICS.get(mask, [{}])[0])


def proofs(mask: str) -> list[str]:
    """What becomes of every pass that the mask goes through, "pass: outcome"; the first that is refuted ends it."""
    name, _, packed = mask.partition(":")
    passes = ["lower-intervals", "transpose", *(["pack"] if packed else ["choose-axis", "lower-descriptor"])]
    prover = Prover()
    try:
        run_pipeline(parse(source_of(name), f"{name}.mlir"), passes, observer=prover)
    except CmirError as error:
        refuted = [f"{n}: refuted" for n, o in prover.outcomes if o.status == "refuted"]
        return refuted or [f"crash: {str(error).splitlines()[0]}"]
    return [f"{n}: {o.status}" for n, o in prover.outcomes if o.status != "proved"]


def _function(where: str) -> Any:
    module, _, path = where.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return getattr(found, "fget", None) or inspect.unwrap(found)


def _clear_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("cmir"):
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


@contextmanager
def applied(edits: tuple[Edit, ...]) -> Iterator[None]:
    """Within it, the functions have the fault: their code objects are exchanged, so every importer has it."""
    texts: dict[str, str] = {}
    for edit in edits:
        known = texts.get(edit.where) or textwrap.dedent(inspect.getsource(_function(edit.where)))
        assert edit.old in known, f"{edit.where} has no '{edit.old}'"
        texts[edit.where] = known.replace(edit.old, edit.new)
    before = {where: _function(where).__code__ for where in texts}
    _clear_caches()
    try:
        for where, source in texts.items():
            function, scope = _function(where), dict[str, Any]()
            body = source[source.index("def ") :]  # decorators stay on the function that there is
            exec(
                compile("from __future__ import annotations\n" + body, f"<mutant of {where}>", "exec"),
                function.__globals__,
                scope,
            )
            function.__code__ = next(f for n, f in scope.items() if n != "annotations").__code__
        yield
    finally:
        for where, code in before.items():
            _function(where).__code__ = code
        _clear_caches()


def caught(which: Mutant) -> str | None:
    """How a mutant is caught: "mask: pass: outcome"; None: it survives."""
    with applied(which.edits):
        found = proofs(which.mask)
    return f"{which.mask}: {found[0]}" if found else None


def main() -> int:
    results = [(m.name, caught(m)) for m in MUTANTS]
    for name, how in results:
        print(f"{name:44}{how or 'SURVIVES'}")
    count = sum(how is not None for _, how in results)
    print(f"mutants caught: {count}/{len(MUTANTS)}")
    return int(count < len(MUTANTS))


if __name__ == "__main__":
    sys.exit(main())
