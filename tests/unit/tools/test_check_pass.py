"""The oracle for pass authors: right passes pass, wrong ones are told where, and how to look."""

import warnings
from pathlib import Path

import pytest

from cmir import zoo
from cmir.errors import SpecError
from cmir.testing import check_pass

EVERYTHING = "lower-intervals,transpose,choose-axis,lower-descriptor,lower-attention"

WRONG = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass
from cmir.dialects.expr import add, const
from cmir.dialects.expr import ExprAttr
from cmir.dialects.interval import SpanOp

@dataclass(frozen=True)
class OneTooMany(ModulePass):
    """Wrong: every span ends one later."""
    name = "one-too-many"
    def apply(self, ctx, op):
        for span in [o for o in op.walk() if isinstance(o, SpanOp)]:
            span.hi = ExprAttr(add(span.hi.data, const(1)))
'''

SINKS = '''
from xdsl.passes import ModulePass
from cmir.dialects.expr import I, J, ZERO, and_, le
from cmir.dialects.maskspec import ClauseOp, RegionOp

class AlwaysFirst(ModulePass):
    """Wrong: the first column stays in sight."""
    name = "always-first"
    def apply(self, ctx, op):
        for region in [o for o in op.walk() if isinstance(o, RegionOp)]:
            region.body.block.add_op(ClauseOp(and_(le(J, I), le(J, ZERO))))
'''


@pytest.mark.parametrize("name", ["hstu", "prefix_lm", "strided"])
def test_our_own_passes_are_right(name: str):
    statics = {"stride": 3} if name == "strided" else None
    module = check_pass(zoo.path(name).read_text(), EVERYTHING, draws=6, size=12, statics=statics)
    assert sum(op.name == "attention.kernel" for op in module.walk()) == 3


def test_a_wrong_pass_is_told_the_pair_and_a_command(tmp_path: Path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    message = (
        r"^table @causal_rows: row \d+ sees column \d+, and should not \(\d+ pairs are wrong\); "
        r"cm-opt --explain=\d+,\d+ --rows \d+ --cols \d+ shows it$"
    )
    with pytest.raises(AssertionError, match=message):
        check_pass(zoo.path("causal").read_text(), "lower-intervals,one-too-many", load=[str(path)])


def test_what_is_wanted_is_compared_too():
    with pytest.raises(AssertionError, match=r"the spec: row .* sees column .*, and should not"):
        check_pass(zoo.path("causal").read_text(), "dnf-normalize", want=lambda mask, i, j, env: mask & (i != j))


def test_what_depends_on_a_long_static_is_tested_with_a_short_one(tmp_path: Path):
    """Right for 20 rows: the sinks that the pass adds are in the window of 4096 anyway."""
    path = tmp_path / "sinks.py"
    path.write_text(SINKS)
    text, load = zoo.path("window_hf").read_text(), [str(path)]
    with pytest.warns(
        UserWarning, match=r"^no mask that was drawn has more than \d+ rows or columns, and window = 4096: "
    ):
        check_pass(text, "dnf-normalize,always-first", load=load)
    message = r"row (\d+) sees column 0, and should not .* shows it, with statics \{'window': 5\}$"
    with pytest.raises(AssertionError, match=message):
        check_pass(text, "dnf-normalize,always-first", load=load, statics={"window": 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_pass(text, "lower-intervals", statics={"window": 5})
    with pytest.raises(SpecError, match="has no static 'size'; it has window"):
        check_pass(text, "lower-intervals", statics={"size": 5})


def test_facts_that_ask_for_large_masks_are_warned_of():
    """Once, before the first of them is compared."""
    text = (
        "maskspec.spec @grid(%w: index = 128) {{\n  maskspec.assume rows == 8 * {w} and cols == rows\n"
        "  maskspec.region @all rows [0, rows) {{\n    maskspec.clause j <= i\n  }}\n}}\n"
    )
    message = "the facts of @grid ask for masks of 1024 rows or columns: comparing them takes minutes; "
    with pytest.warns(UserWarning) as warned:
        check_pass(text.format(w="w"), "dnf-normalize", draws=2)
    assert [str(w.message) for w in warned] == [message + "give smaller statics, check_pass(..., statics={'w': 16})"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_pass(text.format(w="w"), "dnf-normalize", draws=2, statics={"w": 16})
    text = text.replace("%w: index = 128", "").format(w="128")
    with pytest.warns(UserWarning, match=message + "state facts of shorter ones"):
        check_pass(text, "dnf-normalize", draws=1)


def test_a_refusal_is_the_passes_own():
    with pytest.raises(SpecError, match="run --dnf-normalize first"):
        check_pass(zoo.path("causal").read_text(), "extract-intervals")


def test_facts_that_no_draw_satisfies():
    text = (
        "maskspec.spec @never(%n: index) {\n  maskspec.assume n < 0 and 0 < n\n"
        "  maskspec.region @all rows [0, rows) {\n    maskspec.clause j <= i\n  }\n}\n"
    )
    with pytest.raises(AssertionError, match="0 of 20 draws; the facts of @never are hard to satisfy"):
        check_pass(text, "dnf-normalize")


def test_the_package_says_what_it_has():
    import cmir.testing

    with pytest.raises(AttributeError, match=r"module 'cmir\.testing' has no attribute 'nothing'"):
        _ = cmir.testing.nothing  # pyright: ignore[reportAttributeAccessIssue]
