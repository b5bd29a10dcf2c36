// RUN: cm-opt --split-input-file --verify-diagnostics %s

// What the pretty syntax cannot even say, the generic one can, and so can a pass: the verifiers refuse it.

// expected-error@+1 {{a spec is named by an identifier (letters, digits, _), got 'a b'}}
maskspec.spec @"a b"() {}

// -----

// expected-error@+1 {{a spec needs one name for each parameter}}
"maskspec.spec"() <{sym_name = "m", names = ["a", "b"], statics = ["", ""]}> ({
^bb0(%a: index):
}) : () -> ()

// -----

// expected-error@+1 {{static 'w' is 4294967296, which does not fit 32 bits}}
maskspec.spec @m(%w: index = 4294967296) {}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{an identifier (letters, digits, _) names a Region, not 'a b'}}
  maskspec.region @"a b" rows [0, rows) {}
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{a rule is over (%i, %j): the row and the column}}
  maskspec.region @all rows [0, rows) (%i) {
    %t = arith.constant true
    maskspec.visible %t
  }
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{a rule ends in 'maskspec.visible': the condition under which row %i sees column %j}}
  maskspec.region @all rows [0, rows) (%i, %j) {
    %t = arith.constant true
  }
}

// -----

// expected-error@+1 {{a spec needs one name for each parameter}}
"maskspec.spec"() <{sym_name = "m", names = ["a"], statics = []}> ({
^bb0(%a: index):
}) : () -> ()

// -----

maskspec.spec @m() {
  // expected-error@+1 {{expected a range [lo, hi)}}
  maskspec.region @all rows 0 {}
}

// -----

maskspec.spec @m(%n: index, %t: !maskspec.table<row>) {
  // expected-error@+1 {{the range of a fact reads no table: give 't[..]' as a scalar of its own}}
  maskspec.assume for i in [t[0], rows) : t[i] <= i
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{'floordiv' cannot name a table: it is a keyword or no identifier}}
  maskspec.constants @floordiv [1]
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{a constant table needs at least one entry}}
  maskspec.constants @c []
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{a constant table needs its entries: [1, 2, 3] or 'for d in [lo, hi) : expr'}}
  "maskspec.constants"() <{sym_name = "c"}> : () -> ()
}

// -----

maskspec.spec @m(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{a look-up needs a table}}
    %a = "maskspec.lookup"(%i, %j) {operandSegmentSizes = array<i32: 1, 1>} : (index, index) -> index
    %v = arith.cmpi sle, %a, %i : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{a look-up needs an index}}
    %a = "maskspec.lookup"(%t) {operandSegmentSizes = array<i32: 1, 0>} : (!maskspec.table<row>) -> index
    %v = arith.cmpi sle, %a, %i : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m(%t: !maskspec.table<row>, %u: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %either = arith.constant true
    %which = "arith.select"(%either, %t, %u) : (i1, !maskspec.table<row>, !maskspec.table<row>) -> !maskspec.table<row>
    // expected-error@+1 {{a look-up reads a table that the spec declares}}
    %a = maskspec.lookup %which[%i]
    %v = arith.cmpi sle, %a, %i : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'exists' binds one index}}
    %v = "maskspec.exists"() <{lo = #maskspec.expr<[0]>, hi = #maskspec.expr<[1]>}> ({
      %t = arith.constant true
      maskspec.yield %t
    }) : () -> i1
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{the body of 'exists' ends in 'maskspec.yield'}}
    %v = maskspec.exists %d in [0, 1] {
      %t = arith.constant true
    }
    maskspec.visible %v
  }
}

// -----

// expected-error@+1 {{'maskspec.clause' expects parent op 'maskspec.region'}}
maskspec.clause i <= j

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  // expected-error@+1 {{a region holds spans only, found 'arith.constant'}}
  interval.region @all [0, rows) {
    %0 = arith.constant 0 : index
  }
}

// -----

maskspec.spec @m(%s: index) {}
// expected-error@+1 {{a table holds regions only, found 'arith.constant'}}
interval.table @t of @m axis rows {
  %0 = arith.constant 0 : index
}

// -----

maskspec.spec @m(%s: index) {}
// expected-error@+1 {{the axis is rows or cols, got 'diagonals'}}
"interval.table"() <{sym_name = "t", spec = "m", axis = "diagonals"}> ({
^bb0:
}) : () -> ()

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  // expected-error@+1 {{the pairs of fuse are in order, each once}}
  interval.region @all [0, rows) fuse [(0, 2), (0, 1)] {
    interval.span [0, 1) from "a"
    interval.span [2, 3) from "b"
    interval.span [4, 5) from "c"
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  // expected-error@+1 {{a fact is over scalar, row, col, entry, got 'page'}}
  "descriptor.fact"() <{number = #builtin.int<1>, text = "x", over = "page"}> ({
    %p = arith.constant true
    descriptor.holds %p
  }) : () -> ()
}

// -----

// expected-error@+1 {{slots of rows serve columns too only if both axes have as many}}
descriptor.preprocess @p of @m () symmetric {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}

// -----

// expected-error@+1 {{a kernel is forward, dq, dkv, backward, got 'sideways'}}
"attention.kernel"() <{sym_name = "k", role = "sideways", preprocess = "p"}> ({
^bb0:
}) : () -> ()
