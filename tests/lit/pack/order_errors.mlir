// RUN: not cm-opt --pack %S/inputs/causal.mlir 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not cm-opt --lower-intervals --pack %S/inputs/causal.mlir 2>&1 | filecheck %s --check-prefix=COLS
// RUN: not cm-opt --lower-intervals --transpose --pack --pack %S/inputs/causal.mlir 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cm-opt --lower-intervals --transpose --choose-axis --lower-descriptor --pack %S/inputs/causal.mlir 2>&1 | filecheck %s --check-prefix=LATE
// RUN: not cm-opt --lower-intervals --transpose --pack --transpose %S/inputs/causal.mlir 2>&1 | filecheck %s --check-prefix=AGAIN

// RUN: not cm-opt --lower-descriptor %S/inputs/symmetric_tests.mlir 2>&1 | filecheck %s --check-prefix=SYMMETRIC
// RUN: cm-opt --lower-intervals --transpose --choose-axis --pack %S/inputs/near.mlir | filecheck %s --check-prefix=DROPPED
// RUN: cm-opt --lower-intervals --transpose --choose-axis %S/inputs/near.mlir | cm-opt - | filecheck %s --check-prefix=KEPT

// A pack of a symmetric mask is none: rows and columns may be cut differently.
// KEPT: attention.tests of @near forward rows, dq rows, dkv cols symmetric
// DROPPED: attention.tests of @near forward rows, dq rows, dkv cols{{$}}
// SYMMETRIC: error: @near is packed, and rows and columns of a pack may be cut differently: its tests are not symmetric

// ROWS: causal.mlir:1:1: error: @causal has no table of rows yet; run --lower-intervals first
// COLS: causal.mlir:1:1: error: @causal has no table of cols yet; run --transpose first
// TWICE: causal.mlir:1:1: error: @causal is packed already
// LATE: causal.mlir:1:1: error: @causal has a preprocess kernel already
// LATE: note: it is here
// AGAIN: error: @causal has a table of cols already
