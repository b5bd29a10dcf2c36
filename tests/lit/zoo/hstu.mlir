// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/hstu.mlir | filecheck %s

// CHECK:   interval.table @hstu_rows of @hstu axis rows slots 2 {
// CHECK:     interval.region @history [0, history) {
// CHECK:       interval.span [0, i + 1) from "history.0"
// CHECK:     interval.region @candidate [history, rows) {
// CHECK:       interval.span [0, history) from "candidate.0"
// CHECK:       interval.span [start[i], i + 1) from "candidate.1"
//
// CHECK:   interval.table @hstu_cols of @hstu axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, select(j < history, rows, first i in [history, rows) : j < start[i])) from
