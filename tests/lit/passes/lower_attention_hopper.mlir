// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis --lower-descriptor --lower-attention=target=hopper %s | filecheck %s
// RUN: not cm-opt --lower-attention=target=ampere %s 2>&1 | filecheck %s --check-prefix=TARGET

// TARGET: error: --lower-attention: target is any or hopper, got 'ampere'

// Two kernels. Each makes words of the table of the axis that it owns, also where the other has fewer slots.
maskspec.spec @two(%from: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= from[i]
    maskspec.clause from[i] + 5 <= j and j <= i
  }
}

// CHECK-LABEL: attention.kernel @two_forward forward of @two_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule rows {
// CHECK-NEXT:      attention.visible axis rows slots 2 words
// CHECK-NEXT:    }
// CHECK-NEXT:    attention.tiles full schedule rows {
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// Columns are unbounded: the table of rows serves both.
// CHECK:       attention.kernel @two_backward backward of @two_preprocess {
// CHECK-NEXT:    attention.tiles partial schedule cols {
// CHECK-NEXT:      attention.visible axis rows slots 2 words
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
// CHECK:           attention.visible axis cols slots 1 words
// CHECK-LABEL: attention.kernel @late_backward backward of @late_preprocess {
// CHECK:           attention.visible axis cols slots 1 words

// -----

// More than four slots: words of those that touch the tile.
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
// CHECK:           attention.visible axis rows slots 5 live words
// CHECK-LABEL: attention.kernel @many_backward backward of @many_preprocess {
// CHECK:           attention.visible axis rows slots 5 live words

// -----

// Nothing but bits says it.
maskspec.spec @every_third() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause (i - j) mod 3 == 0
  }
}

// CHECK-LABEL: attention.kernel @every_third_forward forward of @every_third_preprocess {
// CHECK:           attention.visible bits
// CHECK-LABEL: attention.kernel @every_third_backward backward of @every_third_preprocess {
// CHECK:           attention.visible bits
