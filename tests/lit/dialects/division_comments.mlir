// RUN: cm-opt --split-input-file --verify-diagnostics %s
// RUN: not cm-opt %s 2>&1 | filecheck %s

// `//` begins a comment: what reads as a division is another mask without it.

// The caret is at the slashes.
// CHECK: division_comments.mlir:[[#]]:28: error: `//` begins a comment here; division is floordiv
// CHECK-NEXT: maskspec.clause j <= i // 2
// CHECK-NEXT: {{^ {27}\^}}
maskspec.spec @number() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
    maskspec.clause j <= i // 2
  }
}

// -----

maskspec.spec @goes_on(%w: index = 4) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
    maskspec.clause j <= i // w and i - j < 8
  }
}

// -----

// The clause goes on for lines.
maskspec.spec @lines(%w: index = 4) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
      // causal
      // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
      and i - j < w //2 // half of it
  }
}

// -----

maskspec.spec @parentheses(%w: index = 4) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
    maskspec.clause j <= i//(w + 1)
  }
}

// -----

maskspec.spec @look_up(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
    maskspec.clause j <= t[i] // t[0]
  }
}

// -----

maskspec.spec @call(%w: index) {
  // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
  maskspec.assume w <= rows // max(w, 1)
}

// -----

maskspec.spec @comparison(%w: index) {
  // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
  maskspec.assume w <= rows // 2 < cols
}

// -----

// In a range, the comment takes the bracket along.
maskspec.spec @guard(%w: index) {
  // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
  maskspec.region @all rows [w // 2, rows) {
  }
}

// -----

maskspec.spec @guard_end(%w: index) {
  // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
  maskspec.region @all rows [0, rows // 2) {
  }
}

// -----

maskspec.spec @range(%w: index, %t: !maskspec.table<row>) {
  // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
  maskspec.nondecreasing t over [0, rows // 2)
}

// -----

maskspec.spec @static(%w: index = 128 // 2
) {
  // expected-error@-2 {{`//` begins a comment here; division is floordiv}}
}

// -----

maskspec.spec @visible(%w: index = 3) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    // expected-error@+1 {{`//` begins a comment here; division is floordiv}}
    maskspec.visible %v // 2
  }
}

// -----

// Comments.
maskspec.spec @comments(  // 2
    %w: index = 4,  // 4
    %t: !maskspec.table<row>  // starts
) {  // 2
  maskspec.assume 1 <= w  // 2 slots
  maskspec.nondecreasing t  // 2-dimensional
  maskspec.region @all rows [0, rows) {  // 1
    maskspec.clause j <= i  // causal
    maskspec.clause j <= i and i - j < w  // w: the window
    // 2
    maskspec.clause j <= i + w  // 2, 3 and 4 rows
  }  // 2
}  // 2
