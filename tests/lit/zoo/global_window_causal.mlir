// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/global_window_causal.mlir | filecheck %s

// CHECK:   interval.table @global_window_causal_rows of @global_window_causal axis rows slots 2 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1)] {
// CHECK:       interval.span [max(0, i - 256), min(cols, i + 1)) from "all.0"
// CHECK:       interval.span [0, min(cols, i + 1, 16)) from "all.1"
//
// CHECK:   interval.table @global_window_causal_cols of @global_window_causal axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, select(j < 16, rows, min(rows, j + 257))) from "all.0", "all.1"
