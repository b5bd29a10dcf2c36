// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/sliding_tile_2d.mlir | filecheck %s

// CHECK:   interval.table @sliding_tile_2d_rows of @sliding_tile_2d axis rows slots 3 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [min(max(i floordiv 512, 1), 6) * 512 + min(max(i floordiv 64 mod 8, 1), 6) * 64 -
// CHECK:       interval.span [min(max(i floordiv 512, 1), 6) * 512 + min(max(i floordiv 64 mod 8, 1), 6) * 64 -
// CHECK:       interval.span [min(max(i floordiv 512, 1), 6) * 512 + min(max(i floordiv 64 mod 8, 1), 6) * 64 +
//
// CHECK:   interval.table @sliding_tile_2d_cols of @sliding_tile_2d axis cols slots 4 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(select(j floordiv 64 mod 8 <= 2, 0, max(0, select(j floordiv 512 <= 2, 0, max(0,
// CHECK:       interval.span [max(select(j floordiv 64 mod 8 <= 2, 0, select(j floordiv 512 <= 2, 0, max(0, j
// CHECK:       interval.span [max(select(j floordiv 64 mod 8 <= 2, 0, select(j floordiv 512 <= 2, 0, j floordiv
// CHECK:       interval.span [max(select(j floordiv 64 mod 8 <= 2, 0, select(j floordiv 512 <= 2, 0, j floordiv
