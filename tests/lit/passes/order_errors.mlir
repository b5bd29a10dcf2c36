// RUN: not cm-opt --extract-intervals %s 2>&1 | filecheck %s --check-prefix=EXTRACT
// RUN: not cm-opt --transpose %s 2>&1 | filecheck %s --check-prefix=EXTRACT
// RUN: not cm-opt --canonicalize-intervals %s 2>&1 | filecheck %s --check-prefix=TABLE
// RUN: not cm-opt --dnf-normalize --merge-slots %s 2>&1 | filecheck %s --check-prefix=TABLE
// RUN: not cm-opt --lower-intervals --lower-intervals %s 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cm-opt --dnf-normalize --transpose --transpose %s 2>&1 | filecheck %s --check-prefix=COLS
// RUN: cm-opt --lower-intervals --dnf-normalize --canonicalize-intervals --merge-slots --transpose %s | filecheck %s

// Passes that come too early or twice; those that change nothing the second time may be repeated.

// EXTRACT:      {{^.*}}order_errors.mlir:23:3: error: Region @all is not in normal form; run --dnf-normalize first
// EXTRACT-NEXT:   maskspec.region @all rows [0, rows) (%i, %j) {
// EXTRACT-NEXT: {{^  \^$}}
// TABLE:        {{^.*}}order_errors.mlir:22:1: error: @causal has no interval table yet; run --extract-intervals first
// TWICE:        {{^.*}}order_errors.mlir:22:1: error: @causal has a table of rows already
// TWICE:        {{^.*}}order_errors.mlir:22:1: note: it is here
// COLS:         {{^.*}}order_errors.mlir:22:1: error: @causal has a table of cols already
// CHECK:      interval.table @causal_rows of @causal axis rows slots 1 {
// CHECK-NEXT:   interval.region @all [0, rows) {
// CHECK-NEXT:     interval.span [0, min(cols, i + 1)) from "all.0"
// CHECK:      interval.table @causal_cols of @causal axis cols slots 1 {
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}
