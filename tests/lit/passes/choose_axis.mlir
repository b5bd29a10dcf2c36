// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis %s | filecheck %s
// RUN: cm-opt --split-input-file --lower-intervals --transpose --choose-axis=test=bits %s | filecheck %s --check-prefix=BITS

// Equal costs: each kernel tests the table of the axis that it owns. Any mask can be tested by bits.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// CHECK: interval.table @causal_cols of @causal axis cols slots 1 {
// CHECK: attention.tests of @causal forward rows, dq rows, dkv cols
// BITS:  attention.tests of @causal forward bits, dq bits, dkv bits

// -----

// One side has far more slots than the other: a kernel may be better off with the table of the axis that it walks.
maskspec.spec @many() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j == 0
    maskspec.clause j == 2
    maskspec.clause j == 4
    maskspec.clause j == 6
    maskspec.clause j == 8
  }
}

// CHECK: interval.table @many_rows of @many axis rows slots 5 {
// CHECK: interval.table @many_cols of @many axis cols slots 1 {
// CHECK: attention.tests of @many forward cols, dq cols, dkv cols
// BITS:  attention.tests of @many forward bits, dq bits, dkv bits

// -----

// A side that no number of intervals says is not tested, whatever it would cost.
maskspec.spec @evict(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}

// CHECK: attention.tests of @evict forward cols, dq cols, dkv cols
// BITS:  attention.tests of @evict forward bits, dq bits, dkv bits

// -----

// Neither side is bounded.
maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j) mod 4 == 0
  }
}

// CHECK: attention.tests of @strided forward bits, dq bits, dkv bits

// -----

// Nothing is visible: no slots are as good as any.
maskspec.spec @nothing() {
  maskspec.region @all rows [0, rows) {
  }
}

// CHECK: attention.tests of @nothing forward rows, dq rows, dkv cols

// -----

// Row i sees column j iff row j sees column i: one table serves both axes where there are as many rows as columns.
maskspec.spec @near(%w: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - j <= w and j - i <= w
  }
}

// CHECK: attention.tests of @near forward rows, dq rows, dkv cols symmetric

// -----

// The same slots on both sides are not enough.
maskspec.spec @nearly(%w: index) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - j <= w and j - i < w
  }
}

// CHECK: attention.tests of @nearly forward rows, dq rows, dkv cols{{$}}

// -----

// 64 short spans a row, of which any may meet in a tile, by row and by column: words of bits hold them all.
maskspec.spec @crowded(%lo: !maskspec.table<row x 64>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %near = maskspec.exists %t in [0, 63] {
      %a = maskspec.lookup %lo[%i, %t]
      %d = arith.subi %j, %a : index
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %p = arith.cmpi sle, %zero, %d : index
      %q = arith.cmpi slt, %d, %four : index
      %v = arith.andi %p, %q : i1
      maskspec.yield %v
    }
    maskspec.visible %near
  }
}

// CHECK: interval.table @crowded_rows of @crowded axis rows slots 64 {
// CHECK: attention.tests of @crowded forward bits, dq bits, dkv bits

// -----

// As many, but far apart: 16 spans that begin 100 columns from each other, of which 3 at most meet a tile.
maskspec.spec @apart() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %near = maskspec.exists %t in [0, 15] {
      %hundred = arith.constant 100 : index
      %shift = arith.muli %t, %hundred : index
      %a = arith.addi %i, %shift : index
      %v = arith.cmpi eq, %a, %j : index
      maskspec.yield %v
    }
    maskspec.visible %near
  }
}

// CHECK: interval.table @apart_rows of @apart axis rows slots 16 {
// CHECK: attention.tests of @apart forward rows, dq rows, dkv cols
