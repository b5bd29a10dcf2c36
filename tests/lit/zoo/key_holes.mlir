// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/key_holes.mlir | filecheck %s

// CHECK:   interval.table @key_holes_rows of @key_holes axis rows {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, min(cols, i + 1)) residual 0 < keep[j] because "nothing says that table 'keep' is
//
// CHECK:   interval.table @key_holes_cols of @key_holes axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, rows) when 0 < keep[j] from "all.0"
