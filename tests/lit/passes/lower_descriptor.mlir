// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis --lower-descriptor %s | filecheck %s

// The ends of a slot are clamped into the other axis; where none is left, the slot is [0, 0).
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @causal_preprocess of @causal () {
// CHECK-NEXT:    descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      %1 = maskspec.cols
// CHECK-NEXT:      %2 = arith.constant 1 : index
// CHECK-NEXT:      %3 = arith.addi %i, %2 : index
// CHECK-NEXT:      %4 = arith.minsi %1, %3 : index
// CHECK-NEXT:      %5 = arith.cmpi slt, %0, %4 : index
// CHECK-NEXT:      %6 = arith.select %5, %4, %0 : index
// CHECK-NEXT:      descriptor.endpoints [%0, %6) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.slots cols (%j) {
// CHECK-NEXT:      %7 = arith.constant 0 : index
// CHECK-NEXT:      %8 = arith.maxsi %7, %j : index
// CHECK-NEXT:      %9 = maskspec.rows
// CHECK-NEXT:      %10 = arith.cmpi slt, %8, %9 : index
// CHECK-NEXT:      %11 = arith.select %10, %8, %7 : index
// CHECK-NEXT:      %12 = arith.select %10, %9, %7 : index
// CHECK-NEXT:      descriptor.endpoints [%11, %12) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Two regions share slot 0: the row decides whose clause fills it. By column, a search over the rows of one region.
// Facts are numbered as they stand; a fact about a range holds outside it.
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume 0 <= history
  maskspec.assume for i in [history, rows) : history <= start[i]
  maskspec.nondecreasing start over [history, rows)
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) {
    maskspec.clause j < history
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @hstu_preprocess of @hstu (%history: index, %start: !maskspec.table<row>) {
// CHECK-NEXT:    descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.cmpi slt, %i, %history : index
// CHECK-NEXT:      %1 = arith.constant 0 : index
// CHECK-NEXT:      %2 = maskspec.cols
// CHECK-NEXT:      %3 = arith.constant 1 : index
// CHECK-NEXT:      %4 = arith.addi %i, %3 : index
// CHECK-NEXT:      %5 = arith.minsi %2, %4 : index
// CHECK-NEXT:      %6 = arith.cmpi slt, %1, %5 : index
// CHECK-NEXT:      %7 = arith.andi %0, %6 : i1
// CHECK-NEXT:      %8 = arith.select %7, %5, %1 : index
// CHECK-NEXT:      %9 = arith.cmpi sle, %history, %i : index
// CHECK-NEXT:      %10 = arith.minsi %2, %history : index
// CHECK-NEXT:      %11 = arith.cmpi slt, %1, %10 : index
// CHECK-NEXT:      %12 = arith.andi %9, %11 : i1
// CHECK-NEXT:      %13 = arith.select %12, %10, %8 : index
// CHECK-NEXT:      %14 = maskspec.lookup %start[%i]
// CHECK-NEXT:      %15 = arith.maxsi %1, %14 : index
// CHECK-NEXT:      %16 = arith.cmpi slt, %15, %5 : index
// CHECK-NEXT:      %17 = arith.andi %9, %16 : i1
// CHECK-NEXT:      %18 = arith.select %17, %15, %1 : index
// CHECK-NEXT:      %19 = arith.select %17, %5, %1 : index
// CHECK-NEXT:      descriptor.endpoints [%1, %13) from "history.0", "candidate.0" [%18, %19) from "candidate.1"
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.slots cols (%j) {
// CHECK-NEXT:      %20 = arith.constant 0 : index
// CHECK-NEXT:      %21 = arith.maxsi %20, %j : index
// CHECK-NEXT:      %22 = maskspec.rows
// CHECK-NEXT:      %23 = arith.cmpi slt, %j, %history : index
// CHECK-NEXT:      %24 = descriptor.first %i_1 in [%history, %22) {
// CHECK-NEXT:        %25 = maskspec.lookup %start[%i_1]
// CHECK-NEXT:        %26 = arith.cmpi slt, %j, %25 : index
// CHECK-NEXT:        descriptor.holds %26
// CHECK-NEXT:      }
// CHECK-NEXT:      %27 = arith.select %23, %22, %24 : index
// CHECK-NEXT:      %28 = arith.minsi %22, %27 : index
// CHECK-NEXT:      %29 = arith.cmpi slt, %21, %28 : index
// CHECK-NEXT:      %30 = arith.select %29, %21, %20 : index
// CHECK-NEXT:      %31 = arith.select %29, %28, %20 : index
// CHECK-NEXT:      descriptor.endpoints [%30, %31) from "history.0", "candidate.0", "candidate.1"
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.fact 1 "0 <= history" over scalar {
// CHECK-NEXT:      %32 = arith.constant 0 : index
// CHECK-NEXT:      %33 = arith.cmpi sle, %32, %history : index
// CHECK-NEXT:      descriptor.holds %33
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.fact 2 "history <= start[i] for i in [history, rows)" over row (%i_2) {
// CHECK-NEXT:      %34 = arith.cmpi slt, %i_2, %history : index
// CHECK-NEXT:      %35 = maskspec.rows
// CHECK-NEXT:      %36 = arith.cmpi sle, %35, %i_2 : index
// CHECK-NEXT:      %37 = arith.ori %34, %36 : i1
// CHECK-NEXT:      %38 = maskspec.lookup %start[%i_2]
// CHECK-NEXT:      %39 = arith.cmpi sle, %history, %38 : index
// CHECK-NEXT:      %40 = arith.ori %37, %39 : i1
// CHECK-NEXT:      descriptor.holds %40
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.fact 3 "start nondecreasing over [history, rows)" over row (%i_3) {
// CHECK-NEXT:      %41 = arith.cmpi slt, %i_3, %history : index
// CHECK-NEXT:      %42 = maskspec.rows
// CHECK-NEXT:      %43 = arith.constant 2 : index
// CHECK-NEXT:      %44 = arith.addi %i_3, %43 : index
// CHECK-NEXT:      %45 = arith.cmpi slt, %42, %44 : index
// CHECK-NEXT:      %46 = arith.ori %41, %45 : i1
// CHECK-NEXT:      %47 = maskspec.lookup %start[%i_3]
// CHECK-NEXT:      %48 = arith.constant 1 : index
// CHECK-NEXT:      %49 = arith.addi %i_3, %48 : index
// CHECK-NEXT:      %50 = maskspec.lookup %start[%49]
// CHECK-NEXT:      %51 = arith.cmpi sle, %47, %50 : index
// CHECK-NEXT:      %52 = arith.ori %46, %51 : i1
// CHECK-NEXT:      descriptor.holds %52
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An axis whose table has a residual gets no slots.
maskspec.spec @unbounded(%start: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @unbounded_preprocess of @unbounded (%start: !maskspec.table<row>) {
// CHECK-NEXT:    descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      %1 = maskspec.lookup %start[%i]
// CHECK-NEXT:      %2 = arith.maxsi %0, %1 : index
// CHECK-NEXT:      %3 = maskspec.cols
// CHECK-NEXT:      %4 = arith.constant 1 : index
// CHECK-NEXT:      %5 = arith.addi %i, %4 : index
// CHECK-NEXT:      %6 = arith.minsi %3, %5 : index
// CHECK-NEXT:      %7 = arith.cmpi slt, %2, %6 : index
// CHECK-NEXT:      %8 = arith.select %7, %2, %0 : index
// CHECK-NEXT:      %9 = arith.select %7, %6, %0 : index
// CHECK-NEXT:      descriptor.endpoints [%8, %9) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Rows may be the unbounded axis as well.
maskspec.spec @evict(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i < evict[j] and j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @evict_preprocess of @evict (%evict: !maskspec.table<col>) {
// CHECK-NEXT:    descriptor.slots cols (%j) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      %1 = arith.maxsi %0, %j : index
// CHECK-NEXT:      %2 = maskspec.rows
// CHECK-NEXT:      %3 = maskspec.lookup %evict[%j]
// CHECK-NEXT:      %4 = arith.minsi %2, %3 : index
// CHECK-NEXT:      %5 = arith.cmpi slt, %1, %4 : index
// CHECK-NEXT:      %6 = arith.select %5, %1, %0 : index
// CHECK-NEXT:      %7 = arith.select %5, %4, %0 : index
// CHECK-NEXT:      descriptor.endpoints [%6, %7) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A mask that shows nothing has a table all the same: one slot that no clause fills.
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}

// CHECK-LABEL: descriptor.preprocess @nothing_preprocess of @nothing () {
// CHECK-NEXT:    descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      descriptor.endpoints [%0, %0)
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.slots cols (%j) {
// CHECK-NEXT:      %1 = arith.constant 0 : index
// CHECK-NEXT:      descriptor.endpoints [%1, %1)
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Slots that nothing proves disjoint: where they overlap, the second becomes their union and the first empty.
maskspec.spec @meet(%a: !maskspec.table<row>, %b: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < a[i]
    maskspec.clause b[i] <= j
  }
}

// CHECK-LABEL: descriptor.preprocess @meet_preprocess of @meet (%a: !maskspec.table<row>, %b: !maskspec.table<row>) {
// CHECK:         descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      %1 = maskspec.cols
// CHECK-NEXT:      %2 = maskspec.lookup %a[%i]
// CHECK-NEXT:      %3 = arith.minsi %1, %2 : index
// CHECK-NEXT:      %4 = arith.cmpi slt, %0, %3 : index
// CHECK-NEXT:      %5 = arith.select %4, %3, %0 : index
// CHECK-NEXT:      %6 = maskspec.lookup %b[%i]
// CHECK-NEXT:      %7 = arith.maxsi %0, %6 : index
// CHECK-NEXT:      %8 = arith.cmpi slt, %7, %1 : index
// CHECK-NEXT:      %9 = arith.select %8, %7, %0 : index
// CHECK-NEXT:      %10 = arith.select %8, %1, %0 : index
// CHECK-NEXT:      %11 = arith.cmpi slt, %0, %10 : index
// CHECK-NEXT:      %12 = arith.cmpi slt, %9, %5 : index
// CHECK-NEXT:      %13 = arith.andi %11, %12 : i1
// CHECK-NEXT:      %14 = arith.cmpi slt, %0, %5 : index
// CHECK-NEXT:      %15 = arith.andi %13, %14 : i1
// CHECK-NEXT:      %16 = arith.cmpi slt, %9, %10 : index
// CHECK-NEXT:      %17 = arith.andi %15, %16 : i1
// CHECK-NEXT:      %18 = arith.select %17, %0, %0 : index
// CHECK-NEXT:      %19 = arith.select %17, %0, %5 : index
// CHECK-NEXT:      %20 = arith.minsi %0, %9 : index
// CHECK-NEXT:      %21 = arith.select %17, %20, %9 : index
// CHECK-NEXT:      %22 = arith.maxsi %5, %10 : index
// CHECK-NEXT:      %23 = arith.select %17, %22, %10 : index
// CHECK-NEXT:      descriptor.endpoints [%18, %19) from "all.0" [%21, %23) from "all.1"
// CHECK-NEXT:    }

// -----

// Facts about a free table are checked over its entries, and its neighbours up to its length.
maskspec.spec @free(%bounds: !maskspec.table<free>) {
  maskspec.nondecreasing bounds
  maskspec.region @all rows [0, rows) {
    maskspec.clause bounds[i] <= j and j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @free_preprocess of @free (%bounds: !maskspec.table<free>) {
// CHECK:         descriptor.fact 1 "bounds nondecreasing" over entry (%entry) {
// CHECK-NEXT:      %20 = arith.constant 0 : index
// CHECK-NEXT:      %21 = arith.cmpi slt, %entry, %20 : index
// CHECK-NEXT:      %22 = descriptor.length %bounds
// CHECK-NEXT:      %23 = arith.constant 2 : index
// CHECK-NEXT:      %24 = arith.addi %entry, %23 : index
// CHECK-NEXT:      %25 = arith.cmpi slt, %22, %24 : index
// CHECK-NEXT:      %26 = arith.ori %21, %25 : i1
// CHECK-NEXT:      %27 = maskspec.lookup %bounds[%entry]
// CHECK-NEXT:      %28 = arith.constant 1 : index
// CHECK-NEXT:      %29 = arith.addi %entry, %28 : index
// CHECK-NEXT:      %30 = maskspec.lookup %bounds[%29]
// CHECK-NEXT:      %31 = arith.cmpi sle, %27, %30 : index
// CHECK-NEXT:      %32 = arith.ori %26, %31 : i1
// CHECK-NEXT:      descriptor.holds %32
// CHECK-NEXT:    }

// -----

// Statics are folded: they are no metadata of the kernel.
maskspec.spec @window(%w: index = 4) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w < j and j <= i
  }
}

// CHECK-LABEL: descriptor.preprocess @window_preprocess of @window () {
// CHECK-NEXT:    descriptor.slots rows (%i) {
// CHECK-NEXT:      %0 = arith.constant 0 : index
// CHECK-NEXT:      %1 = arith.constant 3 : index
// CHECK-NEXT:      %2 = arith.subi %i, %1 : index
// CHECK-NEXT:      %3 = arith.maxsi %0, %2 : index
// CHECK-NEXT:      %4 = maskspec.cols
// CHECK-NEXT:      %5 = arith.constant 1 : index
// CHECK-NEXT:      %6 = arith.addi %i, %5 : index
// CHECK-NEXT:      %7 = arith.minsi %4, %6 : index
// CHECK-NEXT:      %8 = arith.cmpi slt, %3, %7 : index
// CHECK-NEXT:      %9 = arith.select %8, %3, %0 : index
// CHECK-NEXT:      %10 = arith.select %8, %7, %0 : index
// CHECK-NEXT:      descriptor.endpoints [%9, %10) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:    descriptor.slots cols (%j) {
// CHECK-NEXT:      %11 = arith.constant 0 : index
// CHECK-NEXT:      %12 = arith.maxsi %11, %j : index
// CHECK-NEXT:      %13 = maskspec.rows
// CHECK-NEXT:      %14 = arith.constant 4 : index
// CHECK-NEXT:      %15 = arith.addi %j, %14 : index
// CHECK-NEXT:      %16 = arith.minsi %13, %15 : index
// CHECK-NEXT:      %17 = arith.cmpi slt, %12, %16 : index
// CHECK-NEXT:      %18 = arith.select %17, %12, %11 : index
// CHECK-NEXT:      %19 = arith.select %17, %16, %11 : index
// CHECK-NEXT:      descriptor.endpoints [%18, %19) from "all.0"
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// An entry of several integers is read by two indices; a fact about entries holds of the tables that it reads, whatever
// the length of others.
maskspec.spec @pairs(%f: !maskspec.table<free x 2>, %g: !maskspec.table<free>) {
  maskspec.assume for e in [0, 8) : f[e, 0] <= f[e, 1]
  maskspec.region @all rows [0, rows) {
    maskspec.clause f[i, 0] <= j and j < f[i, 1]
  }
}

// CHECK-LABEL: descriptor.preprocess @pairs_preprocess of @pairs (%f: !maskspec.table<free x 2>, %g: !maskspec.table<free>) {
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         maskspec.lookup %f[%i, %[[ZERO]]]
// CHECK:         descriptor.fact 1 "f[e, 0] <= f[e, 1] for e in [0, 8)" over entry (%e) {
// CHECK:           %[[LENGTH:.*]] = descriptor.length %f
// CHECK:           arith.cmpi sle, %[[LENGTH]], %e : index

// -----

// Ids of segments: two checks, and the search that they make right.
maskspec.spec @segments(%seg: !maskspec.table<row>) {
  maskspec.contiguous seg
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= seg[i]
  }
}

// CHECK-LABEL: descriptor.preprocess @segments_preprocess of @segments (%seg: !maskspec.table<row>) {
// CHECK:         descriptor.first
// CHECK:         descriptor.fact 1 "seg contiguous" over row (%i
// CHECK:         descriptor.fact 2 "seg contiguous, no id left out" over row (%i
// CHECK:           %[[ONE:.*]] = arith.constant 1 : index
