// RUN: cm-opt --dnf-normalize --extract-intervals --canonicalize-intervals --merge-slots=proofs=0 %s | filecheck %s --check-prefix=APART
// RUN: cm-opt --dnf-normalize --extract-intervals --canonicalize-intervals --merge-slots %s | filecheck %s --check-prefix=MERGED

// Without proofs spans stay apart, and the slots that meet are to be united at run time: always right.
// APART: interval.table @prefix_rows of @prefix axis rows slots 2 {
// APART-NEXT: interval.region @all [0, rows) fuse [(0, 1)] {
// MERGED: interval.table @prefix_rows of @prefix axis rows slots 1 {
maskspec.spec @prefix(%p: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < p
    maskspec.clause j <= i
  }
}
