// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/bigbird.mlir | filecheck %s

// CHECK:   interval.table @bigbird_rows of @bigbird axis rows slots 6 {
// CHECK:     interval.region @first [0, min(64, (rows + 63) floordiv 64 * 64 - 64)) {
// CHECK:       interval.span [0, cols) from "first.0"
// CHECK:     interval.region @middle [64, (rows + 63) floordiv 64 * 64 - 64) fuse [(0, 2), (0, 3), (0, 4), (0, 5),
// CHECK:       interval.span [0, 64) from "middle.0"
// CHECK:       interval.span [(cols + 63) floordiv 64 * 64 - 64, cols) from "middle.1"
// CHECK:       interval.span [i floordiv 64 * 64 - 64, min(cols, i floordiv 64 * 64 + 128)) from "middle.2"
// CHECK:       interval.span [max(0, random[i floordiv 64, 0] * 64), min(cols, random[i floordiv 64, 0] * 64 +
// CHECK:       interval.span [max(0, random[i floordiv 64, 1] * 64), min(cols, random[i floordiv 64, 1] * 64 +
// CHECK:       interval.span [max(0, random[i floordiv 64, 2] * 64), min(cols, random[i floordiv 64, 2] * 64 +
// CHECK:     interval.region @last [max(0, (rows + 63) floordiv 64 * 64 - 64), rows) {
// CHECK:       interval.span [0, cols) from "last.0"
//
// CHECK:   interval.table @bigbird_cols of @bigbird axis cols {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [0, min(64, (rows + 63) floordiv 64 * 64 - 64)) from "first.0"
// CHECK:       interval.span [64, (rows + 63) floordiv 64 * 64 - 64) when j < 64 from "middle.0"
// CHECK:       interval.span [64, (rows + 63) floordiv 64 * 64 - 64) when (cols + 63) floordiv 64 * 64 <= j + 64
// CHECK:       interval.span [max(64, j floordiv 64 * 64 - 64), min((rows + 63) floordiv 64 * 64 - 64, j floordiv
// CHECK:       interval.span [64, (rows + 63) floordiv 64 * 64 - 64) residual j floordiv 64 == random[i floordiv
// CHECK:       interval.span [64, (rows + 63) floordiv 64 * 64 - 64) residual j floordiv 64 == random[i floordiv
// CHECK:       interval.span [64, (rows + 63) floordiv 64 * 64 - 64) residual j floordiv 64 == random[i floordiv
// CHECK:       interval.span [(rows + 63) floordiv 64 * 64 - 64, rows) from "last.0"
