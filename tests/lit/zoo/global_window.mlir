// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/global_window.mlir | filecheck %s

// CHECK:   interval.table @global_window_rows of @global_window axis rows slots 2 {
// CHECK:     interval.region @global [0, 16) {
// CHECK:       interval.span [0, cols) from "global.0"
// CHECK:     interval.region @local [16, rows) fuse [(0, 1)] {
// CHECK:       interval.span [0, min(cols, 16)) from "local.0"
// CHECK:       interval.span [max(0, i - 256), min(cols, i + 257)) from "local.1"
//
// CHECK:   interval.table @global_window_cols of @global_window axis cols slots 2 {
// CHECK:     interval.region @all [0, cols) fuse [(0, 1)] {
// CHECK:       interval.span [0, select(j < 16, rows, min(rows, 16))) from "global.0", "local.0"
// CHECK:       interval.span [max(16, j - 256), min(rows, j + 257)) from "local.1"
