// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/causal.mlir | filecheck %s

// CHECK:   interval.table @causal_rows of @causal axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, min(cols, i + 1)) from "all.0"
//
// CHECK:   interval.table @causal_cols of @causal axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, rows) from "all.0"
