"""`maskspec`: what a mask *is*. A spec declares metadata, states facts about it, and gives each Region of rows a rule.

    spec     ::= `maskspec.spec` symbol `packed`? `(` (param (`,` param)*)? `)` `{` item* `}`
    param    ::= `%`name `:` `index`                                   // a scalar: one integer per sequence
               | `%`name `:` `index` `=` integer                       // a static: known at compile time
               | `%`name `:` `!maskspec.table<` (`row` | `col` | `free`) (`x` integer)? `>`   // an entry per row, ..
    item     ::= `maskspec.assume` (`for` name `in` `[` expr `,` expr `)` `:`)? expr where? (`as` string)?
               | (`maskspec.nondecreasing` | `maskspec.contiguous`) name (`over` `[` expr `,` expr `)`)?
               | `maskspec.constants` symbol `[` integer (`,` integer)* `]`
               | `maskspec.constants` symbol `for` name `in` `[` expr `,` expr `)` `:` expr
               | `maskspec.layout` axis (`,` axis)* `=` order                // the tokens are stored in another order
               | region
    axis     ::= `rows` | `cols`
    order    ::= name `(` (argument (`,` argument)*)? `)`              // the orders: cmir.analysis.layouts
    argument ::= name `=` (expr | `[` expr (`,` expr)* `]`)            // static
    region   ::= `maskspec.region` symbol rows `(%i, %j)` `{` SSA: arith and the ops below, then `maskspec.visible` `}`
               | `maskspec.region` symbol rows `{` (`maskspec.clause` expr)* `}`   // normal form, after --dnf-normalize
    rows     ::= `rows` `[` expr `,` expr `)`                          // the row guard
    where    ::= `where` name `=` expr                                 // what the name stands for, before the `where`
    in rules ::= `maskspec.rows` | `maskspec.cols`                     // the lengths
               | `maskspec.position` (`top_left` | `bottom_right`) `%`i   // the column that a row is aligned with
               | `maskspec.lookup` (`%`table | symbol) `[` `%`index (`,` `%`number)? `]`
               | `maskspec.mod` `%`a `,` `%`b                          // remainder of arith.floordivsi
               | `maskspec.exists` `%`d `in` `[` expr `,` expr `]` `{` ... `maskspec.yield` `%`p `}`   // static
               | `maskspec.visible` `%`p

`expr` is the expression language of `cmir.dialects.expr`. An entry of a table is one integer, or with `x 4` a list of
four: `sel[i, t]` is number `t` of the list at row `i`, and a slot list is the rule
`exists t in [0, 3] : lo[i, t] <= j and j < hi[i, t]`. A fact that reads `i` (`j`) without `for` holds for every row
(column). Row `i` sees column `j` iff the rule of the Region that holds `i` says so; rows in no Region see nothing.
Regions are disjoint (checked by `--check-regions`). In normal form a rule is the disjunction of its clauses, a clause
the conjunction of its literals.

Where `rows` and `cols` differ, an alignment says which column a row stands at: `top_left`, row 0 at column 0 (`i`), or
`bottom_right`, the last row at the last column (`i + cols - rows`), which is what decoding with a cache of keys wants.
Rows that stand elsewhere have a scalar for it: `i + offset`.

A `packed` spec is what `--pack` leaves: metadata and facts of many sequences in one row of tokens. It has no Regions;
its rule is in its interval tables. Its expressions may use `first` and the lengths of free tables (`start_length`), and
`as` gives the words in which a message quotes a fact.

The ops stand in `spec_ops.py` (the spec and its Regions), `spec_items.py` (facts and layouts), `spec_scope.py` (what
a spec declares) and `spec_rules.py` (what a surface rule is made of), which build on `spec_types.py`, `spec_syntax.py`
and `spec_names.py`; this module is where they are imported from.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from cmir.dialects.expr import ExprAttr as ExprAttr
from cmir.dialects.spec_items import OPTIONAL_ARGUMENTS as OPTIONAL_ARGUMENTS
from cmir.dialects.spec_items import AssumeOp as AssumeOp
from cmir.dialects.spec_items import ContiguousOp as ContiguousOp
from cmir.dialects.spec_items import LayoutOp as LayoutOp
from cmir.dialects.spec_items import MonotoneOp as MonotoneOp
from cmir.dialects.spec_items import NondecreasingOp as NondecreasingOp
from cmir.dialects.spec_names import check_axis as check_axis
from cmir.dialects.spec_names import check_indices as check_indices
from cmir.dialects.spec_ops import ClauseOp as ClauseOp
from cmir.dialects.spec_ops import RegionOp as RegionOp
from cmir.dialects.spec_ops import SpecOp as SpecOp
from cmir.dialects.spec_ops import enclosing_spec as enclosing_spec
from cmir.dialects.spec_ops import spec_of as spec_of
from cmir.dialects.spec_rules import ColsOp as ColsOp
from cmir.dialects.spec_rules import ExistsOp as ExistsOp
from cmir.dialects.spec_rules import LookupOp as LookupOp
from cmir.dialects.spec_rules import ModOp as ModOp
from cmir.dialects.spec_rules import PositionOp as PositionOp
from cmir.dialects.spec_rules import RowsOp as RowsOp
from cmir.dialects.spec_rules import VisibleOp as VisibleOp
from cmir.dialects.spec_rules import YieldOp as YieldOp
from cmir.dialects.spec_rules import check_condition as check_condition
from cmir.dialects.spec_rules import position as position
from cmir.dialects.spec_scope import ConstantsOp as ConstantsOp
from cmir.dialects.spec_scope import check_expr as check_expr
from cmir.dialects.spec_scope import check_names as check_names
from cmir.dialects.spec_scope import check_where as check_where
from cmir.dialects.spec_syntax import parse_body as parse_body
from cmir.dialects.spec_syntax import parse_range as parse_range
from cmir.dialects.spec_syntax import parse_value as parse_value
from cmir.dialects.spec_syntax import parse_where as parse_where
from cmir.dialects.spec_syntax import print_body as print_body
from cmir.dialects.spec_syntax import print_range as print_range
from cmir.dialects.spec_types import ALIGNMENTS as ALIGNMENTS
from cmir.dialects.spec_types import IDENTIFIER as IDENTIFIER
from cmir.dialects.spec_types import INDEX as INDEX
from cmir.dialects.spec_types import MAX_ENTRIES as MAX_ENTRIES
from cmir.dialects.spec_types import TABLE_KINDS as TABLE_KINDS
from cmir.dialects.spec_types import Parameter as Parameter
from cmir.dialects.spec_types import ParameterKind as ParameterKind
from cmir.dialects.spec_types import TableType as TableType
from cmir.dialects.spec_types import length_name as length_name

MaskSpec = Dialect(
    "maskspec",
    [
        *(SpecOp, AssumeOp, NondecreasingOp, ContiguousOp, ConstantsOp, LayoutOp, RegionOp, ClauseOp),
        *(VisibleOp, RowsOp, ColsOp, PositionOp, ModOp, LookupOp, ExistsOp, YieldOp),
    ],
    [TableType, ExprAttr],
)
