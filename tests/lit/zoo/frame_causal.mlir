// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/frame_causal.mlir | filecheck %s

// CHECK:   interval.table @frame_causal_rows of @frame_causal axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, min(cols, i floordiv 1560 * 1560 + 1560)) from "all.0"
//
// CHECK:   interval.table @frame_causal_cols of @frame_causal axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j floordiv 1560 * 1560, rows) from "all.0"
