// RUN: cm-opt --split-input-file --lower-intervals %s | filecheck %s
// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis --lower-descriptor %s | filecheck %s --check-prefix=KERNEL

// Slot lists from the rule to its intervals.

// Facts about the integers of an entry: the second interval begins where the first one ends, so the two are one.
// CHECK-LABEL: interval.table @touching_rows of @touching axis rows slots 1 {
// CHECK-NEXT:    interval.region @all [0, rows) {
// CHECK-NEXT:      interval.span [max(0, lo[i, 0]), min(cols, hi[i, 1])) from "all.0", "all.1"
maskspec.spec @touching(%lo: !maskspec.table<row x 2>, %hi: !maskspec.table<row x 2>) {
  maskspec.assume lo[i, 0] <= hi[i, 0] and hi[i, 0] == lo[i, 1] and lo[i, 1] <= hi[i, 1]
  maskspec.nondecreasing lo
  maskspec.nondecreasing hi
  maskspec.region @all rows [0, rows) {
    maskspec.clause lo[i, 0] <= j and j < hi[i, 0]
    maskspec.clause lo[i, 1] <= j and j < hi[i, 1]
  }
}
// KERNEL-LABEL: descriptor.preprocess @touching_preprocess
// KERNEL:         descriptor.endpoints {{.*}} from "all.0", "all.1"
// KERNEL:         descriptor.fact 2 "hi[i, 0] == lo[i, 1]" over row (%i
// KERNEL:         descriptor.fact 5 "lo nondecreasing, number 1" over row (%i

// -----

// Nothing keeps six intervals apart: each pair is united where it overlaps, in code that does not double with each.
// CHECK-LABEL: interval.table @six_rows of @six axis rows slots 6 {
// CHECK-NEXT:    interval.region @all [0, rows) fuse [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), {{.*}}, (4, 5)] {
// CHECK-NEXT:      interval.span [max(0, sel[i, 0] * 64), min(cols, sel[i, 0] * 64 + 64)) from "all.0"
maskspec.spec @six(%sel: !maskspec.table<row x 6>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %size = arith.constant 64 : index
    %block = arith.floordivsi %j, %size : index
    %seen = maskspec.exists %t in [0, 5] {
      %s = maskspec.lookup %sel[%i, %t]
      %p = arith.cmpi eq, %s, %block : index
      maskspec.yield %p
    }
    maskspec.visible %seen
  }
}
// KERNEL-LABEL: descriptor.preprocess @six_preprocess
// KERNEL:         descriptor.slots rows (%i) {
// KERNEL:         descriptor.endpoints {{.*}} from "all.0" {{.*}} from "all.5"

// -----

// A static says how many slots there are; the name stands in the spec as written, its number wherever statics are gone.
// CHECK-LABEL: maskspec.spec @counted(%lo: !maskspec.table<row x 3>, %hi: !maskspec.table<row x 3>) {
// CHECK:       interval.table @counted_rows of @counted axis rows slots 3 {
// CHECK:         interval.span [max(0, lo[i, 2]), min(cols, hi[i, 2])) from "all.2"
maskspec.spec @counted(%lo: !maskspec.table<row x slots>, %slots: index = 3, %hi: !maskspec.table<row x slots>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %seen = maskspec.exists %t in [0, slots - 1] {
      %a = maskspec.lookup %lo[%i, %t]
      %b = maskspec.lookup %hi[%i, %t]
      %p = arith.cmpi sle, %a, %j : index
      %q = arith.cmpi slt, %j, %b : index
      %r = arith.andi %p, %q : i1
      maskspec.yield %r
    }
    maskspec.visible %seen
  }
}
