"""`--prove`, `cmir.compile(prove=)` and passes of other people: what is said, and what fails."""

from pathlib import Path
from typing import Any

import pytest
from mutants import SOLVER, Edit, applied  # pyright: ignore[reportMissingImports]
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import cmir
from cmir import zoo
from cmir.dialects.expr import ExprAttr, add, const
from cmir.dialects.interval import SpanOp
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


class Nothing(ModulePass):
    name = "nothing"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        pass


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
