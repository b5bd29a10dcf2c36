// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/random_eviction.mlir | filecheck %s

// CHECK:   interval.table @random_eviction_rows of @random_eviction axis rows {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [0, min(cols, i + 1)) residual i < evict[j] because "nothing says that table 'evict'
//
// CHECK:   interval.table @random_eviction_cols of @random_eviction axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, evict[j])) from "all.0"
