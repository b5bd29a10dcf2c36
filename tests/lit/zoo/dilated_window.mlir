// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/dilated_window.mlir | filecheck %s

// CHECK:   interval.table @dilated_window_rows of @dilated_window axis rows slots 9 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [i + 8, min(cols, i + 9)) from "all.0"
// CHECK:       interval.span [i + 6, min(cols, i + 7)) from "all.0"
// CHECK:       interval.span [i + 4, min(cols, i + 5)) from "all.0"
// CHECK:       interval.span [i + 2, min(cols, i + 3)) from "all.0"
// CHECK:       interval.span [i, min(cols, i + 1)) from "all.0"
// CHECK:       interval.span [max(0, i - 2), min(cols, i - 1)) from "all.0"
// CHECK:       interval.span [max(0, i - 4), min(cols, i - 3)) from "all.0"
// CHECK:       interval.span [max(0, i - 6), min(cols, i - 5)) from "all.0"
// CHECK:       interval.span [max(0, i - 8), min(cols, i - 7)) from "all.0"
//
// CHECK:   interval.table @dilated_window_cols of @dilated_window axis cols slots 9 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, j - 8), min(rows, j - 7)) from "all.0"
// CHECK:       interval.span [max(0, j - 6), min(rows, j - 5)) from "all.0"
// CHECK:       interval.span [max(0, j - 4), min(rows, j - 3)) from "all.0"
// CHECK:       interval.span [max(0, j - 2), min(rows, j - 1)) from "all.0"
// CHECK:       interval.span [j, min(rows, j + 1)) from "all.0"
// CHECK:       interval.span [j + 2, min(rows, j + 3)) from "all.0"
// CHECK:       interval.span [j + 4, min(rows, j + 5)) from "all.0"
// CHECK:       interval.span [j + 6, min(rows, j + 7)) from "all.0"
// CHECK:       interval.span [j + 8, min(rows, j + 9)) from "all.0"
