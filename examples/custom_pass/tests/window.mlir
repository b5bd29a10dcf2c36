// RUN: cm-opt --load %S/../cmir_extra/window.py --dnf-normalize --window=size=4 --lower-intervals %s | filecheck %s
// RUN: not cm-opt --load %S/../cmir_extra/window.py --window=size=4 %s 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not cm-opt --load %S/../cmir_extra/window.py --lower-intervals --window=size=4 %s 2>&1 | filecheck %s --check-prefix=LATE
// RUN: not cm-opt --load %S/../cmir_extra/window.py --dnf-normalize --window=size=0 %s 2>&1 | filecheck %s --check-prefix=EMPTY

// A causal prefix that everybody sees, and a causal rest: the window bounds both.
maskspec.spec @prefix_lm(%prefix: index) {
  maskspec.assume 0 <= prefix and prefix <= cols
  maskspec.region @all rows [0, rows) (%i, %j) {
    %in_prefix = arith.cmpi slt, %j, %prefix : index
    %causal = arith.cmpi sle, %j, %i : index
    %visible = arith.ori %in_prefix, %causal : i1
    maskspec.visible %visible
  }
}

// CHECK:      maskspec.region @all rows [0, rows) {
// CHECK-NEXT:   maskspec.clause j < prefix and i < j + 4
// CHECK-NEXT:   maskspec.clause j <= i and i < j + 4
// CHECK:      interval.table @prefix_lm_rows of @prefix_lm axis rows slots 1
// CHECK-NEXT:   interval.region @all [0, rows) {
// CHECK-NEXT:     interval.span [max(0, i - 3), max(prefix, min(cols, i + 1)))

// EARLY: window.mlir:9:3: error: the rule of Region @all has no clauses yet; run --dnf-normalize first
// LATE:  error: this table is of the mask without its window; run --window before it is made
// EMPTY: error: the size of a window is at least 1, got 0
