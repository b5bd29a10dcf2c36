"""The driver as Python callers use it: located errors as `SpecError`."""

from dataclasses import dataclass
from textwrap import dedent

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntAttr, ModuleOp, NameLoc, NoneAttr, StringAttr, UnknownLoc
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from cmir.errors import MetadataError, SourceLocation, SpecError, locate, render
from cmir.tools.driver import emit, parse, run_pipeline

TEXT = dedent("""\
    func.func @f(%a: i32) -> i32 {
      %x = arith.addi %a, %a : i32
      %y = arith.addi %a, %a : i32
      %z = arith.muli %x, %y : i32
      func.return %z : i32
    }
    """)


def test_every_op_has_a_location():
    locations = {op.name: locate(op) for op in parse(TEXT, "f.mlir").walk()}
    assert locations["builtin.module"] == ("f.mlir", 1, 1)
    assert locations["func.func"] == ("f.mlir", 1, 1)
    assert locations["arith.muli"] == ("f.mlir", 4, 3)


def test_parse_error_text():
    with pytest.raises(SpecError) as caught:
        parse(TEXT.replace("%x, %y", "%x, %w"), "f.mlir")
    assert str(caught.value) == dedent("""\
        f.mlir:4:23: error: use of undefined value '%w'
          %z = arith.muli %x, %w : i32
                              ^""")
    assert caught.value.location == SourceLocation("f.mlir", 4, 23)


def test_first_line_shifts_locations():
    with pytest.raises(SpecError) as caught:
        parse(TEXT.replace("arith.muli", "arith.mul"), "f.mlir", first_line=101)
    assert caught.value.location == SourceLocation("f.mlir", 104, 8)


def test_verify_error_is_at_its_op():
    with pytest.raises(SpecError) as caught:
        parse(TEXT.replace("-> i32", "-> i64"), "f.mlir")
    assert caught.value.location == SourceLocation("f.mlir", 5, 3)


def test_tabs_stay_in_front_of_the_caret():
    with pytest.raises(SpecError) as caught:
        parse("\tfunc.func\t@f() { func.return %a : i32 }", "f.mlir")
    assert str(caught.value).splitlines()[-1] == "\t         \t" + " " * 19 + "^"


def test_an_empty_text_is_an_empty_module():
    assert emit(parse("// nothing\n")) == "builtin.module {\n}\n"


@pytest.mark.parametrize("passes", [["cse"], ["cse,dce"], [CommonSubexpressionElimination()]], ids=str)
def test_run_pipeline(passes: list[ModulePass | str]):
    module = parse(TEXT)
    run_pipeline(module, passes)
    assert sum(isinstance(op, AddiOp) for op in module.walk()) == 1


@dataclass(frozen=True)
class Failing(ModulePass):
    """Raises what it is given."""

    name = "failing"
    error: Exception

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise self.error


def test_metadata_errors_pass_through():
    with pytest.raises(MetadataError, match="'history'"):
        run_pipeline(parse(TEXT), [Failing(MetadataError("'history' is missing"))])


def test_a_spec_error_without_place_gets_that_of_the_module():
    with pytest.raises(SpecError, match=r"f.mlir:1:1: error: no") as caught:
        run_pipeline(parse(TEXT, "f.mlir"), [Failing(SpecError("no", notes=["i = 3"]))])
    assert caught.value.notes[0].message == "i = 3"


def test_unknown_names_in_text():
    with pytest.raises(SpecError, match=r"<pipeline>:1:5: error: unknown pass 'css'; did you mean 'cse'\?"):
        run_pipeline(parse(TEXT), ["dce,css"])
    with pytest.raises(SpecError, match=r"unknown target 'tritom'; did you mean 'triton'\?"):
        emit(parse(TEXT), "tritom")


def test_locate_looks_through_composite_locations():
    here = FileLineColLoc(StringAttr("f.mlir"), IntAttr(1), IntAttr(1))
    assert locate(NameLoc(StringAttr("name"), here)) == ("f.mlir", 1, 1)
    assert locate(FusedLoc((UnknownLoc(), here), NoneAttr())) == ("f.mlir", 1, 1)
    assert locate(UnknownLoc()) is None
    assert locate(None) is None


def test_an_op_without_location_is_where_its_parent_is():
    module = parse(TEXT, "f.mlir")
    addition = next(op for op in module.walk() if isinstance(op, AddiOp))
    addition.location = UnknownLoc()
    assert locate(addition) == ("f.mlir", 1, 1)
    assert locate(addition.result) == ("f.mlir", 1, 1)


def test_render_without_source_line():
    assert render("error", "m", SourceLocation("no such file", 1, 1)) == "no such file:1:1: error: m"
    assert render("error", "m", None) == "error: m"
    assert str(SpecError("m")) == "m"
