// RUN: cm-opt --lower-intervals %S/../../../cmir/zoo/hstu.mlir | filecheck %s
// RUN: cm-opt --check-regions --layout --dnf-normalize --extract-intervals --canonicalize-intervals --merge-slots %S/../../../cmir/zoo/hstu.mlir | filecheck %s
// RUN: not cm-opt --lower-intervals=max-clauses=1 %S/../../../cmir/zoo/hstu.mlir 2>&1 | filecheck %s --check-prefix=CAP

// The pipeline is its six passes.

// CHECK:      interval.table @hstu_rows of @hstu axis rows slots 2 {
// CHECK-NEXT:   interval.region @history [0, history) {
// CHECK-NEXT:     interval.span [0, i + 1) from "history.0"
// CHECK-NEXT:   }
// CHECK-NEXT:   interval.region @candidate [history, rows) {
// CHECK-NEXT:     interval.span [0, history) from "candidate.0"
// CHECK-NEXT:     interval.span [start[i], i + 1) from "candidate.1"
// CHECK-NEXT:   }

// CAP: error: the rule of Region @candidate has more than 1 clauses in disjunctive normal form
