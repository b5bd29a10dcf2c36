// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/shared_prompt.mlir | filecheck %s

// CHECK:   interval.table @shared_prompt_rows of @shared_prompt axis rows slots 2 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1)] {
// CHECK:       interval.span [pack[i], min(i + 1, prompt[i])) from "all.0"
// CHECK:       interval.span [segment[i], i + 1) from "all.1"
//
// CHECK:   interval.table @shared_prompt_cols of @shared_prompt axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, select(max(j, first i in [0, rows) : j < prompt[i]) < (first i in [0, rows) : j <
