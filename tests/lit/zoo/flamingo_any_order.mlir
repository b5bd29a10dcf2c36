// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/flamingo_any_order.mlir | filecheck %s

// CHECK:   interval.table @flamingo_any_order_rows of @flamingo_any_order axis rows {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, cols) residual first_row[j floordiv 64] <= i and i < end_row[j floordiv 64]
//
// CHECK:   interval.table @flamingo_any_order_cols of @flamingo_any_order axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, first_row[j floordiv 64]), min(rows, end_row[j floordiv 64])) from "all.0"
