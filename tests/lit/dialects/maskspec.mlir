// RUN: cm-opt %s | filecheck %s
// RUN: cm-opt %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

// Everything that the surface can say.
// CHECK-LABEL: maskspec.spec @everything(%s: index, %n: index = 4, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>) {
// GENERIC:     "maskspec.spec"() <{sym_name = "everything", names = ["s", "n", "t", "c", "f"], statics = ["", 4 : index, "", "", ""]}> ({
// GENERIC:     ^bb0(%s: index, %n: index, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>):
maskspec.spec @everything(
    %s: index, %n: index = 4, %t: !maskspec.table<row>, %c: !maskspec.table<col>, %f: !maskspec.table<free>) {
  // CHECK-NEXT: maskspec.assume 0 <= s and s <= rows
  // GENERIC:    "maskspec.assume"() <{condition = #maskspec.expr<[0 <= s and s <= rows]>}> : () -> ()
  maskspec.assume 0 <= s <= rows
  // CHECK-NEXT: maskspec.assume for i in [s, rows) : s <= t[i]
  // GENERIC:    "maskspec.assume"() <{condition = #maskspec.expr<[s <= t[i]]>, bound = "i", lo = #maskspec.expr<[s]>, hi = #maskspec.expr<[rows]>}> : () -> ()
  maskspec.assume for i in [s, rows) : t[i] >= s
  // CHECK-NEXT: maskspec.assume for e in [0, n) : 0 <= f[e]
  maskspec.assume for e in [0, n) : 0 <= f[e]
  // CHECK-NEXT: maskspec.assume c[j] <= rows
  maskspec.assume c[j] <= rows
  // CHECK-NEXT: maskspec.nondecreasing t over [s, rows)
  maskspec.nondecreasing t over [s, rows)
  // CHECK-NEXT: maskspec.nondecreasing f
  maskspec.nondecreasing f
  // CHECK-NEXT: maskspec.constants @half for d in [1 - n, n) : isqrt(n * n - d * d - 1)
  maskspec.constants @half for d in [1 - n, n) : isqrt(n * n - d * d - 1)
  // CHECK-NEXT: maskspec.constants @list [3, -1, 4]
  maskspec.constants @list [3, -1, 4]
  // CHECK-NEXT: maskspec.region @first rows [0, s) (%i, %j) {
  maskspec.region @first rows [0, s) (%i, %j) {
    // CHECK-NEXT: %rows = maskspec.rows
    %rows = maskspec.rows
    // CHECK-NEXT: %cols = maskspec.cols
    %cols = maskspec.cols
    // CHECK-NEXT: %a = maskspec.lookup %t[%i]
    // GENERIC:    %a = "maskspec.lookup"(%t, %i) : (!maskspec.table<row>, index) -> index
    %a = maskspec.lookup %t[%i]
    // CHECK-NEXT: %b = maskspec.lookup @list[%j]
    // GENERIC:    %b = "maskspec.lookup"(%j) <{constants = "list"}> : (index) -> index
    %b = maskspec.lookup @list[%j]
    // CHECK-NEXT: %m = maskspec.mod %a, %n
    %m = maskspec.mod %a, %n
    // CHECK-NEXT: %near = maskspec.exists %d in [1 - n, n - 1] {
    %near = maskspec.exists %d in [1 - n, n - 1] {
      %y = arith.addi %m, %d : index
      %here = arith.cmpi eq, %y, %b : index
      // CHECK: maskspec.yield %here
      maskspec.yield %here
    }
    // CHECK: maskspec.visible %near
    maskspec.visible %near
  }
  // CHECK: maskspec.region @second rows [s, rows) {
  // CHECK-NEXT: maskspec.clause j <= i and t[i] <= j
  // CHECK-NEXT: maskspec.clause true
  // CHECK-NEXT: }
  maskspec.region @second rows [s, rows) {
    maskspec.clause j <= i and t[i] <= j
    maskspec.clause true
  }
  // A Region of rows that see nothing.
  // CHECK-NEXT: maskspec.region @blind rows [rows, rows) {
  // CHECK-NEXT: }
  maskspec.region @blind rows [rows, rows) {
  }
}

// CHECK-LABEL: maskspec.spec @nothing() {
// CHECK-NEXT: }
maskspec.spec @nothing() {}

