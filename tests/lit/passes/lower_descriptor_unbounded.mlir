// RUN: not cm-opt --lower-intervals --transpose --lower-descriptor %s 2>&1 | filecheck %s
// RUN: not cm-opt -t triton %s 2>&1 | filecheck %s

// Bounded on neither axis: the error names what keeps each from being bounded, where it stands.

// CHECK:      {{^.*}}lower_descriptor_unbounded.mlir:16:1: error: mask @neither is bounded neither by row nor by column, so no number of intervals says it; state the fact that is missing, or change the rule
// CHECK-NEXT: maskspec.spec @neither(%t: !maskspec.table<row>, %c: !maskspec.table<col>) {
// CHECK-NEXT: {{^\^$}}
// CHECK-NEXT: {{^.*}}lower_descriptor_unbounded.mlir:17:3: note: rows: 'c[j] <= i' bounds no interval, since nothing says that table 'c' is nondecreasing
// CHECK-NEXT:   maskspec.region @all rows [0, rows) {
// CHECK-NEXT: {{^  \^$}}
// CHECK-NEXT: {{^.*}}lower_descriptor_unbounded.mlir:17:3: note: cols: 't[i] <= j' bounds no interval, since nothing says that table 't' is nondecreasing
// CHECK-NEXT:   maskspec.region @all rows [0, rows) {
// CHECK-NEXT: {{^  \^$}}

maskspec.spec @neither(%t: !maskspec.table<row>, %c: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause t[i] <= j and c[j] <= i
  }
}
