// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/gemma3.mlir | filecheck %s

// CHECK:   interval.table @gemma3_rows of @gemma3 axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [min(max(0, i - 1023), image[i]), image_end[i]) from "all.0", "all.1"
//
// CHECK:   interval.table @gemma3_cols of @gemma3 axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [first i in [0, rows) : j < image_end[i], max(min(rows, j + 1024), first i in [0,
