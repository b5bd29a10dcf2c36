// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/window_flash.mlir | filecheck %s

// CHECK:   interval.table @window_flash_rows of @window_flash axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, i + cols - rows - 512), i + cols - rows + 1) from "all.0"
//
// CHECK:   interval.table @window_flash_cols of @window_flash axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, rows + j - cols), min(rows, j + rows - cols + 513)) from "all.0"
