// RUN: cm-opt --split-input-file --extract-intervals %s | filecheck %s

// One span per clause.

// Both ends, within the columns there are.
maskspec.spec @window(%w: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w <= j and j <= i
  }
}

// CHECK-LABEL: interval.table @window_rows of @window axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, i - w), min(cols, i + 1)) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An equality is two bounds; a multiple is divided, rounding inwards.
maskspec.spec @equality(%s: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j == i
    maskspec.clause 2 * j == i
  }
}

// CHECK-LABEL: interval.table @equality_rows of @equality axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, i), min(cols, i + 1)) from "all.0"
// CHECK-NEXT:      interval.span [max(0, (i + 1) floordiv 2), min(cols, i floordiv 2 + 1)) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Division by a negative coefficient turns the comparison round.
maskspec.spec @coefficients(%s: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause 3 * j <= i and i < 2 * j
    maskspec.clause s < i - 2 * j
  }
}

// CHECK-LABEL: interval.table @coefficients_rows of @coefficients axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, i floordiv 2 + 1), min(cols, i floordiv 3 + 1)) from "all.0"
// CHECK-NEXT:      interval.span [0, min(cols, (i - s + 1) floordiv 2)) from "all.1"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Floor division is undone, shifted and nested.
maskspec.spec @blocks(%s: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv 8 <= i floordiv 8
    maskspec.clause (j - s) floordiv 8 == (i - s) floordiv 8
    maskspec.clause i < (j floordiv 8) floordiv 2
  }
}

// CHECK-LABEL: interval.table @blocks_rows of @blocks axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, min(cols, i floordiv 8 * 8 + 8)) from "all.0"
// CHECK-NEXT:      interval.span [max(0, s + (i - s) floordiv 8 * 8), min(cols, (i - s) floordiv 8 * 8 + s + 8)) from "all.1"
// CHECK-NEXT:      interval.span [max(0, i * 16 + 16), cols) from "all.2"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A remainder is rewritten by the quotient that another literal pins.
maskspec.spec @grid() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv 8 == i floordiv 8 + 1 and j mod 8 <= i mod 8
  }
}

// CHECK-LABEL: interval.table @grid_rows of @grid axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, i floordiv 8 * 8 + 8), min(cols, i floordiv 8 * 8 + 16, i + 9)) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Two literals that pin the same quotient: the second is read under the first, they agree at i = 3 only.
maskspec.spec @two_pins() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv 8 == i and j floordiv 8 == 3 and j mod 8 <= 2
  }
}

// CHECK-LABEL: interval.table @two_pins_rows of @two_pins axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, i * 8), min(cols, i * 8 + 8, 27)) when i == 3 from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Literals without the column are the condition of a span; `true`, `false` and no clause at all.
maskspec.spec @conditions(%s: index, %t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause t[i] < s and j < t[i]
    maskspec.clause true
    maskspec.clause false
  }
  maskspec.region @none rows [rows, rows) {
  }
}

// CHECK-LABEL: interval.table @conditions_rows of @conditions axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, min(cols, t[i])) when t[i] < s from "all.0"
// CHECK-NEXT:      interval.span [0, cols) from "all.1"
// CHECK-NEXT:      interval.span [0, cols) when false from "all.2"
// CHECK-NEXT:    }
// CHECK-NEXT:    interval.region @none [rows, rows) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// What bounds no interval is left over, with the reason.
maskspec.spec @residual(%keep: !maskspec.table<col>, %f: !maskspec.table<free>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and 0 < keep[j]
    maskspec.clause (i - j) mod 3 == 0
    maskspec.clause f[j] + j <= i
    maskspec.clause j <= min(i, 2 * j - i)
  }
}

// CHECK-LABEL: interval.table @residual_rows of @residual axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, min(cols, i + 1)) residual 0 < keep[j] because "nothing says that table 'keep' is nondecreasing" from "all.0"
// CHECK-NEXT:      interval.span [0, cols) residual (i - j) mod 3 == 0 because "'(i - j) mod 3' repeats along j" from "all.1"
// CHECK-NEXT:      interval.span [0, cols) residual f[j] + j <= i because "nothing says that table 'f' is nondecreasing" from "all.2"
// CHECK-NEXT:      interval.span [0, cols) residual j <= min(i, 2 * j - i) because "it does not move one way along j" from "all.3"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A table that never falls is searched; a look-up past its end reads the last entry, and stays monotone.
maskspec.spec @monotone(%c: !maskspec.table<col>, %f: !maskspec.table<free>) {
  maskspec.nondecreasing c
  maskspec.nondecreasing f
  maskspec.region @all rows [0, rows) {
    maskspec.clause c[j] <= i
    maskspec.clause i < f[j floordiv 2] + j
    maskspec.clause c[j + 1] == i
  }
}

// CHECK-LABEL: interval.table @monotone_rows of @monotone axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, min(cols, first j in [0, cols) : i < c[j])) from "all.0"
// CHECK-NEXT:      interval.span [max(0, first j in [0, cols) : i < f[j floordiv 2] + j), cols) from "all.1"
// CHECK-NEXT:      interval.span [max(0, first j in [0, cols) : i <= c[j + 1]), min(cols, first j in [0, cols) : i < c[j + 1])) from "all.2"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// It does not help that a table is monotone elsewhere.
maskspec.spec @partly_monotone(%c: !maskspec.table<col>) {
  maskspec.nondecreasing c over [4, cols)
  maskspec.region @all rows [0, rows) {
    maskspec.clause c[j] <= i
  }
}

// CHECK-LABEL: interval.table @partly_monotone_rows of @partly_monotone axis rows {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [0, cols) residual c[j] <= i because "nothing says that table 'c' is nondecreasing" from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A remainder by a scalar, where the quotient is pinned; and one that nothing pins, which stays a residual.
// CHECK-LABEL: interval.table @scalar_divisor_rows
// CHECK:         interval.span [max(0, s * width), min(cols, s * width + width, s * width + 3)) from "all.0"
// CHECK-NEXT:    interval.span [0, min(cols, i + 1)) residual j mod width < 3 because "'j mod width' repeats along j" from "all.1"
maskspec.spec @scalar_divisor(%width: index, %s: index) {
  maskspec.assume 1 <= width
  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv width == s and j mod width < 3
    maskspec.clause j mod width < 3 and j <= i
  }
}
