"""Verification that knows which op failed.

xDSL verifies a whole module and raises without saying where. Here every op is verified on its own, in textual order,
so the first failure is a `SpecError` at its op. Besides, a value must be defined before it is used, in this or an
enclosing region, which xDSL does not check.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from cmir.errors import SpecError


def verify(op: Operation) -> None:
    """Verify `op` and everything in it.

    Raises:
        SpecError: at the first op that does not verify.
    """
    _verify_op(op, set())


def one_line(message: str) -> str:
    """xDSL's messages may run over several lines; an error has one."""
    lines = message.removeprefix("Operation does not verify:").splitlines()
    return " ".join(line.strip() for line in lines if line.strip())


def _verify_op(op: Operation, visible: set[SSAValue]) -> None:
    try:
        op.verify(verify_nested_ops=False)
    except Exception as error:
        # xDSL prints the op into its exception; if that fails too, the reason is the earlier exception.
        reason = error.__context__ if isinstance(error.__context__, VerifyException) else error
        if not isinstance(reason, VerifyException):  # it tripped over an op inside, which says more about itself
            for region in op.regions:
                _verify_region(op, region, visible)
        raise SpecError(one_line(str(reason)), op) from error
    for region in op.regions:
        _verify_region(op, region, visible)


def _verify_region(parent: Operation, region: Region, outside: set[SSAValue]) -> None:
    visible = set(outside)
    single_block = len(region.blocks) == 1
    if isinstance(parent, ModuleOp) or not single_block:
        # A module is a graph, and among several blocks the order of the text says nothing.
        visible.update(result for block in region.blocks for op in block.ops for result in op.results)
    for block in region.blocks:
        visible.update(block.args)
        if single_block and block.is_empty and not parent.has_trait(NoTerminator):
            raise SpecError(f"the body of '{parent.name}' is empty, it needs a terminator", parent)
        for op in block.ops:
            for operand in op.operands:
                if operand not in visible:
                    name = f"'%{operand.name_hint}'" if operand.name_hint else "a value"
                    raise SpecError(
                        f"{name} is used where it is not defined", op, [(f"{name} is defined here", operand.owner)]
                    )
            _verify_op(op, visible)
            visible.update(op.results)
