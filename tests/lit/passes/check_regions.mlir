// RUN: cm-opt --split-input-file --check-regions %s | filecheck %s

// Regions that cannot overlap pass unchanged.

// CHECK-LABEL: maskspec.spec @touching(%history: index) {
// CHECK-NEXT:    maskspec.region @history rows [0, history) {
maskspec.spec @touching(%history: index) {
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) {
    maskspec.clause j <= i
  }
}

// -----

// Nothing bounds `history`, and nothing needs to: an end of `rows` or 0 reaches no further than the rows there are.
maskspec.spec @beyond(%history: index) {
  maskspec.region @early rows [history, 0) {
    maskspec.clause j <= i
  }
  maskspec.region @late rows [rows, history) {
    maskspec.clause j <= i
  }
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// -----

// Disjoint by a fact, with a static in a guard.
maskspec.spec @by_fact(%a: index, %b: index, %gap: index = 8) {
  maskspec.assume a + gap <= b
  maskspec.region @first rows [0, a + 8) {
    maskspec.clause j <= i
  }
  maskspec.region @second rows [b, rows) {
    maskspec.clause j <= i
  }
}
