// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/vertical_slash.mlir | filecheck %s

// CHECK:   interval.table @vertical_slash_rows of @vertical_slash axis rows slots 8 {
// CHECK:     interval.region @all [0, rows) fuse [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (1, 2),
// CHECK:       interval.span [max(0, vertical[0]), min(cols, i + 1, vertical[0] + 1)) from "all.0"
// CHECK:       interval.span [max(0, vertical[1]), min(cols, i + 1, vertical[1] + 1)) from "all.1"
// CHECK:       interval.span [max(0, vertical[2]), min(cols, i + 1, vertical[2] + 1)) from "all.2"
// CHECK:       interval.span [max(0, vertical[3]), min(cols, i + 1, vertical[3] + 1)) from "all.3"
// CHECK:       interval.span [max(0, i - slash[0]), min(cols, i + 1, i - slash[0] + 1)) from "all.4"
// CHECK:       interval.span [max(0, i - slash[1]), min(cols, i + 1, i - slash[1] + 1)) from "all.5"
// CHECK:       interval.span [max(0, i - slash[2]), min(cols, i + 1, i - slash[2] + 1)) from "all.6"
// CHECK:       interval.span [max(0, i - slash[3]), min(cols, i + 1, i - slash[3] + 1)) from "all.7"
//
// CHECK:   interval.table @vertical_slash_cols of @vertical_slash axis cols slots 4 {
// CHECK:     interval.region @all [0, cols) fuse [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
// CHECK:       interval.span [select(j == vertical[0] or j == vertical[1] or j == vertical[2] or j == vertical[3],
// CHECK:       interval.span [max(j, slash[1] + j), min(rows, slash[1] + j + 1)) from "all.5"
// CHECK:       interval.span [max(j, slash[2] + j), min(rows, slash[2] + j + 1)) from "all.6"
// CHECK:       interval.span [max(j, slash[3] + j), min(rows, slash[3] + j + 1)) from "all.7"
