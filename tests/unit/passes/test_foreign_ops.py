# pyright: basic
"""Ops of other dialects in rules: they are what they say they mean, and what they cannot mean is refused at the op."""

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

import cmir
from cmir.dialects.expr import COLS, ROWS, Expr, add, and_, const, eq, le, lt, make, maximum, mul, sub, var
from cmir.dialects.rule_ops import RuleOp
from cmir.errors import SpecError
from cmir.runtime import compiling
from cmir.testing import check_pass
from cmir.tools import driver
from cmir.tools.registry import Registry
from cmir.view.load import lower
from cmir.view.provenance import clause_lines

MEANS: dict[str, Callable[..., Expr]] = {}
"""What the ops mean, so that a test may change it."""


@irdl_op_definition
class NearOp(IRDLOperation, RuleOp):
    name = "foreign.near"
    a = operand_def()
    b = operand_def()
    result = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($a) `,` type($b)"

    def means(self, *operands: Expr) -> Expr:
        return MEANS["near"](*operands)


@irdl_op_definition
class FromEndOp(IRDLOperation, RuleOp):
    name = "foreign.from_end"
    a = operand_def(IndexType)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$a attr-dict"

    def means(self, *operands: Expr) -> Expr:
        return sub(COLS, add(operands[0], const(1)))


FOREIGN = Dialect("foreign", [NearOp, FromEndOp])
BOTH = """
maskspec.spec @m(%n: index, %t: !maskspec.table<row>) {
  maskspec.assume 1 <= n
  maskspec.region @all rows [0, rows) (%i, %j) {
    %entry = maskspec.lookup %t[%i]
    %near = foreign.near %entry, %j : index, index
    %k = foreign.from_end %j
    %mirrored = arith.cmpi sle, %k, %i : index
    %visible = arith.ori %near, %mirrored : i1
    maskspec.visible %visible
  }
}
"""


@pytest.fixture(autouse=True)
def meaning(monkeypatch: pytest.MonkeyPatch):
    """Dialects that every context knows, and a meaning of `near`."""
    installed = Registry.installed

    def with_foreign() -> Registry:
        registry = installed()
        registry.dialects["foreign"] = lambda: FOREIGN
        return registry

    monkeypatch.setattr(Registry, "installed", with_foreign)
    monkeypatch.setitem(MEANS, "near", lambda a, b: and_(le(sub(a, b), const(2)), le(sub(b, a), const(2))))


def want(mask, i, j, env):
    t = env["t"].values[:, None]
    return (abs(t - j) <= 2) | (env["cols"] - 1 - j <= i)


@pytest.mark.parametrize("pipeline", ["dnf-normalize", "lower-intervals,transpose", "canonicalize", "lint"])
def test_every_pass_takes_them_for_what_they_mean(pipeline: str):
    check_pass(BOTH, pipeline, want=want)


def test_a_layout_moves_them():
    text = BOTH.replace("%n: index", "%n: index = 3").replace("  maskspec.assume 1 <= n\n", "")
    mask = cmir.compile(_file(text), layout={"cols": cmir.layouts.Striped(of=2, rank=0)})
    t = [4, 0, 7, 3]
    whole = cmir.compile(_file(text)).dense(rows=4, cols=8, t=t)
    assert np.array_equal(mask.dense(rows=4, cols=4, t=t), whole[:, ::2])


def _file(text: str) -> Path:
    path = Path(mkdtemp()) / "m.mlir"
    path.write_text(text)
    return path


def test_a_clause_comes_from_the_line_of_its_op():
    lowered = lower(BOTH, "m.mlir")
    lines = {
        name: [BOTH.split("\n")[line - 1].strip() for line in found]
        for name, found in clause_lines(lowered.surface, lowered.spec).items()
    }
    assert lines["all.0"] == ["%near = foreign.near %entry, %j : index, index"]
    assert lines["all.1"] == ["%mirrored = arith.cmpi sle, %k, %i : index"]


def refused(text: str = BOTH) -> SpecError:
    with pytest.raises(SpecError) as raised:
        driver.run_pipeline(driver.parse(text, "m.mlir"), ["dnf-normalize"])
    assert raised.value.location is not None and raised.value.location.line == 6
    return raised.value


N, BY_N = var("n"), "1 <= n"
WRONG: dict[str, tuple[Callable[..., Expr], str]] = {
    "sort": (lambda a, b: add(a, b), "'foreign.near' means t[i] + j, which is no i1"),
    "stray": (lambda a, b: le(a, N), "'foreign.near' means t[i] <= n, which reads 'n', none of its operands"),
    "divisor": (
        lambda a, b: eq(make("mod", a, b), const(0)),
        "'foreign.near, mod' divides by a positive integer, the same for the whole sequence: known at compile time or "
        "a scalar; got j",
    ),
    "product": (
        lambda a, b: lt(mul(a, b), const(9)),
        "'foreign.near' multiplies by an integer known at compile time, got t[i] * j",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_meanings_that_are_refused(name: str):
    MEANS["near"], message = WRONG[name]
    assert refused().message == message


def test_a_division_by_a_scalar_needs_its_fact():
    MEANS["near"] = lambda a, b: eq(make("floordiv", a, b), const(1))
    by_scalar = BOTH.replace("%near = foreign.near %entry, %j", "%near = foreign.near %j, %n")
    check_pass(
        by_scalar, "lower-intervals", want=lambda mask, i, j, env: (j // env["n"] == 1) | (env["cols"] - 1 - j <= i)
    )
    assert refused(by_scalar.replace("assume 1 <= n", "assume 0 <= n")).message == (
        "'foreign.near' divides by n, and nothing says that it is at least 1; state the fact 1 <= n"
    )


def test_operands_are_integers():
    flag = BOTH.replace("%entry = maskspec.lookup %t[%i]", "%entry = arith.cmpi sle, %j, %i : index")
    error = refused(flag.replace("%entry, %j : index, index", "%entry, %j : i1, index"))
    assert error.message == "'foreign.near' in a rule takes integers (index), got i1"


def test_lengths_may_be_read():
    MEANS["near"] = lambda a, b: lt(maximum(a, b), sub(ROWS, const(2)))
    check_pass(
        BOTH,
        "lower-intervals",
        want=lambda mask, i, j, env: (
            (np.maximum(env["t"].values[:, None], j) < env["rows"] - 2) | (env["cols"] - 1 - j <= i)
        ),
    )


def test_another_meaning_is_another_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The text of the spec is the same; the file that says what its op means is not."""
    monkeypatch.setenv("CMIR_CACHE_DIR", str(tmp_path / "cache"))
    path, source = tmp_path / "m.mlir", tmp_path / "op.py"
    path.write_text(BOTH)
    monkeypatch.setattr(compiling.inspect, "getfile", lambda kind: str(source))
    given = {"rows": 6, "n": 1, "t": [0, 0, 1, 2, 3, 5]}
    found = []
    for meaning in (lambda a, b: le(b, a), lambda a, b: lt(a, b)):
        MEANS["near"] = meaning
        source.write_text(f"# {len(found)}")
        mask = cmir.compile(path)
        assert cmir.compile(path) is mask
        found.append(mask.intervals("rows", **given))
        painted = np.zeros((6, 6), bool)
        for lo, hi in found[-1]:
            painted |= (lo[:, None] <= np.arange(6)) & (np.arange(6) < hi[:, None])
        assert np.array_equal(painted, mask.dense(**given))
    assert not np.array_equal(*found)
    source.unlink()  # an op that was never in a file is compiled anew
    assert cmir.compile(path) is not cmir.compile(path)
