// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/window_two_sided.mlir | filecheck %s

// CHECK:   interval.table @window_two_sided_rows of @window_two_sided axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, i - 64), min(cols, i + 65)) from "all.0"
//
// CHECK:   interval.table @window_two_sided_cols of @window_two_sided axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, j - 64), min(rows, j + 65)) from "all.0"
