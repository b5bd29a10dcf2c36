"""An op of your own in the language of rules: whether two places are in the same block of `size`.

same_block(a, b)  =  a floordiv size == b floordiv size

    %p = extra.same_block %i, %j of 64
    maskspec.visible %p

Canonicalization (`--canonicalize`): a place is in its own block.

    same_block(a, a)  =  true
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, i1, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from cmir.dialects.expr import Expr, const, eq, make
from cmir.dialects.rule_ops import RuleOp


@irdl_op_definition
class SameBlockOp(IRDLOperation, RuleOp, HasCanonicalizationPatternsInterface):
    """`%p = extra.same_block %a, %b of 64`: whether two places are in the same block of 64."""

    name = "extra.same_block"
    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    size = prop_def(IntegerAttr[I64])
    result = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `of` $size attr-dict"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, size: int):
        super().__init__(operands=[lhs, rhs], properties={"size": IntegerAttr(size, i64)}, result_types=[i1])

    def verify_(self) -> None:
        if self.size.value.data < 1:
            raise VerifyException(f"the size of a block is at least 1, got {self.size.value.data}")

    def means(self, *operands: Expr) -> Expr:
        a, b = (make("floordiv", place, const(self.size.value.data)) for place in operands)
        return eq(a, b)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (_InItsOwnBlock(),)


class _InItsOwnBlock(RewritePattern):
    """same_block(a, a)  =  true"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SameBlockOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(1, i1)))


EXTRA = Dialect("extra", [SameBlockOp])
