// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/strided.mlir | filecheck %s

// CHECK:   interval.table @strided_rows of @strided axis rows {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, i - 127), min(cols, i + 1)) from "all.0"
// CHECK:       interval.span [0, min(cols, i + 1)) residual (i - j) mod 128 == 0 because "'(i - j) mod 128'
//
// CHECK:   interval.table @strided_cols of @strided axis cols {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, j + 128)) from "all.0"
// CHECK:       interval.span [j, rows) residual (i - j) mod 128 == 0 because "'(i - j) mod 128' repeats along i"
