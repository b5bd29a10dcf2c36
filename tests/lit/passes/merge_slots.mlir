// RUN: cm-opt --split-input-file --merge-slots %s | filecheck %s

// Spans that are one interval wherever they meet share a slot.

// One ends where the other begins.
maskspec.spec @touching(%s: index) {
  maskspec.assume 0 <= s and s <= cols
}
interval.table @touching_rows of @touching axis rows {
  interval.region @all [0, rows) {
    interval.span [0, s) from "all.0"
    interval.span [s, cols) from "all.1"
  }
}

// CHECK-LABEL: interval.table @touching_rows of @touching axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, cols) from "all.0", "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Nothing says that the two meet at every row: they stay apart, and are united row by row.
maskspec.spec @missing_fact(%s: index, %t: !maskspec.table<row>) {
}
interval.table @missing_fact_rows of @missing_fact axis rows {
  interval.region @all [0, rows) {
    interval.span [0, min(s, cols)) from "all.0"
    interval.span [max(0, t[i]), min(cols, i + 1)) from "all.1"
  }
}

// CHECK-LABEL: interval.table @missing_fact_rows of @missing_fact axis rows slots 2 {
// CHECK-NEXT:    interval.region @all [0, rows) fuse [(0, 1)] {
// CHECK-NEXT:      interval.span [0, min(s, cols)) from "all.0"
// CHECK-NEXT:      interval.span [max(0, t[i]), min(cols, i + 1)) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// The same with the facts that make them meet.
maskspec.spec @with_the_fact(%s: index, %t: !maskspec.table<row>) {
  maskspec.assume 0 <= t[i] and t[i] <= s and t[i] <= i and i < cols and s <= i
}
interval.table @with_the_fact_rows of @with_the_fact axis rows {
  interval.region @all [0, rows) {
    interval.span [0, s) from "all.0"
    interval.span [t[i], i + 1) from "all.1"
  }
}

// CHECK-LABEL: interval.table @with_the_fact_rows of @with_the_fact axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, i + 1) from "all.0", "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Never overlapping, with room between: two slots, nothing to unite.
maskspec.spec @apart(%s: index) {
  maskspec.assume rows == cols and 0 <= s and s + 4 <= rows
}
interval.table @apart_rows of @apart axis rows {
  interval.region @all [s + 4, rows) {
    interval.span [0, s) from "all.0"
    interval.span [i, i + 1) from "all.1"
  }
}

// CHECK-LABEL: interval.table @apart_rows of @apart axis rows slots 2 {
// CHECK-NEXT:    interval.region @all [s + 4, rows) {
// CHECK-NEXT:      interval.span [0, s) from "all.0"
// CHECK-NEXT:      interval.span [i, i + 1) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Never both there: one slot, chosen by the condition.
maskspec.spec @exclusive(%s: index) {
  maskspec.assume rows == cols and 0 <= s and s <= rows
}
interval.table @exclusive_rows of @exclusive axis rows {
  interval.region @all [0, rows) {
    interval.span [0, 2) when i < s from "all.0"
    interval.span [i, i + 1) when s <= i from "all.1"
  }
}

// CHECK-LABEL: interval.table @exclusive_rows of @exclusive axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [select(i < s, 0, i), select(i < s, 2, i + 1)) from "all.0", "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Inside, and then touching.
maskspec.spec @inside(%s: index) {
  maskspec.assume rows == cols
}
interval.table @inside_rows of @inside axis rows {
  interval.region @all [4, rows) {
    interval.span [0, i) from "all.0"
    interval.span [2, 3) from "all.1"
    interval.span [i, i + 1) from "all.2"
  }
}

// CHECK-LABEL: interval.table @inside_rows of @inside axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [4, rows) {
// CHECK-NEXT:      interval.span [0, i + 1) from "all.0", "all.1", "all.2"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Slot 1 and 2 never overlap, but either may be united with slot 0 and then reach the other.
maskspec.spec @star(%a: index, %b: index, %c: index) {
  maskspec.assume 0 <= a and a + 5 <= b and b + 5 <= cols and 0 <= c and c + 3 <= cols
}
interval.table @star_rows of @star axis rows {
  interval.region @all [0, rows) {
    interval.span [c, c + 3) from "all.0"
    interval.span [a, a + 2) from "all.1"
    interval.span [b, b + 2) from "all.2"
  }
}

// CHECK-LABEL: interval.table @star_rows of @star axis rows slots 3 {
// CHECK-NEXT:    interval.region @all [0, rows) fuse [(0, 1), (0, 2), (1, 2)] {
// CHECK-NEXT:      interval.span [c, c + 3) from "all.0"
// CHECK-NEXT:      interval.span [a, a + 2) from "all.1"
// CHECK-NEXT:      interval.span [b, b + 2) from "all.2"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// The slot count is the largest of a region.
maskspec.spec @most(%s: index) {
  maskspec.assume rows == cols and 8 <= s and s <= rows
}
interval.table @most_rows of @most axis rows {
  interval.region @one [0, s) {
    interval.span [i, i + 1) from "one.0"
  }
  interval.region @two [s, rows) {
    interval.span [0, 2) from "two.0"
    interval.span [4, 6) from "two.1"
  }
  interval.region @none [rows, rows) {
  }
}

// CHECK-LABEL: interval.table @most_rows of @most axis rows slots 2 {
// CHECK-NEXT:    interval.region @one [0, s) {
// CHECK-NEXT:      interval.span [i, i + 1) from "one.0"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @two [s, rows) {
// CHECK-NEXT:      interval.span [0, 2) from "two.0"
// CHECK-NEXT:      interval.span [4, 6) from "two.1"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @none [rows, rows) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An unbounded table has no slots.
maskspec.spec @residual(%keep: !maskspec.table<col>) {
}
interval.table @residual_rows of @residual axis rows {
  interval.region @all [0, rows) {
    interval.span [0, cols) residual 0 < keep[j] because "nothing says that table 'keep' is nondecreasing" from "all.0"
    interval.span [0, cols) from "all.1"
  }
}

// CHECK-LABEL: interval.table @residual_rows of @residual axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, cols) residual 0 < keep[j] because "nothing says that table 'keep' is nondecreasing" from "all.0"
// CHECK-NEXT:      interval.span [0, cols) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }
