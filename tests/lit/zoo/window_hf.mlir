// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/window_hf.mlir | filecheck %s

// CHECK:   interval.table @window_hf_rows of @window_hf axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, i - 4095), min(cols, i + 1)) from "all.0"
//
// CHECK:   interval.table @window_hf_cols of @window_hf axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, j + 4096)) from "all.0"
