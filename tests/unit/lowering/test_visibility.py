"""The printed visibility hooks: their text, and that it is what the comments say it is. Their meaning is tested by
running them, in tests/unit/runtime/test_attention.py."""

from __future__ import annotations

import ast
import itertools

import pytest

from cmir.lowering.visibility import Axis, Kernel, needs_live_test, table_axis, visibility_hooks

KERNELS: tuple[Kernel, ...] = ("forward", "dq", "dkv")
AXES: tuple[Axis, ...] = ("rows", "cols")


def test_hoisted_slots():
    hooks = visibility_hooks("forward", "rows", 2, False, [["history", "candidate"], []])
    assert hooks == {
        "prepare_forward": """\
@triton.jit
def prepare_forward(table, fixed, n_table):
    inside = fixed < n_table
    # slot 0: history; candidate
    lo0 = tl.load(table + (2 * 0 + 0) * n_table + fixed, mask=inside, other=0)
    width0 = (tl.load(table + (2 * 0 + 1) * n_table + fixed, mask=inside, other=0) - lo0).to(tl.uint32, bitcast=True)
    # slot 1
    lo1 = tl.load(table + (2 * 1 + 0) * n_table + fixed, mask=inside, other=0)
    width1 = (tl.load(table + (2 * 1 + 1) * n_table + fixed, mask=inside, other=0) - lo1).to(tl.uint32, bitcast=True)
    return lo0, width0, lo1, width1
""",
        "visible_forward": """\
@triton.jit
def visible_forward(slots, table, fixed, moving, start, n_table, begin, end, most):
    position = moving[None, :]
    seen = tl.zeros([fixed.shape[0], moving.shape[0]], tl.int1)
    # slot 0: history; candidate
    seen |= (position - slots[0][:, None]).to(tl.uint32, bitcast=True) < slots[1][:, None]
    # slot 1
    seen |= (position - slots[2][:, None]).to(tl.uint32, bitcast=True) < slots[3][:, None]
    return seen
""",
    }  # fmt: skip


@pytest.mark.parametrize(("kernel", "axis", "slots"), list(itertools.product(KERNELS, AXES, (0, 1, 2, 4, 5, 33))))
def test_every_combination_is_two_functions_that_name_every_slot(kernel: Kernel, axis: Axis, slots: int):
    comments = [[f"Region {slot}"] for slot in range(slots)]
    hooks = visibility_hooks(kernel, axis, slots, needs_live_test(slots), comments)
    assert list(hooks) == [f"prepare_{kernel}", f"visible_{kernel}"]
    for name, source in hooks.items():
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == name
    for slot in range(slots):
        assert f"# slot {slot}: Region {slot}\n" in hooks[f"visible_{kernel}"]


def test_a_comment_list_per_slot_is_required():
    with pytest.raises(ValueError, match="2 slots, but comments for 1"):
        visibility_hooks("forward", "rows", 2, False, [[]])


@pytest.mark.parametrize(
    ("kernel", "row_slots", "col_slots", "axis"),
    [
        ("forward", 1, 1, "rows"), ("dq", 2, None, "rows"), ("dkv", 2, 1, "cols"), ("dkv", 2, None, "rows"),
        ("forward", None, 1, "cols"), ("dq", None, 33, "cols"), ("forward", 0, 0, "rows"), ("dkv", 0, 0, "cols"),
        ("forward", 2, 1, "rows"), ("forward", 4, 1, "cols"), ("forward", 33, 2, "cols"), ("forward", 33, 33, "rows"),
        ("dkv", 2, 3, "cols"), ("dkv", 1, 33, "rows"),
    ],
)  # fmt: skip
def test_table_axis(kernel: Kernel, row_slots: int | None, col_slots: int | None, axis: Axis):
    assert table_axis(kernel, row_slots, col_slots) == axis
