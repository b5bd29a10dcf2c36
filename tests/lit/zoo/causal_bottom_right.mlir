// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/causal_bottom_right.mlir | filecheck %s

// CHECK:   interval.table @causal_bottom_right_rows of @causal_bottom_right axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, i + cols - rows + 1) from "all.0"
//
// CHECK:   interval.table @causal_bottom_right_cols of @causal_bottom_right axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, rows + j - cols), rows) from "all.0"
