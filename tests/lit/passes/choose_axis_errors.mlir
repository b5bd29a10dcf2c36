// RUN: not cm-opt --choose-axis %s 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not cm-opt --lower-intervals --choose-axis %s 2>&1 | filecheck %s --check-prefix=COLS
// RUN: not cm-opt --dnf-normalize --extract-intervals --transpose --choose-axis %s 2>&1 | filecheck %s --check-prefix=SLOTS
// RUN: not cm-opt --lower-intervals --transpose --choose-axis --choose-axis %s 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cm-opt --lower-intervals --transpose --choose-axis=test=cols %s 2>&1 | filecheck %s --check-prefix=FORCED
// RUN: not cm-opt --lower-intervals --transpose --choose-axis=test=diagonals %s 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: cm-opt --lower-intervals --transpose --choose-axis=test=rows %s | filecheck %s

// ROWS:   {{^.*}}:17:1: error: @reach has no table of rows yet; run --lower-intervals first
// COLS:   {{^.*}}:17:1: error: @reach has no table of cols yet; run --transpose first
// SLOTS:  {{^.*}}:17:1: error: the slots of @reach_rows are not numbered yet; run --merge-slots first
// TWICE:  {{^.*}}:17:1: error: what the kernels of @reach test is chosen already
// TWICE:  {{^.*}}:17:1: note: it is here
// FORCED: {{^.*}}:17:1: error: @reach cannot be tested by cols, which are unbounded
// OPTION: {{^.*}} error: --choose-axis: test is auto, rows, cols, bits, got 'diagonals'
// CHECK:  attention.tests of @reach forward rows, dq rows, dkv rows
maskspec.spec @reach(%last: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < last[i]
  }
}
