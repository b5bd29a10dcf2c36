// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/sinks_window.mlir | filecheck %s

// CHECK:   interval.table @sinks_window_rows of @sinks_window axis rows slots 2 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1)] {
// CHECK:       interval.span [max(start[i], i - 1023), i + 1) from "all.0"
// CHECK:       interval.span [start[i], min(i + 1, start[i] + 4)) from "all.1"
//
// CHECK:   interval.table @sinks_window_cols of @sinks_window axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, select(max(j, first i in [0, rows) : j < start[i] + 4) < (first i in [0, rows) :