// CHECK-LABEL: maskspec.spec @layouts(%height: index = 8) {
maskspec.spec @layouts(%height: index = 8) {
  // CHECK-NEXT: maskspec.layout rows = patch(grid = [height, 2 * height], size = [2, 4], after = 3)
  maskspec.layout rows = patch(grid = [height, 2 * height], size = [2, 4], after = 3)
  // CHECK-NEXT: maskspec.layout cols = table(name = order)
  maskspec.layout cols = table(name = order)
}

// CHECK-LABEL: maskspec.spec @layout_of_both() {
// CHECK-NEXT: maskspec.layout rows, cols = striped(of = 4, rank = 1)
maskspec.spec @layout_of_both() {
  maskspec.layout rows, cols = striped(of = 4, rank = 1)
}

// Tables whose entries hold several integers, and a slot list made of two of them.
// CHECK-LABEL: maskspec.spec @lists(%lo: !maskspec.table<row x 4>, %hi: !maskspec.table<row x 4>, %c: !maskspec.table<col x 1>, %f: !maskspec.table<free x 2>) {
// GENERIC:     ^bb0(%lo: !maskspec.table<row x 4>, %hi: !maskspec.table<row x 4>, %c: !maskspec.table<col x 1>, %f: !maskspec.table<free x 2>):
maskspec.spec @lists(
    %lo: !maskspec.table<row x 4>, %hi: !maskspec.table<row x 4>, %c: !maskspec.table<col x 1>,
    %f: !maskspec.table<free x 2>) {
  // CHECK-NEXT: maskspec.assume for i in [0, rows) : lo[i, 0] <= hi[i, 0]
  maskspec.assume for i in [0, rows) : lo[i, 0] <= hi[i, 0]
  // CHECK-NEXT: maskspec.assume not (exists t in [0, 3] : hi[i, t] < lo[i, t])
  maskspec.assume not exists t in [0, 3] : hi[i, t] < lo[i, t]
  // CHECK-NEXT: maskspec.assume for e in [0, 8) : f[e, 0] + 1 <= f[f[e, 0], 1]
  maskspec.assume for e in [0, 8) : f[e, 0] + 1 <= f[f[e, 0], 1]
  // CHECK-NEXT: maskspec.nondecreasing lo
  maskspec.nondecreasing lo
  // CHECK-NEXT: maskspec.region @all rows [0, rows) (%i, %j) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // CHECK-NEXT: %slot = maskspec.exists %t in [0, 3] {
    %slot = maskspec.exists %t in [0, 3] {
      // CHECK: %a = maskspec.lookup %lo[%i, %t]
      // GENERIC: %a = "maskspec.lookup"(%lo, %i, %t) : (!maskspec.table<row x 4>, index, index) -> index
      %a = maskspec.lookup %lo[%i, %t]
      %p = arith.cmpi sle, %a, %j : index
      // CHECK: %b = maskspec.lookup %hi[%i, %t]
      %b = maskspec.lookup %hi[%i, %t]
      %q = arith.cmpi slt, %j, %b : index
      %r = arith.andi %p, %q : i1
      maskspec.yield %r
    }
    maskspec.visible %slot
  }
}

// Facts of neighbours, and where a row stands among the columns.
// CHECK-LABEL: maskspec.spec @segments(%seg: !maskspec.table<row>, %f: !maskspec.table<free x 2>) {
maskspec.spec @segments(%seg: !maskspec.table<row>, %f: !maskspec.table<free x 2>) {
  // CHECK-NEXT: maskspec.contiguous seg
  // GENERIC:    "maskspec.contiguous"() <{table = "seg"}> : () -> ()
  maskspec.contiguous seg
  // CHECK-NEXT: maskspec.contiguous f over [0, 4)
  maskspec.contiguous f over [0, 4)
  // CHECK-NEXT: maskspec.assume forall t in [0, 1] : f[0, t] <= f[1, t]
  maskspec.assume forall t in [0, 1] : f[0, t] <= f[1, t]
  maskspec.region @all rows [0, rows) (%i, %j) {
    // CHECK: %p = maskspec.position bottom_right %i
    // GENERIC: %p = "maskspec.position"(%i) <{alignment = "bottom_right"}> : (index) -> index
    %p = maskspec.position bottom_right %i
    // CHECK: %q = maskspec.position top_left %i
    %q = maskspec.position top_left %i
    %a = arith.cmpi sle, %j, %p : index
    %b = arith.cmpi sle, %q, %j : index
    %v = arith.andi %a, %b : i1
    maskspec.visible %v
  }
}
