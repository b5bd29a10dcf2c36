// RUN: cm-opt --split-input-file --verify-diagnostics --lower-intervals --transpose --choose-axis %s
// RUN: cm-opt --split-input-file --verify-diagnostics -t triton %s
// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis %s 2>&1 | filecheck %s

// Remarks name the literal and the table that leave an axis unbounded, and what would bound it; they fail nothing.

// CHECK:      {{^.*}}choose_axis_remarks.mlir:26:5: remark: mask @evict is unbounded by rows: {{.*}}
// CHECK-NEXT:     maskspec.clause j <= i and i < evict[j]
// CHECK-NEXT: {{^    \^$}}
// CHECK-NEXT: {{^note: 'maskspec.nondecreasing evict' would bound it: declare that if no entry is below the one before, or order the tokens so$}}
// CHECK-NEXT: remark: mask @neither is unbounded by rows
// CHECK:      {{^note: 'maskspec.nondecreasing c' would bound it}}
// CHECK-NEXT: remark: mask @neither is unbounded by cols
// CHECK:      {{^note: 'maskspec.nondecreasing t' would bound it}}
// CHECK-NEXT: remark: mask @strided is unbounded by rows
// CHECK:      {{^note: tokens ordered by t mod 4 first have those of one remainder side by side: then intervals can say what repeats$}}
// CHECK-NEXT: remark: mask @strided is unbounded by cols
// CHECK:      {{^note: tokens ordered by t mod 4}}
// CHECK-NEXT: remark: mask @difference is unbounded by cols
// CHECK-NOT:  note
// CHECK:      attention.tests of @evict forward cols, dq cols, dkv cols

maskspec.spec @evict(%evict: !maskspec.table<col>) {
  // expected-remark@+2 {{mask @evict is unbounded by rows: 'i < evict[j]' bounds no interval, since nothing says that table 'evict' is nondecreasing; kernels test the table of cols}}
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}

// -----

// With the fact, nothing is to be said.
maskspec.spec @evict_in_order(%evict: !maskspec.table<col>) {
  maskspec.nondecreasing evict
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}

// -----

// One remark an axis, at the Region whose clause is at fault.
maskspec.spec @neither(%t: !maskspec.table<row>, %c: !maskspec.table<col>) {
  maskspec.region @plain rows [0, 5) {
    maskspec.clause j <= i
  }
  // expected-remark@+3 {{mask @neither is unbounded by rows: 'c[j] <= i' bounds no interval, since nothing says that table 'c' is nondecreasing; partial tiles are tested by packed bits}}
  // expected-remark@+2 {{mask @neither is unbounded by cols: 't[i] <= j' bounds no interval, since nothing says that table 't' is nondecreasing; partial tiles are tested by packed bits}}
  maskspec.region @rest rows [5, rows) {
    maskspec.clause t[i] <= j and c[j] <= i
  }
}

// -----

// What repeats does not repeat in another order; no fact about a table would do.
maskspec.spec @strided() {
  // expected-remark@+3 {{mask @strided is unbounded by rows}}
  // expected-remark@+2 {{mask @strided is unbounded by cols}}
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j) mod 4 == 0
  }
}

// -----

// A fact is no hint where it would not be enough: the sum of the two tables need not be monotone.
maskspec.spec @difference(%a: !maskspec.table<row>, %b: !maskspec.table<row>) {
  // expected-remark@+2 {{mask @difference is unbounded by cols}}
  maskspec.region @all rows [0, rows) {
    maskspec.clause a[i] - b[i] <= j
  }
}
