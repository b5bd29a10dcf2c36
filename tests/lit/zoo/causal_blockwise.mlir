// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/causal_blockwise.mlir | filecheck %s

// CHECK:   interval.table @causal_blockwise_rows of @causal_blockwise axis rows slots 1 {
// CHECK:     interval.region @demonstrations [0, last) {
// CHECK:       interval.span [start[i], i + 1) from "demonstrations.0"
// CHECK:     interval.region @query [last, rows) {
// CHECK:       interval.span [0, i + 1) from "query.0"
//
// CHECK:   interval.table @causal_blockwise_cols of @causal_blockwise axis cols slots 2 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, first i in [0, last) : j < start[i]) from "demonstrations.0"
// CHECK:       interval.span [max(last, j), rows) from "query.0"
