// RUN: cm-opt --split-input-file --lower-intervals --transpose %s | filecheck %s
// RUN: cm-opt --split-input-file -t triton %s | filecheck %s --check-prefix=SOURCE

// A scalar that is at least 1 divides like a number: chunks whose size each sequence has of its own, both ways.

// CHECK-LABEL: interval.table @chunked_rows of @chunked axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, pad + (i - pad) floordiv chunk * chunk), min(cols, i + 1)) from "all.0"
// CHECK:       interval.table @chunked_cols of @chunked axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, min(rows, (j - pad) floordiv chunk * chunk + chunk + pad)) from "all.0"
// What is divided by is at least 1 in the kernel, whatever is given.
// SOURCE:        floor_div({{at_[0-9]+}}, tl.maximum(value_chunk, 1))
maskspec.spec @chunked(%chunk: index, %pad: index) {
  maskspec.assume 1 <= chunk
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = arith.subi %i, %pad : index
    %b = arith.subi %j, %pad : index
    %x = arith.floordivsi %a, %chunk : index
    %y = arith.floordivsi %b, %chunk : index
    %p = arith.cmpi eq, %x, %y : index
    %q = arith.cmpi sle, %j, %i : index
    %v = arith.andi %p, %q : i1
    maskspec.visible %v
  }
}
