// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/block_diffusion.mlir | filecheck %s

// CHECK:   interval.table @block_diffusion_rows of @block_diffusion axis rows slots 2 {
// CHECK:     interval.region @noised [0, length) {
// CHECK:       interval.span [i floordiv 16 * 16, min(length, i floordiv 16 * 16 + 16)) from "noised.0"
// CHECK:       interval.span [length, i floordiv 16 * 16 + length) from "noised.1"
// CHECK:     interval.region @clean [length, rows) {
// CHECK:       interval.span [length, min(cols, (i - length) floordiv 16 * 16 + length + 16)) from "clean.0"
//
// CHECK:   interval.table @block_diffusion_cols of @block_diffusion axis cols slots 2 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [select(j < length, j floordiv 16 * 16, (j - length) floordiv 16 * 16 + 16),
// CHECK:       interval.span [length + (j - length) floordiv 16 * 16, rows) when length <= j from "clean.0"
