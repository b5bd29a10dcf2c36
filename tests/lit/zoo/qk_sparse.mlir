// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/qk_sparse.mlir | filecheck %s

// CHECK:   interval.table @qk_sparse_rows of @qk_sparse axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, first j in [0, cols) : i < from_row[j]) from "all.0"
//
// CHECK:   interval.table @qk_sparse_cols of @qk_sparse axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [from_row[j], rows) from "all.0"
