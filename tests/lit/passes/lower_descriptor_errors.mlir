// RUN: not cm-opt --lower-descriptor %s 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not cm-opt --lower-intervals --transpose --lower-descriptor %s 2>&1 | filecheck %s --check-prefix=TESTS
// RUN: not cm-opt --lower-intervals --lower-descriptor %s 2>&1 | filecheck %s --check-prefix=COLS
// RUN: not cm-opt --dnf-normalize --extract-intervals --transpose --choose-axis --lower-descriptor %s 2>&1 | filecheck %s --check-prefix=SLOTS
// RUN: not cm-opt --lower-intervals --transpose --choose-axis --lower-descriptor --lower-descriptor %s 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cm-opt --lower-intervals --lower-attention %s 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not cm-opt --lower-intervals --transpose --choose-axis --lower-descriptor --lower-attention --lower-attention %s 2>&1 | filecheck %s --check-prefix=AGAIN

// Passes that come too early or twice.

// ROWS:        {{^.*}}lower_descriptor_errors.mlir:24:1: error: @causal has no table of rows yet; run --lower-intervals first
// ROWS-NEXT:   maskspec.spec @causal() {
// ROWS-NEXT:   {{^\^$}}
// COLS:        {{^.*}}:24:1: error: @causal has no table of cols yet; run --transpose first
// SLOTS:       {{^.*}}:24:1: error: the slots of @causal_rows are not numbered yet; run --merge-slots first
// TESTS:       {{^.*}}:24:1: error: nothing says yet what the kernels of @causal test; run --choose-axis first
// TWICE:       {{^.*}}:24:1: error: @causal has a preprocess kernel already
// TWICE:       {{^.*}}:24:1: note: it is here
// EARLY:       {{^.*}}: error: there is no descriptor.preprocess yet; run --lower-descriptor first
// EARLY-NOT:   Traceback
// AGAIN:       {{^.*}}:24:1: error: @causal_preprocess has attention kernels already
// AGAIN:       {{^.*}}:24:1: note: one is here

maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
