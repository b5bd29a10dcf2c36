// RUN: cm-opt %s | filecheck %s
// RUN: cm-opt %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

maskspec.spec @m(%s: index, %t: !maskspec.table<row>) {}

// CHECK-LABEL: interval.table @m_rows of @m axis rows slots 3 {
// GENERIC:     "interval.table"() <{sym_name = "m_rows", spec = "m", axis = "rows", slots = #builtin.int<3>}> ({
interval.table @m_rows of @m axis rows slots 3 {
  // CHECK-NEXT: interval.region @a [0, s) {
  // GENERIC:    "interval.region"() <{sym_name = "a", lo = #maskspec.expr<[0]>, hi = #maskspec.expr<[s]>}> ({
  interval.region @a [0, s) {
    // CHECK-NEXT: interval.span [0, i + 1) from "a.0"
    // GENERIC:    "interval.span"() <{lo = #maskspec.expr<[0]>, hi = #maskspec.expr<[i + 1]>, origin = ["a.0"]}> : () -> ()
    interval.span [0, i + 1) from "a.0"
  }
  // CHECK: interval.region @b [s, rows) fuse [(0, 1), (0, 2), (1, 2)] {
  interval.region @b [s, rows) fuse [(0, 1), (0, 2), (1, 2)] {
    // CHECK-NEXT: interval.span [t[i], s) when 3 <= i and i < s from "b.0", "b.1"
    interval.span [t[i], s) when 3 <= i and i < s from "b.0", "b.1"
    // CHECK-NEXT: interval.span [0, t[i]) from "b.2"
    interval.span [0, t[i]) from "b.2"
    // CHECK-NEXT: interval.span [select(i < s, 0, 4), min(cols, i)) from "b.3"
    interval.span [select(i < s, 0, 4), min(cols, i)) from "b.3"
  }
  // CHECK: interval.region @none [0, 0) {
  // CHECK-NEXT: }
  interval.region @none [0, 0) {
  }
}

// CHECK-LABEL: interval.table @m_cols of @m axis cols {
interval.table @m_cols of @m axis cols {
  interval.region @all [0, cols) {
    // CHECK: interval.span [first i in [s, rows) : j < t[i], rows) from "b.0"
    interval.span [first i in [s, rows) : j < t[i], rows) from "b.0"
    // CHECK-NEXT: interval.span [0, rows) when j < s residual (j - i) mod 3 == 0 because "'(j - i) mod 3' repeats along i" from "b.1"
    interval.span [0, rows) when j < s residual (j - i) mod 3 == 0 because "'(j - i) mod 3' repeats along i" from "b.1"
  }
}
