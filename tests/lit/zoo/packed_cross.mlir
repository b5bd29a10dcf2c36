// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/packed_cross.mlir | filecheck %s

// CHECK:   interval.table @packed_cross_rows of @packed_cross axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first j in [0, cols) : sample_of_row[i] <= sample_of_col[j], first j in [0, cols) :
//
// CHECK:   interval.table @packed_cross_cols of @packed_cross axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [first i in [0, rows) : sample_of_col[j] <= sample_of_row[i], first i in [0, rows) :
