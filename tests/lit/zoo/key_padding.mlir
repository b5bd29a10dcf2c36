// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/key_padding.mlir | filecheck %s

// CHECK:   interval.table @key_padding_rows of @key_padding axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first_key, end_key) from "all.0"
//
// CHECK:   interval.table @key_padding_cols of @key_padding axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [0, rows) when first_key <= j and j < end_key from "all.0"
