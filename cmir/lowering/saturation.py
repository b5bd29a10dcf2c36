"""How large a metadatum may be before a number of the rule wraps: what is larger is read as the largest that may.

    every number of a rule  =  a * (the largest metadatum) + (what constants, lengths and positions add)

Rules are about mathematical integers, kernels reckon in int64 (or in int32, where that is proved to hold all values:
`cmir.lowering.widths`). `factor` bounds a over all numbers that a preprocess kernel makes: 1 for `start[i]`, 2 for
`time[i] - time[j]`, 100 for `100 * w[i]`. With metadata of at most 2^62 / a either way the first part stays below 2^62;
the second is below 2^62 too, since lengths are at most 2^30 and constants have 32 bits. So up to 2^61, or 2^62 / a
where a is more than 2, rules are exact: nanoseconds since 1970 are about 2^60.7. A larger number is read as the
largest: INT64_MAX still means "no limit". Metadata that are only compared with one another, or with what no metadatum
changes, are not reckoned with, and are exact whatever they are: 64-bit hashes as document ids.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import BlockArgument, Operation, SSAValue

from cmir.dialects.descriptor import PreprocessOp
from cmir.dialects.maskspec import LookupOp, ModOp

BITS = 62
"""Of either part of a number, without the sign."""

UNKNOWN = 2**22
"""The factor of a number of which nothing better is known: products of two numbers of the rule."""


def limit(preprocess: PreprocessOp) -> int:
    """The largest metadatum, a power of two, with which no number of the kernel wraps."""
    factor = factors()
    largest = max((factor(result) for op in preprocess.walk() for result in op.results), default=1)
    return 1 << (BITS - max(1, (largest - 1).bit_length()))


CHOICES = (arith.SelectOp, arith.MinSIOp, arith.MaxSIOp)
"""Ops whose result is one of their operands."""


@lru_cache(maxsize=4)
def compared(preprocess: PreprocessOp) -> frozenset[SSAValue]:
    """The metadata, as they are read, that are only compared: with one another, or with what no metadatum changes.

    Both sides of a comparison are read alike, since one that is exact beside one that is saturated would be larger; so
    are those of which one is chosen.
    """
    factor = factors()
    found: set[SSAValue] = {a for a in preprocess.body.block.args if factor(a)}
    chosen: dict[SSAValue, tuple[SSAValue, ...]] = {}
    for op in preprocess.walk():
        if isinstance(op, LookupOp):
            found.add(op.result)
        elif isinstance(op, CHOICES) and factor(op.results[0]):
            found.add(op.results[0])
            chosen[op.results[0]] = tuple(x for x in op.operands if factor(x))

    def alike(value: SSAValue) -> bool:
        if not all(operand in found for operand in chosen.get(value, ())):
            return False
        for use in value.uses:
            op = use.operation
            if isinstance(op, CHOICES):
                if op.results[0] not in found:
                    return False
            elif not isinstance(op, arith.CmpiOp) or not all(x in found or not factor(x) for x in op.operands):
                return False
        return True

    while (kept := {value for value in found if alike(value)}) != found:
        found = kept
    return frozenset(found)


def factors() -> Callable[[SSAValue], int]:
    """Of a number of the kernel, how much of a metadatum it holds: see above."""

    @cache
    def factor(value: SSAValue) -> int:
        if value.type == i1:
            return 0
        if isinstance(value, BlockArgument):  # a metadatum, or a position
            return int(isinstance(value.owner.parent_op(), PreprocessOp))
        op = value.owner
        assert isinstance(op, Operation)
        match op:
            case LookupOp():
                return 1
            case arith.AddiOp() | arith.SubiOp() | arith.FloorDivSIOp() | ModOp():
                return sum(map(factor, op.operands))
            case arith.MuliOp():
                return product(op)
            case arith.MinSIOp() | arith.MaxSIOp() | arith.SelectOp():
                return max(map(factor, op.operands))
            case _:  # a constant, a length, the result of a search: none grows with the metadata
                return 0

    def product(op: arith.MuliOp) -> int:
        for number, other in (op.operands, tuple(reversed(op.operands))):
            match number.owner:
                case arith.ConstantOp(value=IntegerAttr() as attr):
                    return abs(attr.value.data) * factor(other)
                case _:
                    pass
        return UNKNOWN if any(map(factor, op.operands)) else 0

    return factor


def hook(preprocess: PreprocessOp) -> str:
    """The source of `saturate`."""
    most = limit(preprocess)
    return f"""@triton.jit
def saturate(value):
    if value.dtype == tl.int64:
        value = tl.minimum(tl.maximum(value, {-most}), {most})  # 2^{most.bit_length() - 1}: no sum wraps
    return wide(value)
"""
