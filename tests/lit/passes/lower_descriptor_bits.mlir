// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis --lower-descriptor %s | filecheck %s
// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis=test=bits --lower-descriptor %s | filecheck %s --check-prefix=FORCED

// No interval says a stride: the mask pair by pair, and the columns beyond which a row sees nothing.
maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j) mod 4 == 0
  }
}

// CHECK-LABEL: descriptor.preprocess @strided_preprocess of @strided () {
// CHECK-NEXT:    descriptor.hull (%i) {
// CHECK-NEXT:      %0 = maskspec.cols
// CHECK-NEXT:      %1 = arith.constant 0 : index
// CHECK-NEXT:      %2 = arith.constant 1 : index
// CHECK-NEXT:      %3 = arith.addi %i, %2 : index
// CHECK-NEXT:      %4 = arith.minsi %0, %3 : index
// CHECK-NEXT:      %5 = arith.cmpi slt, %1, %4 : index
// CHECK-NEXT:      %6 = arith.select %5, %1, %0 : index
// CHECK-NEXT:      %7 = arith.minsi %0, %6 : index
// CHECK-NEXT:      %8 = arith.select %5, %4, %1 : index
// CHECK-NEXT:      %9 = arith.maxsi %1, %8 : index
// CHECK-NEXT:      descriptor.endpoints [%7, %9) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.pair (%i_1, %j) {
// CHECK-NEXT:      %10 = arith.cmpi sle, %j, %i_1 : index
// CHECK-NEXT:      %11 = arith.subi %i_1, %j : index
// CHECK-NEXT:      %12 = arith.constant 4 : index
// CHECK-NEXT:      %13 = maskspec.mod %11, %12
// CHECK-NEXT:      %14 = arith.constant 0 : index
// CHECK-NEXT:      %15 = arith.cmpi eq, %13, %14 : index
// CHECK-NEXT:      %16 = arith.andi %10, %15 : i1
// CHECK-NEXT:      descriptor.holds %16
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Regions are guarded; a Region without a residual is asked about too. Facts are checked as ever.
maskspec.spec @holes(%split: index, %keep: !maskspec.table<free>) {
  maskspec.assume 0 <= split
  maskspec.region @before rows [0, split) {
    maskspec.clause j <= i
  }
  maskspec.region @after rows [split, rows) {
    maskspec.clause keep[i] == keep[j]
  }
}

// CHECK-LABEL: descriptor.preprocess @holes_preprocess of @holes (%split: index, %keep: !maskspec.table<free>) {
// CHECK:         descriptor.hull (%i) {
// CHECK:           descriptor.endpoints [{{.*}}) from "before.0", "after.0"
// CHECK:         descriptor.pair (%i_1, %j) {
// CHECK-NEXT:      %[[BEFORE:.*]] = arith.cmpi slt, %i_1, %split : index
// CHECK-NEXT:      %[[CAUSAL:.*]] = arith.cmpi sle, %j, %i_1 : index
// CHECK-NEXT:      %[[FIRST:.*]] = arith.andi %[[BEFORE]], %[[CAUSAL]] : i1
// CHECK-NEXT:      %[[AFTER:.*]] = arith.cmpi sle, %split, %i_1 : index
// CHECK-NEXT:      %[[ROW:.*]] = maskspec.lookup %keep[%i_1]
// CHECK-NEXT:      %[[COL:.*]] = maskspec.lookup %keep[%j]
// CHECK-NEXT:      %[[SAME:.*]] = arith.cmpi eq, %[[ROW]], %[[COL]] : index
// CHECK-NEXT:      %[[SECOND:.*]] = arith.andi %[[AFTER]], %[[SAME]] : i1
// CHECK-NEXT:      %[[SEEN:.*]] = arith.ori %[[FIRST]], %[[SECOND]] : i1
// CHECK-NEXT:      descriptor.holds %[[SEEN]]
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.fact 1 "0 <= split" over scalar {

// -----

// Forced, a bounded mask gives up its slots.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// FORCED-LABEL: descriptor.preprocess @causal_preprocess of @causal () {
// FORCED-NOT:     descriptor.slots
// FORCED:         descriptor.pair (%i_1, %j) {
// FORCED-NEXT:      %[[SEEN:.*]] = arith.cmpi sle, %j, %i_1 : index
// FORCED-NEXT:      descriptor.holds %[[SEEN]]

// -----

// A mask that shows nothing, pair by pair.
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}

// FORCED-LABEL: descriptor.preprocess @nothing_preprocess of @nothing () {
// FORCED-NEXT:    descriptor.hull (%i) {
// FORCED-NEXT:      %[[END:.*]] = maskspec.cols
// FORCED-NEXT:      %[[ZERO:.*]] = arith.constant 0 : index
// FORCED-NEXT:      descriptor.endpoints [%[[END]], %[[ZERO]])
// FORCED-NEXT:    }
// FORCED-NEXT:    descriptor.pair (%i_1, %j) {
// FORCED-NEXT:      %[[NEVER:.*]] = arith.constant false
// FORCED-NEXT:      descriptor.holds %[[NEVER]]
// FORCED-NEXT:    }
// FORCED-NEXT:  }
