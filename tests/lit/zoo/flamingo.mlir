// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/flamingo.mlir | filecheck %s

// CHECK:   interval.table @flamingo_rows of @flamingo axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first j in [0, cols) : i < end_row[j floordiv 64], first j in [0, cols) : i <
//
// CHECK:   interval.table @flamingo_cols of @flamingo axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, first_row[j floordiv 64]), min(rows, end_row[j floordiv 64])) from "all.0"
