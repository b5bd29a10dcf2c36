// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/topk_blocks.mlir | filecheck %s

// CHECK:   interval.table @topk_blocks_rows of @topk_blocks axis rows slots 4 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
// CHECK:       interval.span [max(0, i - 511), min(cols, i + 1)) from "all.0"
// CHECK:       interval.span [max(0, sel[i, 0] * 64), min(cols, i + 1, sel[i, 0] * 64 + 64)) from "all.1"
// CHECK:       interval.span [max(0, sel[i, 1] * 64), min(cols, i + 1, sel[i, 1] * 64 + 64)) from "all.2"
// CHECK:       interval.span [max(0, sel[i, 2] * 64), min(cols, i + 1, sel[i, 2] * 64 + 64)) from "all.3"
//
// CHECK:   interval.table @topk_blocks_cols of @topk_blocks axis cols {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, j + 512)) from "all.0"
// CHECK:       interval.span [j, rows) residual j floordiv 64 == sel[i, 0] because "nothing says that table 'sel'
// CHECK:       interval.span [j, rows) residual j floordiv 64 == sel[i, 1] because "nothing says that table 'sel'
// CHECK:       interval.span [j, rows) residual j floordiv 64 == sel[i, 2] because "nothing says that table 'sel'
