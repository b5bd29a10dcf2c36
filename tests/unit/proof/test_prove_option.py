"""`--prove`, `cmir.compile(prove=)` and passes of other people: what is said, and what fails."""

from pathlib import Path
from typing import Any

import pytest
from mutants import SOLVER, Edit, applied  # pyright: ignore[reportMissingImports]
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

import cmir
from cmir import zoo
from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.expr import ExprAttr, I, J, add, and_, const, le, maximum
from cmir.dialects.interval import SpanOp, TableOp
from cmir.dialects.maskspec import AssumeOp, ClauseOp, RegionOp, SpecOp
from cmir.tools.cm_opt import main
from cmir.tools.driver import parse, run_pipeline
from cmir.tools.proving import Prover

HSTU = str(zoo.path("hstu"))


class LongerByOne(ModulePass):
    """A pass of somebody else's, which is wrong."""

    name = "longer-by-one"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for span in op.walk():
            if isinstance(span, SpanOp):
                span.properties["hi"] = ExprAttr(add(span.hi.data, const(1)))


class Window(ModulePass):
    """A pass that means to change a rule."""

    name = "window"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for clause in op.walk():
            if isinstance(clause, ClauseOp):
                clause.properties["condition"] = ExprAttr(and_(clause.condition.data, le(I, J)))


class Nothing(ModulePass):
    name = "nothing"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        pass


class Rename(ModulePass):
    """Another name for the spec, its tables left to it, and another rule: nobody can compare."""

    name = "rename"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, SpecOp):
                inner.sym_name = StringAttr("other")
            elif isinstance(inner, TableOp):
                inner.spec = StringAttr("other")


class Drop(ModulePass):
    """Without a spec's fact, its tables, or all of it."""

    name = "drop"

    def __init__(self, what: type[Operation]) -> None:
        self.what = what

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for inner in [x for x in op.walk() if isinstance(x, self.what)]:
            inner.detach()
            inner.erase()


class Again(ModulePass):
    """A second spec, or a second table of an axis, beside the first."""

    name = "again"

    def __init__(self, what: type[SpecOp | TableOp]) -> None:
        self.what = what

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        first = next(x for x in op.walk() if isinstance(x, self.what))
        second = first.clone()
        second.sym_name = StringAttr("again")
        op.body.block.insert_op_after(second, first)


class Insert(ModulePass):
    """The kernel that a pipeline makes, without what it was made of."""

    name = "insert"

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        other = op.clone()
        run_pipeline(other, [self.pipeline])
        kernel = next(x for x in other.walk() if isinstance(x, PreprocessOp))
        op.body.block.add_op(kernel.clone())


GONE = {
    "rename": ((), Rename(), "unknown, @hstu is gone and @other is new: nothing says that they are the same"),
    "no spec": ((), Drop(SpecOp), "unknown, @hstu is gone: there is nothing to compare with"),
    "no table": (
        ("lower-intervals", "transpose"), Drop(TableOp),
        "unknown, @hstu_rows and @hstu_cols are gone: there is nothing to compare with",
    ),
    "two specs": ((), Again(SpecOp), "unknown, @again is new: there is nothing to compare with"),
    "two tables": (
        ("lower-intervals",), Again(TableOp),
        ", @hstu_rows and @again are each a rows table of @hstu: nothing says which is meant",
    ),
    "no table for a kernel": (
        (), Insert("lower-intervals,transpose,choose-axis,lower-descriptor"),
        ", @hstu_preprocess computes rows of which there is no table",
    ),
    "no kernel": (
        ("lower-intervals", "transpose", "choose-axis", "lower-descriptor"), Drop(PreprocessOp),
        "unknown, @hstu_preprocess is gone: there is nothing to compare with",
    ),
    "no fact": ((), Drop(AssumeOp), "proved ("),
}  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_or_new_is_said(name: str) -> None:
    before, pass_, want = GONE[name]
    module = parse(Path(HSTU).read_text(), "hstu.mlir")
    run_pipeline(module, list(before))
    lines: list[str] = []
    run_pipeline(module.clone(), [pass_], observer=Prover(report=lines.append))
    assert len(lines) == 1 and lines[0].startswith(f"prove: {pass_.name}: ") and want in lines[0]
    if "unknown" in lines[0]:
        with pytest.raises(cmir.SpecError, match=f"pass '{pass_.name}' is not proved") as error:
            run_pipeline(module, [pass_], observer=Prover(strict=True))
        assert want.removeprefix("unknown").removeprefix(", ") in str(error.value)


def test_a_line_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lower-intervals", "--prove", HSTU]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [
        *("check-regions", "layout", "dnf-normalize", "extract-intervals", "canonicalize-intervals", "merge-slots")
    ]
    assert all(line.startswith("prove: ") and ("proved (" in line or "nothing to prove" in line) for line in lines)


