// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/causal_document.mlir | filecheck %s

// CHECK:   interval.table @causal_document_rows of @causal_document axis rows slots 1 {
// CHECK:     interval.region @all [0, rows) {
// CHECK:       interval.span [first j in [0, cols) : document[i] <= document[j], min(first j in [0, cols) :
//
// CHECK:   interval.table @causal_document_cols of @causal_document axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [j, first i in [0, rows) : document[j] < document[i]) from "all.0"
