// RUN: cm-opt --lower-intervals --transpose --pack %S/inputs/causal.mlir > %t && cm-opt --dnf-normalize --canonicalize-intervals --merge-slots %t | filecheck %s
// RUN: cm-opt --choose-axis --lower-descriptor --lower-attention %t | filecheck %s --check-prefix=KERNELS

// What is printed is read back, and passes over tables leave packed ones as they are.

// CHECK:      interval.table @causal_rows of @causal axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "all.0"

// One search a row.
// KERNELS:      descriptor.slots rows (%i) {
// KERNELS:        %[[S:.*]] = descriptor.first %s in
// KERNELS-NOT:    descriptor.first
// KERNELS:        descriptor.endpoints
