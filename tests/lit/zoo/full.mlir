// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/full.mlir | filecheck %s

// CHECK:   interval.table @full_rows of @full axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, cols) from "all.0"
//
// CHECK:   interval.table @full_cols of @full axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [0, rows) from "all.0"
