// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/kv_cache.mlir | filecheck %s

// CHECK:   interval.table @kv_cache_rows of @kv_cache axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first_key, i + length - rows + 1) from "all.0"
//
// CHECK:   interval.table @kv_cache_cols of @kv_cache axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [max(0, rows + j - length), rows) when first_key <= j from "all.0"
