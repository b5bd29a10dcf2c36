// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/clear.mlir | filecheck %s

// CHECK:   interval.table @clear_rows of @clear axis rows slots 32 {
// CHECK:     interval.region @text [0, 512) {
// CHECK:       interval.span [0, cols) from "text.0"
// CHECK:     interval.region @image [512, rows) {
// CHECK:       interval.span [0, 512) from "image.0"
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 960, i - 965), min(i floordiv 64 * 64 - 896, i - 954))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 896, i - 903), min(i floordiv 64 * 64 - 832, i - 888))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 832, i - 841), min(i floordiv 64 * 64 - 768, i - 822))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 768, i - 778), min(i floordiv 64 * 64 - 704, i - 757))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 704, i - 715), min(i floordiv 64 * 64 - 640, i - 692))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 640, i - 652), min(i floordiv 64 * 64 - 576, i - 627))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 576, i - 589), min(i floordiv 64 * 64 - 512, i - 562))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 512, i - 525), min(i floordiv 64 * 64 - 448, i - 498))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 448, i - 462), min(i floordiv 64 * 64 - 384, i - 433))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 384, i - 398), min(i floordiv 64 * 64 - 320, i - 369))
// CHECK:       interval.span [max(512, i floordiv 64 * 64 - 320, i - 335), min(i floordiv 64 * 64 - 256, i - 304))
//
// CHECK:   interval.table @clear_cols of @clear axis cols slots 32 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [0, select(j < 512, rows, 512)) from "text.0", "image.0"
// CHECK:       interval.span [max(j floordiv 64 * 64 + 960, j + 955), min(rows, j floordiv 64 * 64 + 1024, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 896, j + 889), min(rows, j floordiv 64 * 64 + 960, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 832, j + 823), min(rows, j floordiv 64 * 64 + 896, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 768, j + 758), min(rows, j floordiv 64 * 64 + 832, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 704, j + 693), min(rows, j floordiv 64 * 64 + 768, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 640, j + 628), min(rows, j floordiv 64 * 64 + 704, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 576, j + 563), min(rows, j floordiv 64 * 64 + 640, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 512, j + 499), min(rows, j floordiv 64 * 64 + 576, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 448, j + 434), min(rows, j floordiv 64 * 64 + 512, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 384, j + 370), min(rows, j floordiv 64 * 64 + 448, j +
// CHECK:       interval.span [max(j floordiv 64 * 64 + 320, j + 305), min(rows, j floordiv 64 * 64 + 384, j +
