// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/window_attention_gym.mlir | filecheck %s

// CHECK:   interval.table @window_attention_gym_rows of @window_attention_gym axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [max(0, i - 1024), min(cols, i + 1)) from "all.0"
//
// CHECK:   interval.table @window_attention_gym_cols of @window_attention_gym axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, min(rows, j + 1025)) from "all.0"
