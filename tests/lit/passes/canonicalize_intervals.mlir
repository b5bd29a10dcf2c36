// RUN: cm-opt --split-input-file --canonicalize-intervals %s | filecheck %s

// Ends simplified under the facts.

// Clamps go where the facts place the end; a fact about other rows does not count (@history).
maskspec.spec @clamps(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
}
interval.table @clamps_rows of @clamps axis rows {
  interval.region @history [0, history) {
    interval.span [0, min(cols, i + 1)) from "history.0"
    interval.span [max(0, start[i]), i + 1) from "history.1"
  }
  interval.region @candidate [history, rows) {
    interval.span [max(0, start[i]), min(cols, i + 1)) from "candidate.0"
  }
}

// CHECK-LABEL: interval.table @clamps_rows of @clamps axis rows {
// CHECK-NEXT:    interval.region @history [0, history) {
// CHECK-NEXT:      interval.span [0, i + 1) from "history.0"
// CHECK-NEXT:      interval.span [max(0, start[i]), i + 1) from "history.1"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @candidate [history, rows) {
// CHECK-NEXT:      interval.span [start[i], i + 1) from "candidate.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Nothing is guessed: rows may be more than cols, and history negative.
maskspec.spec @unproved(%history: index) {
}
interval.table @unproved_rows of @unproved axis rows {
  interval.region @all [0, rows) {
    interval.span [0, min(cols, i + 1)) from "all.0"
    interval.span [max(0, history), cols) from "all.1"
  }
}

// CHECK-LABEL: interval.table @unproved_rows of @unproved axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, min(cols, i + 1)) from "all.0"
// CHECK-NEXT:      interval.span [max(0, history), cols) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Spans that are always empty go, and conditions that always hold.
maskspec.spec @empty(%s: index) {
  maskspec.assume s <= 4
}
interval.table @empty_rows of @empty axis rows {
  interval.region @all [4, rows) {
    interval.span [i, s) from "all.0"
    interval.span [0, i) when i < s from "all.1"
    interval.span [0, cols) when false from "all.2"
    interval.span [i, i + 1) when s <= i from "all.3"
  }
  interval.region @none [0, 0) {
    interval.span [0, i + 1) from "none.0"
  }
}

// CHECK-LABEL: interval.table @empty_rows of @empty axis rows {
// CHECK-NEXT:    interval.region @all [4, rows) {
// CHECK-NEXT:      interval.span [i, i + 1) from "all.3"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @none [0, 0) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Inside a span its condition holds, so choices by it are made.
maskspec.spec @conditions(%s: index) {
}
interval.table @conditions_rows of @conditions axis rows {
  interval.region @all [0, s) {
    interval.span [select(i < s, 0, 3), select(i < 9, max(i, 9), 4)) when i < 5 from "all.0"
  }
}

// CHECK-LABEL: interval.table @conditions_rows of @conditions axis rows {
// CHECK-NEXT:    interval.region @all [0, s) {
// CHECK-NEXT:      interval.span [0, 9) when i < 5 from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A fact holds on its rows only: t[i - 1] may be row 7, and t[i + 1] at the last row reads that row.
maskspec.spec @other_rows(%t: !maskspec.table<row>) {
  maskspec.assume for i in [8, rows) : 0 <= t[i]
}
interval.table @other_rows_rows of @other_rows axis rows {
  interval.region @before [0, 8) {
    interval.span [max(0, t[i]), cols) from "before.0"
  }
  interval.region @after [8, rows) {
    interval.span [max(0, t[i]), cols) from "after.0"
    interval.span [max(0, t[i - 1]), cols) from "after.1"
    interval.span [max(0, t[i + 1]), cols) from "after.2"
  }
}

// CHECK-LABEL: interval.table @other_rows_rows of @other_rows axis rows {
// CHECK-NEXT:    interval.region @before [0, 8) {
// CHECK-NEXT:      interval.span [max(0, t[i]), cols) from "before.0"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @after [8, rows) {
// CHECK-NEXT:      interval.span [t[i], cols) from "after.0"
// CHECK-NEXT:      interval.span [max(0, t[i - 1]), cols) from "after.1"
// CHECK-NEXT:      interval.span [t[i + 1], cols) from "after.2"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A residual stays as it is.
maskspec.spec @residual(%keep: !maskspec.table<col>) {
  maskspec.assume rows == cols
}
interval.table @residual_rows of @residual axis rows {
  interval.region @all [0, rows) {
    interval.span [max(0, i), cols) residual 0 < keep[j] because "keep" from "all.0"
  }
}

// CHECK-LABEL: interval.table @residual_rows of @residual axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [i, cols) residual 0 < keep[j] because "keep" from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }
