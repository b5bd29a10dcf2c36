// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/block_causal.mlir | filecheck %s

// CHECK:   interval.table @block_causal_rows of @block_causal axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, min(cols, i floordiv 32 * 32 + 32)) from "all.0"
//
// CHECK:   interval.table @block_causal_cols of @block_causal axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j floordiv 32 * 32, rows) from "all.0"
