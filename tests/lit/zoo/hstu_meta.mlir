// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/hstu_meta.mlir | filecheck %s

// CHECK:   interval.table @hstu_meta_rows of @hstu_meta axis rows slots 2 {
// CHECK:     interval.region @context [0, 6) {
// CHECK:       interval.span [0, history + 6) from "context.0"
// CHECK:     interval.region @history [6, history + 6) {
// CHECK:       interval.span [select(history <= i + 26, 0, select(history <= i + 26 and 6 < i, min(select(i <=
// CHECK:     interval.region @target [history + 6, rows) {
// CHECK:       interval.span [i, i + 1) from "target.0"
// CHECK:       interval.span [0, history + 6) from "target.1", "target.2"
//
// CHECK:   interval.table @hstu_meta_cols of @hstu_meta axis cols slots 3 {
// CHECK:     interval.region @all [0, cols) fuse [(0, 1), (1, 2)] {
// CHECK:       interval.span [select(j < history + 6, 0, max(history + 6, j)), select(j < history + 6, select(j <
// CHECK:       interval.span [select(j < 6, max(6, history - 26), max(6, j)), select(j < 6, rows, max(select(j <
// CHECK:       interval.span [max(j + 1, history - 26), rows) when 6 <= j and j < history + 6 from "history.4",
