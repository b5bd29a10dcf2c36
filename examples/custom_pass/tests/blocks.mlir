// RUN: cm-opt --load %S/../cmir_extra/blocks.py %s | filecheck %s
// RUN: cm-opt --load %S/../cmir_extra/blocks.py --lower-intervals %s | filecheck %s --check-prefix=TABLE
// RUN: cm-opt --load %S/../cmir_extra/blocks.py --canonicalize %s | filecheck %s --check-prefix=CANON
// RUN: not cm-opt %s 2>&1 | filecheck %s --check-prefix=ALONE

// Causal within blocks of 64. That a row is in its own block is no test.
maskspec.spec @blocks() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %same = extra.same_block %i, %j of 64
    %own = extra.same_block %i, %i of 64
    %causal = arith.cmpi sle, %j, %i : index
    %both = arith.andi %same, %own : i1
    %visible = arith.andi %both, %causal : i1
    maskspec.visible %visible
  }
}

// CHECK:      %{{.*}} = extra.same_block %{{.*}}, %{{.*}} of 64
// CHECK-NEXT: %{{.*}} = extra.same_block

// TABLE:      maskspec.clause i floordiv 64 == j floordiv 64 and j <= i
// TABLE:      interval.span [i floordiv 64 * 64, min(cols, i + 1)) from "all.0"

// CANON:      maskspec.region @all
// CANON-NEXT:   extra.same_block
// CANON-NOT:    extra.same_block
// CANON:        maskspec.visible

// ALONE: error: unknown dialect 'extra' of operation 'extra.same_block'
