// RUN: cm-opt --load %S/../cmir_extra/causal.py --lower-intervals --require-causal --split-input-file --verify-diagnostics %s
// RUN: not cm-opt --load %S/../cmir_extra/causal.py --require-causal %S/window.mlir 2>&1 | filecheck %s --check-prefix=EARLY

// EARLY: error: there is no table of rows yet; run --lower-intervals first

// A document begins where its rows say, and nobody sees past itself: proved from start[i] <= i alone.
maskspec.spec @document(%start: !maskspec.table<row>) {
  maskspec.assume start[i] <= i
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// -----

// A prefix that everybody sees is seen by rows inside it, too.
maskspec.spec @prefix_lm(%prefix: index) {
  maskspec.assume 0 <= prefix and prefix <= cols
  maskspec.region @all rows [0, rows) {
    // expected-error@below {{rows of Region @all see columns after themselves}}
    maskspec.clause j < prefix
    maskspec.clause j <= i
  }
}

// -----

// Under a fact that keeps the prefix before the rows of the Region, the same clauses are causal.
maskspec.spec @prefix_rest(%prefix: index) {
  maskspec.assume 0 <= prefix and prefix <= cols
  maskspec.region @rest rows [prefix, rows) {
    maskspec.clause j < prefix
    maskspec.clause j <= i
  }
}
