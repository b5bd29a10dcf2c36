# pyright: basic
"""What the tools, the passes and the verifiers say that no text can bring about, or only a long one, word for word."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from cmir.analysis.effort import Effort, remark_if_spent
from cmir.analysis.rules import number, rule_of
from cmir.dialects.expr import MAX_SIZE, ExpressionTooLargeError, add, const, var
from cmir.dialects.interval import SpanOp, table_of
from cmir.dialects.maskspec import ClauseOp, RegionOp, SpecOp, TableType
from cmir.dialects.spec_scope import declarations
from cmir.errors import CmirError, Remark, SpecError, listening
from cmir.passes.dnf_normalize import DnfNormalize
from cmir.tools import registry
from cmir.tools.driver import parse, run_pipeline
from cmir.tools.pipeline import parse_passes, parse_target
from cmir.tools.proving import Prover, prover_of
from cmir.tools.registry import Registry
from cmir.tools.verifier import verify

SPEC = """\
maskspec.spec @m(%n: index) {{
  maskspec.assume 1 <= n
  maskspec.region @all rows [0, rows) (%i, %j) {{
    {}
    maskspec.visible %v
  }}
}}
"""


def message_of(call: Callable[[], object], kind: type[Exception] = SpecError) -> str:
    with pytest.raises(kind) as raised:
        call()
    return raised.value.message if isinstance(raised.value, SpecError) else str(raised.value)


def passes(text: str, pipeline: str) -> Callable[[], object]:
    return lambda: run_pipeline(parse(text, "m.mlir"), [pipeline])


# The verifiers.


def test_ops_out_of_place() -> None:
    clause = ClauseOp(const(0))
    assert message_of(lambda: declarations(clause), VerifyException) == (
        "'maskspec.clause' stands outside a maskspec.spec"
    )
    span = SpanOp(const(0), const(1), ["a"])
    assert message_of(lambda: table_of(span), VerifyException) == "'interval.span' stands outside an interval.table"


def test_a_table_of_something_else() -> None:
    message = message_of(lambda: TableType("page"), VerifyException)
    assert message == "a table is per row, col, free; got 'page'"


def test_a_body_that_is_empty() -> None:
    from xdsl.dialects.scf import ExecuteRegionOp

    op = ExecuteRegionOp([], Region(Block()))
    assert message_of(lambda: verify(op)).endswith("the body of 'scf.execute_region' is empty, it needs a terminator")


# Rules.


def test_a_rule_without_an_end() -> None:
    region = RegionOp("all", const(0), var("rows"), Region(Block(arg_types=[TableType("row"), TableType("row")])))
    block = Block([region])
    SpecOp("m", [], Region(block))
    assert message_of(lambda: rule_of(region)) == "a rule must not be empty"


def test_what_is_no_number() -> None:
    module = ModuleOp([])
    assert message_of(lambda: number(var("n"), module, "an end of the range")) == (
        "an end of the range is not a number known at compile time: n"
    )


@pytest.mark.parametrize(
    ("rule", "pipeline", "message"),
    [
        (
            "%a = arith.cmpi slt, %i, %j : index\n%v = arith.cmpi slt, %a, %a : i1",
            "dnf-normalize",
            "conditions are compared by eq or ne only",
        ),
        ("%v = arith.cmpi slt, %i, %j : index", "dnf-normalize{max-clauses=0}", "max-clauses is at least 1, got 0"),
        (
            "%v = arith.cmpi slt, %i, %j : index",
            'layout{order="zigzag(of="}',
            "the layout 'zigzag(of=' is no order such as zigzag(of = 4): ",
        ),
        (
            "%v = arith.cmpi slt, %i, %j : index",
            'layout{order="residue(of = n)"}',
            "a layout is known at compile time: 'n' is not static",
        ),
    ],
)
def test_passes(rule: str, pipeline: str, message: str) -> None:
    assert message_of(passes(SPEC.format(rule), pipeline)) == message


def test_an_expression_that_grows_without_end() -> None:
    def grow() -> None:
        e = var("i")
        while True:
            e = add(e, e)

    assert message_of(grow, ExpressionTooLargeError) == (
        f"an expression of the rule grows past {MAX_SIZE} terms; make it simpler"
    )


def chain(length: int, op: str) -> str:
    """A rule whose number is `length` ops deep."""
    lines = ["%x0 = arith.addi %i, %j : index"]
    lines += [f"%x{n + 1} = arith.addi %x{n}, {op.format(n)} : index" for n in range(length)]
    return "\n".join([*lines, f"%v = arith.cmpi slt, %x{length}, %j : index"])


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (chain(3000, "%i"), "the spec is nested too deeply for pass 'dnf-normalize'; make it flatter"),
        (chain(40, "%x{}"), f"an expression of the rule grows past {MAX_SIZE} terms; make it simpler"),
    ],
)
def test_a_rule_too_deep_or_too_large_for_a_pass(rule: str, message: str) -> None:
    assert message_of(passes(SPEC.format(rule), "dnf-normalize")) == message


def test_dnf_normalize_is_asked_of_a_module() -> None:
    assert message_of(lambda: DnfNormalize(-1).apply(registry.Registry.installed().context(), ModuleOp([]))) == (
        "max-clauses is at least 1, got -1"
    )


# The command line.


def test_pipelines() -> None:
    known = Registry.installed()
    assert message_of(lambda: parse_target("mlir,triton", known.targets)) == "expected one target, got 'mlir,triton'"
    assert message_of(lambda: parse_passes("dnf-normalize{max-clauses=many}", known.passes)) == (
        "option 'max-clauses' of pass 'dnf-normalize' must be int, got many"
    )

    def broken() -> type[ModulePass]:
        raise ImportError("No module named 'cuda'")

    assert message_of(lambda: parse_passes("broken", {"broken": broken}), CmirError) == (
        "pass 'broken' cannot be imported: No module named 'cuda'"
    )


def test_what_is_no_python_file(tmp_path) -> None:
    path = tmp_path / "passes.txt"
    path.write_text("")
    assert message_of(lambda: Registry.installed().load_file(str(path)), CmirError) == (
        f"cannot load '{path}': not a Python file"
    )


def test_an_entry_point_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("No module named 'other'")

    monkeypatch.setattr(registry.Universe, "get_multiverse", broken)
    registry._installed.cache_clear()
    try:
        assert message_of(Registry.installed, CmirError) == (
            "an installed package has a broken 'xdsl.universe' entry point: No module named 'other'"
        )
    finally:
        registry._installed.cache_clear()


def test_lengths_of_the_viewer(capsys: pytest.CaptureFixture[str]) -> None:
    from cmir.tools import cm_view

    with pytest.raises(SystemExit):
        cm_view.main(["--rows", "-x", "causal"])
    with pytest.raises(SystemExit):
        cm_view.main(["--rows=-1", "causal"])
    assert "error: argument --rows: expected an int of at least 0, got '-1'\n" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cm_view.main(["--seed=-1", "causal"])
    assert "error: argument --seed: expected an int of at least 0, got '-1'\n" in capsys.readouterr().err


def test_what_is_nested_too_deeply() -> None:
    text = "maskspec.spec @m() {\n  maskspec.assume " + "(" * 3000 + "rows"
    with pytest.raises(SpecError) as raised:
        parse(text, "deep.mlir")
    assert raised.value.message == "this is nested too deeply"
    assert raised.value.location is not None
    assert (raised.value.location.file, raised.value.location.line) == ("deep.mlir", 2)


# Proofs.


def test_effort_that_is_spent() -> None:
    remarks: list[Remark] = []
    with listening(remarks.append):
        remark_if_spent(Effort(0), None, "columns of @m")
        remark_if_spent(Effort(1), None, "columns of @m")
    (remark,) = remarks
    assert remark.message == (
        "columns of @m: too much to prove; from here on intervals are neither merged nor simplified, which is right "
        "but may be slow"
    )


def test_what_prove_takes() -> None:
    assert message_of(lambda: prover_of("all"), CmirError) == "--prove takes no value or 'strict', got 'all'"


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (
            SimpleNamespace(refutation=SimpleNamespace(claim="rows keep", counterexample="i=3", op=None)),
            "pass 'cse' is wrong: rows keep: i=3",
        ),
        (
            SimpleNamespace(refutation=None, status="unknown", unknown=["rows keep"], unsaid=[]),
            "pass 'cse' is not proved",
        ),
    ],
)
def test_passes_that_are_not_proved(outcome: SimpleNamespace, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cmir.analysis.proof import decide

    monkeypatch.setattr(decide, "decide", lambda claims, unsaid: outcome)
    pass_, module = parse_passes("cse", Registry.installed().passes)[0], ModuleOp([])
    prover = Prover(strict=True)
    prover.before(pass_, module)
    assert message_of(lambda: prover.verified(pass_, module)) == message