def test_the_passes_of_others_are_proved_and_refuted_in_numbers() -> None:
    module = parse(Path(HSTU).read_text(), "hstu.mlir")
    with pytest.raises(cmir.SpecError) as error:
        run_pipeline(module, ["lower-intervals", Nothing(), LongerByOne()], observer=Prover())
    message = str(error.value)
    assert "hstu.mlir" in message and "pass 'longer-by-one' is wrong: @hstu_rows shows other pairs" in message
    assert "sees column" in message and "history=" in message and "start=[" in message


def test_what_a_pass_did_to_a_rule_is_told_as_before_and_after() -> None:
    module = parse(zoo.path("causal").read_text(), "causal.mlir")
    with pytest.raises(cmir.SpecError) as error:
        run_pipeline(module, ["dnf-normalize", Window()], observer=Prover())
    said = "pass 'window' is wrong: the rule of @causal shows other pairs than it did: row "
    assert said in str(error.value) and "no longer after the pass, where " in str(error.value)


def test_a_refuted_pass_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with applied((Edit(f"{SOLVER}._at_least_zero", "[simplify(add(edge, const(1)))]", "[edge]"),)):
        assert main(["--lower-intervals", "--prove", HSTU]) == 1
    said = capsys.readouterr()
    assert "prove: extract-intervals: refuted (" in said.err and "error: pass 'extract-intervals' is wrong" in said.err
    assert said.out == ""


@pytest.mark.parametrize("value", ["", "=strict"])
def test_unknown_is_an_error_if_strict(value: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from cmir.analysis.proof import decide

    monkeypatch.setattr(decide, "_check", lambda assertions, world: False)  # z3 gives up
    assert main(["--lower-intervals", f"--prove{value}", HSTU]) == (1 if value else 0)
    said = capsys.readouterr().err
    assert "unknown after" in said and "random draws agree" in said
    assert ("is not proved" in said) == bool(value)


def test_prove_takes_no_other_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--prove=often", HSTU]) == 1
    assert "--prove takes no value or 'strict', got 'often'" in capsys.readouterr().err


def test_compile_proves() -> None:
    mask = cmir.compile(HSTU, prove="strict")
    statuses = dict((name, outcome.status) for name, outcome in mask.proofs)
    assert set(statuses.values()) == {"proved"} and "lower-descriptor" in statuses


def test_why_slots_are_what_they_are() -> None:
    pairs = cmir.compile(HSTU).explain_slots()
    apart = [pair for pair in pairs if not pair.merged]
    assert [(p.axis, p.region, p.verdict.status) for p in apart] == [("rows", "candidate", "refuted")]
    assert "there is a gap between them at history=" in str(apart[0]) and "start[" in str(apart[0])
    assert {p.axis for p in pairs if p.merged} == {"cols"} and all("proved" in p.reason for p in pairs if p.merged)


def test_a_cached_module_must_be_what_the_passes_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmir.CompiledMask, "ir", "something else")
    with pytest.raises(cmir.SpecError, match="the cached module of this mask is not what its passes make; remove the"):
        cmir.compile(HSTU, prove=True)


class Sinks(ModulePass):
    """A pass that also shows the first column: with a window of 4096, only beyond row 4095."""

    name = "sinks"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for region in [o for o in op.walk() if isinstance(o, RegionOp)]:
            region.body.block.add_op(ClauseOp(and_(le(J, I), le(J, const(0)))))


class EarlierByOne(ModulePass):
    """A pass that lets every span begin one column earlier, if there is one: with a window of 4096, beyond row 4095."""

    name = "earlier-by-one"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        for span in op.walk():
            if isinstance(span, SpanOp):
                span.properties["lo"] = ExprAttr(maximum(add(span.lo.data, const(-1)), const(0)))


@pytest.mark.parametrize("passes", [["dnf-normalize", Sinks()], ["lower-intervals", EarlierByOne()]])
def test_a_refutation_may_need_thousands_of_rows(passes: list[Any]) -> None:
    text = zoo.path("window_hf").read_text()
    with pytest.raises(cmir.SpecError, match=r"is wrong: .*row \d{4,} sees column \d+ (by|only)") as error:
        run_pipeline(parse(text, "window_hf.mlir"), passes, observer=Prover())
    assert "rows=" in str(error.value)


def test_numbers_that_wrap_around_refute_nothing() -> None:
    """z3's models of a product of two unknowns may have numbers of which NumPy's products wrap around."""
    text = """maskspec.spec @product(%t: !maskspec.table<row>, %g: index) {
      maskspec.assume 1 <= g
      maskspec.region @all rows [0, rows) {
        maskspec.clause t[i] < j floordiv g
      }
    }"""
    passes = ["check-regions", "dnf-normalize", "extract-intervals", "canonicalize-intervals", "merge-slots"]
    prover = Prover()
    run_pipeline(
        parse(text, "product.mlir"), [*passes, "transpose", "choose-axis", "lower-descriptor"], observer=prover
    )
    assert "refuted" not in {outcome.status for _, outcome in prover.outcomes}
