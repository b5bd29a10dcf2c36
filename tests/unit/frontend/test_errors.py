"""What `MaskSpec` refuses, word for word: `TypeError` for the wrong kind of thing, `SpecError` with the user's line."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

import cmir
from cmir.errors import SpecError

CHAIN = (
    "a term has no truth value while the spec is written: write (0 <= a) & (a <= b) for 0 <= a <= b, "
    "&, |, ~ for and, or, not, spec.where(...) for if, spec.minimum and spec.maximum for min and max"
)
PARENTHESES = "compare it, and keep comparisons around & and | in parentheses, as in (0 <= a) & (a <= b)"
NUMBER = "spec.where(condition, 1, 0) makes it a number"


class Names:
    """A spec with one metadatum of every kind."""

    def __init__(self) -> None:
        self.spec = cmir.MaskSpec("s")
        self.i, self.j, self.rows, self.cols = self.spec.i, self.spec.j, self.spec.rows, self.spec.cols
        self.n = self.spec.scalar("n")
        self.zero = self.spec.static("zero", 0)
        self.width = self.spec.static("width", 8)
        self.start = self.spec.table("start", per="row")
        self.end = self.spec.table("end", per="col")
        self.free = self.spec.table("free", per="free")
        self.sel = self.spec.table("sel", per="row", entries=4)
        self.half = self.spec.constants("half", [3, 2, 1], base=-1)
        self.other = cmir.MaskSpec("other")


Case = Callable[[Any], object]

TYPE_ERRORS: dict[str, tuple[Case, str]] = {
    # Truth values.
    "chain": (lambda t: 0 <= t.i <= t.j, CHAIN),
    "and": (lambda t: t.i == 0 and t.j == 0, CHAIN),
    "not": (lambda t: not (t.i < 3), CHAIN),
    "if": (lambda t: 1 if t.i == 0 else 2, CHAIN),
    "builtin min": (lambda t: min(t.i, t.j), CHAIN),
    "in": (lambda t: t.i in (1, 2), CHAIN),
    "fact": (lambda t: t.start.nondecreasing() and t.i, CHAIN),
    # Operands.
    "bool": (lambda t: t.i + True, "'+' takes an integer, got the bool True"),
    "float": (lambda t: 0.5 * t.i, "'*' takes an integer, got 0.5 (float)"),
    "none": (lambda t: t.i == None, "'==' takes an integer, got None (NoneType)"),  # noqa: E711
    "text": (lambda t: t.i != "row", "'!=' takes an integer, got 'row' (str)"),
    "power": (
        lambda t: (t.i - t.j) ** 2 < 9,
        "a rule has no **: write x * x where x is known at compile time; a circle is a reach for each distance in "
        "rows, as in cmir/zoo/clear.mlir: spec.exists(-r, r, lambda d: ..)",
    ),
    "power of a table": (lambda t: t.free**2, "'free' is a table: read an entry of it, as in free[k]"),
    "division": (lambda t: t.i / 2, "a mask is integer arithmetic: write // (rounding down), not /"),
    "condition as integer": (lambda t: 1 - (t.j <= t.i), f"'-' takes an integer, got a condition: j <= i; {NUMBER}"),
    "equal conditions": (
        lambda t: (t.j <= t.i) == (t.i == 0),
        f"'==' takes an integer, got a condition: j <= i; {NUMBER}",
    ),
    "negated": (lambda t: -(t.j <= t.i), f"'-' takes an integer, got a condition: j <= i; {NUMBER}"),
    "abs": (lambda t: abs(t.j <= t.i), f"'abs' takes an integer, got a condition: j <= i; {NUMBER}"),
    "integer as condition": (lambda t: t.i & t.j, f"'&' takes a condition, got an integer: i; {PARENTHESES}"),
    "missing parentheses": (lambda t: t.n <= t.i & t.j < 3, f"'&' takes a condition, got an integer: i; {PARENTHESES}"),
    "not an integer": (lambda t: ~t.i, f"'~' takes a condition, got an integer: i; {PARENTHESES}"),
    "1 as condition": (lambda t: (t.i == 0) | 1, "'|' takes a condition, got 1 (int)"),
    # Tables.
    "table": (lambda t: t.j < t.start, "'<' takes an integer; 'start' is a table: read an entry of it, as in start[i]"),
    "table left": (lambda t: t.end == 3, "'end' is a table: read an entry of it, as in end[j]"),
    "table equal": (lambda t: t.start == t.end, "'start' is a table: read an entry of it, as in start[i]"),
    "table arithmetic": (lambda t: 2 * t.free, "'free' is a table: read an entry of it, as in free[k]"),
    "constants": (lambda t: abs(t.half), "'half' is a table: read an entry of it, as in half[k]"),
    "loop over a table": (lambda t: list(t.start), "'start' is a table: read an entry of it, as in start[i]"),
    "table as index": (
        lambda t: t.start[t.free],
        "'start[...]' takes an integer; 'free' is a table: read an entry of it, as in free[k]",
    ),
    "list": (lambda t: t.sel + 1, "'sel' is a table: read an entry of it, as in sel[i, 0]"),
    "condition as number": (
        lambda t: t.sel[t.i, t.i == 0],
        f"'sel[...]' takes an integer, got a condition: i == 0; {NUMBER}",
    ),
    "slice": (lambda t: t.start[1:], "'start[...]' takes an integer, got slice(1, None, None) (slice)"),
    "condition as index": (
        lambda t: t.start[t.i == 0],
        f"'start[...]' takes an integer, got a condition: i == 0; {NUMBER}",
    ),
    # Functions.
    "minimum of one": (lambda t: t.spec.minimum(t.i), "'minimum' takes at least two integers, got 1"),
    "maximum of a list": (
        lambda t: t.spec.maximum([t.i, t.j], 1),
        "'maximum' takes an integer, got [i, j] (list)",
    ),
    "where": (lambda t: t.spec.where(t.i, 1, 2), f"'where' takes a condition, got an integer: i; {PARENTHESES}"),
    "mixed where": (
        lambda t: t.spec.where(t.i == 0, t.j == 0, 2),
        f"'where' takes an integer, got a condition: j == 0; {NUMBER}",
    ),
    "exists": (
        lambda t: t.spec.exists(0, 3, lambda d: d + t.i),
        f"the body of 'exists' takes a condition, got an integer: d + i; {PARENTHESES}",
    ),
    "forall": (
        lambda t: t.spec.forall(0, 3, lambda d: d + t.i),
        f"the body of 'forall' takes a condition, got an integer: d + i; {PARENTHESES}",
    ),
    # Declarations.
    "name": (lambda t: t.spec.scalar(3), "the name of metadata is a string, got 3"),
    "static term": (lambda t: t.spec.static("x", t.n + 1), "static 'x' is a Python integer, got the term n + 1"),
    "static bool": (lambda t: t.spec.static("x", True), "static 'x' is a Python integer, got the bool True"),
    "constants of floats": (
        lambda t: t.spec.constants("x", [1, 2.0]),
        "entry 1 of 'x' is a Python integer, got 2.0 (float)",
    ),
    "base": (
        lambda t: t.spec.constants("x", [1], base=t.width),
        "the base of 'x' is a Python integer, got the term width",
    ),
    "entries": (
        lambda t: t.spec.table("x", per="row", entries=t.n),
        "entries= of table 'x' is a Python integer or a static, got the term n",
    ),
    "computed entries": (
        lambda t: t.spec.table("x", per="row", entries=t.width + 1),
        "entries= of table 'x' is a Python integer or a static, got the term width + 1",
    ),
    # Facts and Regions.
    "no fact": (lambda t: t.spec.assume(), "assume takes at least one fact"),
    "fact of integers": (
        lambda t: t.spec.assume(0 <= 3),
        "a fact is a condition on the metadata, got True: Python knew it from integers alone",
    ),
    "integer fact": (lambda t: t.spec.assume(t.n), f"assume takes a condition, got an integer: n; {PARENTHESES}"),
    "table fact": (
        lambda t: t.spec.assume(t.start),
        "assume takes a condition; 'start' is a table: read an entry of it, as in start[i]",
    ),
    "range": (lambda t: t.spec.assume(t.i > 0, rows=3), "rows= takes a range (lo, hi), half-open, got 3"),
    "range of three": (
        lambda t: t.start.nondecreasing(over=(0, 1, 2)),
        "over= takes a range (lo, hi), half-open, got (0, 1, 2)",
    ),
    "rule": (
        lambda t: t.spec.region("r", 0, t.n, visible=t.j),
        f"the rule of Region 'r' takes a condition, got an integer: j; {PARENTHESES}",
    ),
    "rule as function": (
        lambda t: t.spec.region("r", 0, t.n, visible=max),
        "the rule of Region 'r' takes a condition, got <built-in function max> (builtin_function_or_method)",
    ),
    "guard": (
        lambda t: t.spec.region("r", 0, 1.5, visible=True),
        "the row guard of 'r' takes an integer, got 1.5 (float)",
    ),
}


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_type_errors(name: str):
    case, text = TYPE_ERRORS[name]
    with pytest.raises(TypeError) as caught:
        case(Names())
    assert str(caught.value) == text


COMPILE_TIME = "an integer known at compile time"
DIVIDES = "divides by a positive integer, the same for the whole sequence: known at compile time or a scalar; got"
SPEC_ERRORS: dict[str, tuple[Case, str]] = {
    "square": (
        lambda t: (t.i - t.j) * (t.i - t.j) < 9,
        "'*' multiplies by an integer known at compile time, got (i - j) * (i - j); a circle is a reach for each "
        "distance in rows, as in cmir/zoo/clear.mlir",
    ),
    # Arithmetic beyond the language.
    "product": (lambda t: t.i * t.n, f"'*' multiplies by {COMPILE_TIME}, got i * n"),
    "divisor": (lambda t: t.i // t.start[t.i], f"'//' {DIVIDES} start[i]"),
    "zero divisor": (lambda t: t.i % 0, f"'%' {DIVIDES} 0"),
    "negative divisor": (lambda t: t.i // -2, f"'//' {DIVIDES} -2"),
    "static zero divisor": (
        lambda t: t.i // (2 * t.zero),
        f"'//' {DIVIDES} 2 * zero = 0",
    ),
    "dividing by a term": (lambda t: 8 % t.i, f"'%' {DIVIDES} i"),
    "dividing by a bound index": (
        lambda t: t.spec.exists(1, 2, lambda d: t.i % d == 0),
        f"'%' {DIVIDES} d",
    ),
    # Tables.
    "row table by column": (
        lambda t: t.start[t.j + 1],
        "table 'start' has one entry per row but is indexed by a column: start[j + 1]; "
        "declare it per col, or free if rows and columns share it",
    ),
    "column table by row": (
        lambda t: t.end[t.start[t.i]],
        "table 'end' has one entry per column but is indexed by a row: end[start[i]]; "
        "declare it per row, or free if rows and columns share it",
    ),
    "from the end": (lambda t: t.start[-1], "start[-1] is before the table: entries count from 0"),
    "constants below": (lambda t: t.half[-2], "half[-2]: the table has entries -1 to 1"),
    "constants above": (lambda t: t.half[t.width], "half[8]: the table has entries -1 to 1"),
    "list by one index": (
        lambda t: t.sel[t.i],
        "an entry of table 'sel' is a list of 4: read it by two indices, as in sel[i, 0]",
    ),
    "integer by two": (
        lambda t: t.end[t.j, 0],
        "an entry of table 'end' is one integer: read it by one index, as in end[j]",
    ),
    "list by column": (
        lambda t: t.sel[t.j, t.i],
        "table 'sel' has one entry per row but is indexed by a column: sel[j, i]; "
        "declare it per col, or free if rows and columns share it",
    ),
    "number too large": (lambda t: t.sel[t.i, 4], "sel[.., 4]: an entry has numbers 0 to 3"),
    "number from the end": (lambda t: t.sel[t.i, -1], "sel[.., -1]: an entry has numbers 0 to 3"),
    "no entries": (
        lambda t: t.spec.table("x", per="row", entries=0),
        "an entry of table 'x' holds 1 to 4096 integers, got 0",
    ),
    "no entries by a static": (
        lambda t: t.spec.table("x", per="row", entries=t.spec.static("none", 0)),
        "an entry of table 'x' holds 1 to 4096 integers, got none",
    ),
    # Two specs.
    "entries of another spec": (
        lambda t: t.spec.table("x", per="row", entries=t.other.static("width", 3)),
        "entries= of table 'x' mixes two specs: 'width' belongs to 'other', not to 's'",
    ),
    "two specs": (lambda t: t.i + t.other.rows, "'+' mixes two specs: 'rows' belongs to 'other', not to 's'"),
    "index of another spec": (
        lambda t: t.start[t.other.i],
        "'start[...]' mixes two specs: 'i' belongs to 'other', not to 's'",
    ),
    "rule of another spec": (
        lambda t: t.spec.region("r", 0, t.n, visible=t.other.j <= t.other.i),
        "the rule of Region 'r' mixes two specs: 'j <= i' belongs to 'other', not to 's'",
    ),
    "fact of another spec": (
        lambda t: t.other.assume(t.start.nondecreasing()),
        "assume mixes two specs: 'start nondecreasing' belongs to 's', not to 'other'",
    ),
    # Bound indices.
    "ends of exists": (
        lambda t: t.spec.exists(0, t.n, lambda d: t.j == d),
        "the ends of 'exists' are known at compile time: 'n' reads more than statics",
    ),
    "ends of forall": (
        lambda t: t.spec.forall(0, t.n, lambda d: t.j == d),
        "the ends of 'forall' are known at compile time: 'n' reads more than statics",
    ),
    # Names.
    "spec name": (
        lambda t: cmir.MaskSpec("my mask"),
        "a spec is named by an identifier (letters, digits, _; a letter first), got 'my mask'",
    ),
    "bad name": (
        lambda t: t.spec.scalar("_x"),
        "'_x' cannot name metadata: a name is an identifier (letters, digits, _; a letter first)",
    ),
    "keyword": (
        lambda t: t.spec.table("rows", per="row"),
        "'rows' cannot name metadata: it is a keyword of the language",
    ),
    "keyword constants": (
        lambda t: t.spec.constants("first", [1]),
        "'first' cannot name a constant table: it is a keyword of the language",
    ),
    "bad Region name": (
        lambda t: t.spec.region("2nd", 0, 1, visible=True),
        "'2nd' cannot name a Region: a name is an identifier (letters, digits, _; a letter first)",
    ),
    "no constants": (lambda t: t.spec.constants("x", []), "constant table 'x' needs at least one entry"),
    # Facts.
    "rows and columns": (
        lambda t: t.spec.assume(t.start[t.i] <= t.end[t.j]),
        "a fact ranges over rows (i) or columns (j), not both: start[i] <= end[j]",
    ),
    "range without index": (
        lambda t: t.spec.assume(t.n > 0, rows=(0, 3)),
        "rows= is for facts that read i; this one does not: 0 < n",
    ),
    "wrong range": (
        lambda t: t.spec.assume(t.start[t.i] > 0, cols=(0, 3)),
        "cols= is for facts that read j; this one does not: 0 < start[i]",
    ),
    "two ranges": (
        lambda t: t.spec.assume(t.i > 0, rows=(0, 3), cols=(0, 3)),
        "facts range over one thing: rows and cols are given",
    ),
    "varying range": (
        lambda t: t.spec.assume(t.i > 0, rows=(0, t.i)),
        "an end of rows= is one number for the whole sequence: 'i' reads 'i'",
    ),
    "nondecreasing range": (
        lambda t: t.spec.assume(t.start.nondecreasing(), rows=(0, 3)),
        "the range of this fact is its own: start.nondecreasing(over=(lo, hi))",
    ),
    "entries": (
        lambda t: t.spec.assume(t.free[0] > 0, entries=(0, 3)),
        "entries= is for facts written as functions of the entry, lambda k: ...",
    ),
    "function without entries": (
        lambda t: t.spec.assume(lambda k: t.free[k] > 0),
        "a fact that is a function of an index needs its range: entries=(lo, hi)",
    ),
    "entries of a row table": (
        lambda t: t.spec.assume(lambda k: t.start[k] > 0, entries=(0, 3)),
        "'start' is read along rows or columns: write the fact with i or j",
    ),
    "entries of no table": (
        lambda t: t.spec.assume(lambda k: t.n > k, entries=(0, 3)),
        "a fact for k is about entries of a free table: it must read one at k",
    ),
    "entries and rows": (
        lambda t: t.spec.assume(lambda k: t.free[k] > t.i, entries=(0, 3)),
        "a fact for k may not read another index: i < free[k] reads 'i'",
    ),
    # Guards.
    "varying guard": (
        lambda t: t.spec.region("r", 0, t.start[t.i], visible=True),
        "an end of the row guard of 'r' is one number for the whole sequence: 'start[i]' reads 'i'",
    ),
}


@pytest.mark.parametrize("name", SPEC_ERRORS)
def test_spec_errors(name: str):
    case, text = SPEC_ERRORS[name]
    with pytest.raises(SpecError) as caught:
        case(Names())
    assert caught.value.message == text
    place = caught.value.location
    assert place is not None
    assert place.file == __file__
    first = case.__code__.co_firstlineno
    assert first <= place.line <= first + 1


def test_dividing_by_a_scalar_needs_its_fact():
    spec = cmir.MaskSpec("s")
    n = spec.scalar("n")
    rule = spec.j // n == spec.i // n
    spec.region("all", 0, spec.rows, visible=rule)
    with pytest.raises(SpecError) as caught:
        cmir.compile(spec)
    assert caught.value.message == "'//' divides by n, and nothing says that it is at least 1; state the fact 1 <= n"
    assert caught.value.location is not None
    assert caught.value.location.line == sys._getframe().f_lineno - 6
    spec.assume(n >= 1)
    assert cmir.compile(spec).slots == {"rows": 1, "cols": 1}


def test_a_bound_index_does_not_escape():
    spec = cmir.MaskSpec("s")
    kept: list[Any] = []
    spec.exists(0, 3, lambda d: kept.append(d) or spec.j == d)
    text = "'d' is used outside of the function that binds it"
    later = kept[0] == spec.j
    uses: list[Callable[[], object]] = [
        lambda: spec.region("r", 0, 1, visible=later),
        lambda: spec.region("r", 0, kept[0], visible=True),
        lambda: spec.region("r", 0, 1, visible=spec.exists(0, 1, lambda d: kept[0] == d)),
        lambda: spec.assume(later),
    ]
    for use in uses:
        with pytest.raises(SpecError) as caught:
            use()
        assert caught.value.message == text


def test_declared_twice():
    spec = cmir.MaskSpec("s")
    spec.scalar("n")
    line = sys._getframe().f_lineno - 1
    with pytest.raises(SpecError) as caught:
        spec.table("n", per="row")
    assert str(caught.value).splitlines() == [
        f"{__file__}:{line + 3}:9: error: 'n' is declared twice",
        '        spec.table("n", per="row")',
        "        ^",
        f"{__file__}:{line}:5: note: first declared here",
        '    spec.scalar("n")',
        "    ^",
    ]
    spec.region("n", 0, 1, visible=True)  # a Region may have the name of a scalar
    with pytest.raises(SpecError, match="'n' is declared twice"):
        spec.constants("n", [1])
    with pytest.raises(SpecError, match="'@n' is declared twice"):
        spec.region("n", 1, 2, visible=True)


def test_kind_of_a_table():
    with pytest.raises(ValueError, match="table 't' is per 'row', 'col' or 'free', got 'rows'"):
        cmir.MaskSpec("s").table("t", per="rows")  # pyright: ignore[reportArgumentType]


def test_a_refused_declaration_leaves_no_trace():
    spec = cmir.MaskSpec("s")
    for refused in (
        lambda: spec.constants("c", []),
        lambda: spec.static("c", True),
        lambda: spec.region("c", 0, 1, visible=spec.i),
    ):
        with pytest.raises((SpecError, TypeError)):
            refused()
    spec.region("c", 0, 1, visible=True)
    with pytest.raises(SpecError, match="'@c' is declared twice"):
        spec.constants("c", [1])
    spec.scalar("c")
    assert str(spec).count("@c") == 1
