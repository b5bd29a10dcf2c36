// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/natten_2d.mlir | filecheck %s

// CHECK:   interval.table @natten_2d_rows of @natten_2d axis rows slots 7 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) - 195, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) - 131, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) - 67, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) - 3, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) + 61, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) + 125, min(max(i mod
// CHECK:       interval.span [min(max(i floordiv 64, 3), 60) * 64 + min(max(i mod 64, 3), 60) + 189, min(max(i mod
//
// CHECK:   interval.table @natten_2d_cols of @natten_2d axis cols slots 10 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, max(0, select(j floordiv 64 <= 6, 0, max(0, j floordiv
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, max(0, j floordiv 64 -
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, max(0, j floordiv 64 -
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, max(0, j floordiv 64 -
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, max(0, j floordiv 64 -
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, max(0, j floordiv 64 -
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, j floordiv 64 - 3) * 64 +
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, j floordiv 64 - 3) * 64 +
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, j floordiv 64 - 3) * 64 +
// CHECK:       interval.span [max(select(j mod 64 <= 6, 0, select(j floordiv 64 <= 6, 0, j floordiv 64 - 3) * 64 +
