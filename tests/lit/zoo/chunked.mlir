// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/chunked.mlir | filecheck %s

// CHECK:   interval.table @chunked_rows of @chunked axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, padding + (i - padding) floordiv 8192 * 8192), min(cols, i + 1)) from "all.0"
//
// CHECK:   interval.table @chunked_cols of @chunked axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, (j - padding) floordiv 8192 * 8192 + padding + 8192)) from "all.0"
