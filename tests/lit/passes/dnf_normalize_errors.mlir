// RUN: cm-opt --split-input-file --verify-diagnostics --dnf-normalize %s

// What no rule can say, at the op that says it.

maskspec.spec @unknown_op() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'arith.index_cast' is not in the rule language: integer arith, comparisons, and/or/not, and the maskspec look-ups}}
    %a = arith.index_cast %j : index to i32
    %b = arith.cmpi sle, %j, %i : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @rounding() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %four = arith.constant 4 : index
    // expected-error@+1 {{'arith.divsi' is not in the rule language; use arith.floordivsi (division rounds down)}}
    %a = arith.divsi %j, %four : index
    %b = arith.cmpi sle, %a, %i : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @remainder() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %four = arith.constant 4 : index
    // expected-error@+1 {{'arith.remsi' is not in the rule language; use maskspec.mod (never negative)}}
    %a = arith.remsi %j, %four : index
    %b = arith.cmpi sle, %a, %i : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @unsigned() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{comparisons in a rule are signed: slt, sle, sgt, sge, eq or ne}}
    %b = arith.cmpi ule, %j, %i : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @width() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{a number in a rule is an index, a condition an i1; got i8}}
    %a = arith.constant 100 : i8
    %b = arith.cmpi slt, %a, %a : i8
    maskspec.visible %b
  }
}

// -----

maskspec.spec @sum_of_conditions() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = arith.cmpi sle, %j, %i : index
    // expected-error@+1 {{'arith.addi' works on integers (index) in a rule, got i1}}
    %b = arith.addi %a, %a : i1
    maskspec.visible %b
  }
}

// -----

maskspec.spec @conjunction_of_integers() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'arith.andi' works on conditions (i1) in a rule, got index}}
    %a = arith.andi %i, %j : index
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @product(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'arith.muli' multiplies by an integer known at compile time, got i * s}}
    %a = arith.muli %i, %s : index
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @square() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %d = arith.subi %i, %j : index
    // expected-error@+1 {{'arith.muli' multiplies by an integer known at compile time, got (i - j) * (i - j); a circle is a reach for each distance in rows, as in cmir/zoo/clear.mlir}}
    %a = arith.muli %d, %d : index
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @divisor(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'arith.floordivsi' divides by s, and nothing says that it is at least 1; state the fact 1 <= s}}
    %a = arith.floordivsi %i, %s : index
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @zero(%w: index = 0) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{'maskspec.mod' divides by a positive integer, the same for the whole sequence: known at compile time or a scalar; got 0}}
    %a = maskspec.mod %i, %w
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @divisor_in_fact(%s: index, %w: index = -2) {
  // expected-error@+1 {{'floordiv' divides by a positive integer, the same for the whole sequence: known at compile time or a scalar; got -2}}
  maskspec.assume s floordiv w <= rows
  maskspec.region @all rows [0, rows) (%i, %j) {
    %b = arith.cmpi sle, %j, %i : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @root(%s: index) {
  // expected-error@+1 {{'isqrt' is of a number known at compile time and not negative, got s}}
  maskspec.assume isqrt(s) <= rows
}

// -----

maskspec.spec @false_fact(%w: index = 3) {
  // expected-error@+1 {{this fact never holds: w < 2}}
  maskspec.assume w < 2
}

// -----

maskspec.spec @empty_table(%w: index = 0) {
  // expected-error@+1 {{constant table @half is empty: [1, 0)}}
  maskspec.constants @half for d in [1, w) : d
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = maskspec.lookup @half[%i]
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @long_table() {
  maskspec.constants @square for d in [0, 65) : d * d
  // expected-error@+1 {{@square has 65 entries and is indexed by i, which is not known at compile time; at most 64 entries: pass it as a free table instead}}
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = maskspec.lookup @square[%i]
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

maskspec.spec @another_order() {
  // expected-error@+1 {{a rule is normalized for the order in which tokens are stored; run --layout first}}
  maskspec.layout rows = residue(of = 2)
}

// -----

maskspec.spec @divisor_of_a_row(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %s = maskspec.lookup %t[%i]
    // expected-error@+1 {{'maskspec.mod' divides by a positive integer, the same for the whole sequence: known at compile time or a scalar; got t[i]}}
    %a = maskspec.mod %j, %s
    %b = arith.cmpi sle, %j, %a : index
    maskspec.visible %b
  }
}

// -----

// A fact that is too weak, and divisions in facts, guards and clauses.
maskspec.spec @weak(%s: index) {
  maskspec.assume 0 <= s
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'mod' divides by s, and nothing says that it is at least 1; state the fact 1 <= s}}
    maskspec.clause j mod s <= i
  }
}

// -----

maskspec.spec @in_a_fact(%s: index, %t: !maskspec.table<row>) {
  // expected-error@+1 {{'floordiv' divides by s + 1, and nothing says that it is at least 1; state the fact 1 <= s + 1}}
  maskspec.assume t[i] <= i floordiv (s + 1)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
