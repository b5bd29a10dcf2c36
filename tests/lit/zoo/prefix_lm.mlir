// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/prefix_lm.mlir | filecheck %s

// CHECK:   interval.table @prefix_lm_rows of @prefix_lm axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, max(prefix, min(cols, i + 1))) from "all.0", "all.1"
//
// CHECK:   interval.table @prefix_lm_cols of @prefix_lm axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [select(j < prefix, 0, j), rows) from "all.0", "all.1"
