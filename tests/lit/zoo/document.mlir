// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/document.mlir | filecheck %s

// CHECK:   interval.table @document_rows of @document axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first j in [0, cols) : document[i] <= document[j], first j in [0, cols) :
//
// CHECK:   interval.table @document_cols of @document axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [first i in [0, rows) : document[j] <= document[i], first i in [0, rows) :
