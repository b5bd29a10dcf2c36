// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis --lower-descriptor --lower-attention %s | filecheck %s

// Three kernels. Each tests the table of the axis whose tile it owns.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// CHECK-LABEL: attention.kernel @causal_forward forward of @causal_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @causal_dq dq of @causal_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @causal_dkv dkv of @causal_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible axis cols slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule cols {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An unbounded column axis: all three test the table of rows; the tile lists exist both ways.
maskspec.spec @unbounded(%start: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: attention.kernel @unbounded_forward forward of @unbounded_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @unbounded_dq dq of @unbounded_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @unbounded_dkv dkv of @unbounded_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule cols {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An unbounded row axis.
maskspec.spec @late(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i < evict[j] and j <= i
  }
}

// CHECK-LABEL: attention.kernel @late_forward forward of @late_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis cols slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Nothing visible: one slot, always empty.
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}

// CHECK-LABEL: attention.kernel @nothing_forward forward of @nothing_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @nothing_dkv dkv of @nothing_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible axis cols slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule cols {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// More than four slots: only those that touch the tile are tested.
maskspec.spec @many(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause t[i] + 0 <= j and j <= t[i] + 1
    maskspec.clause t[i] + 4 <= j and j <= t[i] + 5
    maskspec.clause t[i] + 8 <= j and j <= t[i] + 9
    maskspec.clause t[i] + 12 <= j and j <= t[i] + 13
    maskspec.clause t[i] + 16 <= j and j <= t[i] + 17
  }
}

// CHECK-LABEL: attention.kernel @many_forward forward of @many_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 5 live
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @many_dkv dkv of @many_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible axis rows slots 5 live
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule cols {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Five slots by row but one by column: every kernel tests the table of columns.
maskspec.spec @combs(%s: index) {
  maskspec.assume 0 <= s
  maskspec.region @all rows [0, rows) {
    maskspec.clause j == s
    maskspec.clause j == s + 20
    maskspec.clause j == s + 40
    maskspec.clause j == s + 60
    maskspec.clause j == s + 80
  }
}

// CHECK-LABEL: attention.kernel @combs_forward forward of @combs_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis cols slots 1 unrolled
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Bounded on neither axis: all three read the packed bits, the tile lists exist both ways.
maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause (i - j) mod 4 == 0
  }
}

// CHECK-LABEL: attention.kernel @strided_forward forward of @strided_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible bits
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:       attention.kernel @strided_dq dq of @strided_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible bits
// CHECK:       attention.kernel @strided_dkv dkv of @strided_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible bits
