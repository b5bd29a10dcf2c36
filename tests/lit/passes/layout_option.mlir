// RUN: cm-opt --layout='order="zigzag(of = 2, rank = 0)" axes=rows' --lower-intervals --transpose %s | filecheck %s
// RUN: cm-opt --layout='order="residue(of = 2)"' --lower-intervals %s | filecheck %s --check-prefix=BOTH
// RUN: not cm-opt --layout='order="zigzag(off = 2)"' %s 2>&1 | filecheck %s --check-prefix=ARGUMENT
// RUN: not cm-opt --layout='order="zigzag"' %s 2>&1 | filecheck %s --check-prefix=TEXT
// RUN: not cm-opt --lower-intervals --layout='order="residue(of = 2)"' %s 2>&1 | filecheck %s --check-prefix=LATE

// A causal shard has one slot a row and one a column.
// CHECK: interval.table @causal_rows of @causal axis rows slots 1 {
// CHECK: interval.table @causal_cols of @causal axis cols slots 1 {
// BOTH: interval.table @causal_rows of @causal axis rows slots 2 {
// ARGUMENT: error: 'zigzag' takes of, rank; got 'off'
// TEXT: error: the layout 'zigzag' is no order such as zigzag(of = 4)
// LATE: error: this table is of the tokens in their own order; run --layout before it is made
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
