// RUN: cm-opt --split-input-file --transpose %s | filecheck %s

// The rows that see a column.

// Affine.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// CHECK-LABEL: interval.table @causal_cols of @causal axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, rows) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Both ends.
maskspec.spec @window(%w: index) {
  maskspec.assume 0 <= w
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w <= j and j <= i
  }
}

// CHECK-LABEL: interval.table @window_cols of @window axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, min(rows, j + w + 1)) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A monotone table is searched.
maskspec.spec @documents(%start: !maskspec.table<row>) {
  maskspec.nondecreasing start
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: interval.table @documents_cols of @documents axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, first i in [0, rows) : j < start[i]) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Without the fact the axis is unbounded, and the reason names the table.
maskspec.spec @anything(%start: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: interval.table @anything_cols of @anything axis cols {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, rows) residual start[i] <= j because "nothing says that table 'start' is nondecreasing" from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// The fact counts on its own rows only.
maskspec.spec @another_range(%s: index, %start: !maskspec.table<row>) {
  maskspec.nondecreasing start over [0, s)
  maskspec.region @first rows [0, s) {
    maskspec.clause start[i] <= j
  }
  maskspec.region @second rows [s, rows) {
    maskspec.clause start[i] <= j
  }
}

// CHECK-LABEL: interval.table @another_range_cols of @another_range axis cols {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [0, first i in [0, min(rows, s)) : j < start[i]) from "first.0"
// CHECK-NEXT:      interval.span [max(0, s), rows) residual start[i] <= j because "nothing says that table 'start' is nondecreasing" from "second.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A table per column is an end by column, monotone or not.
maskspec.spec @evict(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}

// CHECK-LABEL: interval.table @evict_cols of @evict axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j, min(rows, evict[j])) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A guard may reach past the rows there are, a span may not.
maskspec.spec @guards(%s: index) {
  maskspec.region @beyond rows [s - 5, rows + 7) {
    maskspec.clause j <= 3
  }
}

// CHECK-LABEL: interval.table @guards_cols of @guards axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [max(0, s - 5), rows) when j <= 3 from "beyond.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A residual in one clause leaves the other spans simplified and unmerged.
maskspec.spec @blocks() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv 8 == i floordiv 8
    maskspec.clause (i - j) mod 3 == 0
  }
}

// CHECK-LABEL: interval.table @blocks_cols of @blocks axis cols {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [j floordiv 8 * 8, min(rows, j floordiv 8 * 8 + 8)) from "all.0"
// CHECK-NEXT:      interval.span [0, rows) residual (i - j) mod 3 == 0 because "'(i - j) mod 3' repeats along i" from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A mask that shows nothing has no slots.
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}

// CHECK-LABEL: interval.table @nothing_cols of @nothing axis cols slots 0 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A table of lists that rises: every integer of an entry does, so a search finds the rows that see a column.
// CHECK-LABEL: interval.table @rising_cols of @rising axis cols slots 1 {
// CHECK-NEXT:    interval.region @all [0, cols) {
// CHECK-NEXT:      interval.span [0, first i in [0, rows) : j < lo[i, 1]) from "all.0"
maskspec.spec @rising(%lo: !maskspec.table<row x 2>) {
  maskspec.nondecreasing lo
  maskspec.region @all rows [0, rows) {
    maskspec.clause lo[i, 1] <= j
  }
}
