"""Which numbers of a pair fit 32 bits, whatever the metadata: interval arithmetic on the SSA of a block (Moore 1966).

    i, j in [0, 2^30)    j floordiv 128 in [0, 2^23)    i - j in (-2^30, 2^30)    table[i]: any 64 bits

A GPU reckons in 64 bits at half the speed or less, and there may be a billion pairs. What is proved to fit is kept in
32 bits; all else is reckoned with in 64 as ever. Where a wide number meets a narrow one in a comparison, the nearest
32-bit number compares as it does: `narrow` in skeletons/rule.py.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import BlockArgument, SSAValue

from cmir.dialects.descriptor import FirstOp, LengthOp, PreprocessOp
from cmir.dialects.maskspec import ColsOp, LookupOp, ModOp, RowsOp

LENGTH = 2**30
"""Most rows, columns or entries (`cmir.runtime.metadata.MAX_LENGTH`)."""


class Interval(NamedTuple):
    """All integers from `low` to `high`."""

    low: int
    high: int

    @property
    def narrow(self) -> bool:
        """Whether all are strictly between the least and the greatest int32."""
        return self.low > -(2**31) and self.high < 2**31 - 1


POSITION = Interval(0, LENGTH - 1)
"""An index. No pair is asked about where there is no row or no column."""

ANY = Interval(-(2**63), 2**63)


class Widths:
    """The intervals of the values of a preprocess kernel."""

    def __init__(self) -> None:
        self.known: dict[SSAValue, Interval] = {}

    def narrow(self, value: SSAValue) -> bool:
        """Whether a number is kept in 32 bits; conditions are."""
        return value.type == i1 or self.of(value).narrow

    def of(self, value: SSAValue) -> Interval:
        """Where a number lies."""
        if value not in self.known:
            self.known[value] = self._of(value)
        return self.known[value]

    def _of(self, value: SSAValue) -> Interval:
        if isinstance(value, BlockArgument):  # a metadatum; the index of a block; a place that a search looks at
            owner = value.owner.parent_op()
            return ANY if isinstance(owner, PreprocessOp | FirstOp) else POSITION
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as attr):
                return Interval(attr.value.data, attr.value.data)
            case RowsOp() | ColsOp() | LengthOp():
                return Interval(0, LENGTH)
            case LookupOp():
                return ANY
            case arith.AddiOp(lhs=a, rhs=b):
                return Interval(self.of(a).low + self.of(b).low, self.of(a).high + self.of(b).high)
            case arith.SubiOp(lhs=a, rhs=b):
                return Interval(self.of(a).low - self.of(b).high, self.of(a).high - self.of(b).low)
            case arith.MuliOp(lhs=a, rhs=b):
                products = [x * y for x in self.of(a) for y in self.of(b)]
                return Interval(min(products), max(products))
            case arith.MinSIOp(lhs=a, rhs=b):
                return Interval(min(self.of(a).low, self.of(b).low), min(self.of(a).high, self.of(b).high))
            case arith.MaxSIOp(lhs=a, rhs=b):
                return Interval(max(self.of(a).low, self.of(b).low), max(self.of(a).high, self.of(b).high))
            case arith.SelectOp(lhs=a, rhs=b) | FirstOp(lo=a, hi=b):  # a search that finds nothing says its end
                return Interval(min(self.of(a).low, self.of(b).low), max(self.of(a).high, self.of(b).high))
            case arith.FloorDivSIOp(lhs=a, rhs=b):
                return self._quotient(self.of(a), self.of(b))
            case ModOp(lhs=a, rhs=b):
                return self._remainder(self.of(a), self.of(b))
            case _:
                return ANY

    @staticmethod
    def _quotient(a: Interval, b: Interval) -> Interval:
        """By at least 1: kernels divide by 1 where a divisor is less."""
        least, most = max(b.low, 1), max(b.high, 1)
        return Interval(min(a.low // least, a.low // most), max(a.high // least, a.high // most))

    @staticmethod
    def _remainder(a: Interval, b: Interval) -> Interval:
        same = a.low >= 0 and a.high < b.low
        return a if same else Interval(0, max(b.high, 1) - 1)
