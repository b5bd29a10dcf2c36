// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/tree_any_order.mlir | filecheck %s

// CHECK:   interval.table @tree_any_order_rows of @tree_any_order axis rows slots 5 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3),
// CHECK:       interval.span [0, context) from "all.0"
// CHECK:       interval.span [max(0, ancestor[i, 0]), min(cols, ancestor[i, 0] + 1)) from "all.1"
// CHECK:       interval.span [max(0, ancestor[i, 1]), min(cols, ancestor[i, 1] + 1)) from "all.2"
// CHECK:       interval.span [max(0, ancestor[i, 2]), min(cols, ancestor[i, 2] + 1)) from "all.3"
// CHECK:       interval.span [max(0, ancestor[i, 3]), min(cols, ancestor[i, 3] + 1)) from "all.4"
//
// CHECK:   interval.table @tree_any_order_cols of @tree_any_order axis cols {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [0, rows) when j < context from "all.0"
// CHECK:       interval.span [0, rows) residual j == ancestor[i, 0] because "nothing says that table 'ancestor' is
// CHECK:       interval.span [0, rows) residual j == ancestor[i, 1] because "nothing says that table 'ancestor' is
// CHECK:       interval.span [0, rows) residual j == ancestor[i, 2] because "nothing says that table 'ancestor' is
// CHECK:       interval.span [0, rows) residual j == ancestor[i, 3] because "nothing says that table 'ancestor' is
