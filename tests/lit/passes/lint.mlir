// RUN: cm-opt --split-input-file --verify-diagnostics --lint %s
// RUN: not cm-opt --split-input-file --lint %s > %t.mlir 2> %t
// RUN: filecheck %s < %t.mlir
// RUN: filecheck %s --check-prefix=TEXT < %t

// Nothing fails, and the IR stays as it is.
// CHECK: maskspec.spec @rules

// TEXT:      lint.mlir:20:5: warning: this part of the rule of Region @implied changes nothing: the rest of the rule implies it
// TEXT-NEXT:     %both = arith.andi %causal, %known : i1
// TEXT-NEXT: {{^    \^$}}

maskspec.spec @rules(%history: index, %w: index = 4, %start: !maskspec.table<row>) {
  maskspec.assume 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.region @implied rows [0, history) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    %known = arith.cmpi slt, %j, %history : index
    // expected-warning@below {{this part of the rule of Region @implied changes nothing: the rest of the rule implies it}}
    %both = arith.andi %causal, %known : i1
    %v = arith.ori %causal, %both : i1
    maskspec.visible %v
  }
  maskspec.region @clauses rows [history, rows) {
    // expected-warning@below {{this part of the rule of Region @clauses changes nothing: it never holds}}
    maskspec.clause start[i] <= j and j <= i and i < j
    maskspec.clause j < history
    // Whatever the static is.
    // expected-warning@below {{this part of the rule of Region @clauses changes nothing: the rest of the rule implies it}}
    maskspec.clause j < history and i - j < w
    maskspec.clause start[i] <= j and j <= i
  }
}

// -----

// Of two parts that say the same, one has to stay.

maskspec.spec @twice() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
    // expected-warning@below {{this part of the rule of Region @all changes nothing}}
    maskspec.clause j < i + 1
  }
}

// -----

// By the facts alone: no row lies past its own segment.

maskspec.spec @by_facts(%start: !maskspec.table<row>) {
  maskspec.assume start[i] <= i
  maskspec.region @all rows [0, rows) {
    // expected-warning@below {{this part of the rule of Region @all changes nothing: it never holds}}
    maskspec.clause i < start[i] and j == 0
    maskspec.clause start[i] <= j and j <= i
  }
}

// -----

// With the static as it is, the second part says nothing; with another it would: no warning.

maskspec.spec @switched_off(%w: index = 0) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
    maskspec.clause i < j and j - i <= w
  }
}

// -----

maskspec.spec @regions(%history: index) {
  maskspec.assume 0 <= history and history <= rows
  // expected-warning@below {{Region @tail is always empty: the facts leave no row in [rows, rows + history)}}
  maskspec.region @tail rows [rows, rows + history) {
    maskspec.clause j < history
  }
  // expected-warning@below {{no row of Region @contradiction sees anything: its rule never holds}}
  maskspec.region @contradiction rows [0, history) {
    maskspec.clause j < i and i < j
  }
  // Said in so many words.
  maskspec.region @nothing rows [history, rows) (%i, %j) {
    %v = arith.constant false
    maskspec.visible %v
  }
}

// -----

// A table that only relates to another that is read is needed; a number that only facts speak of is not.

// expected-warning@below {{nothing that @metadata shows depends on 'unused'; leave it out}}
maskspec.spec @metadata(%unused: index, %start: !maskspec.table<row>, %segment: !maskspec.table<row>) {
  maskspec.assume 0 <= unused and unused <= rows
  maskspec.assume segment[i] <= start[i]
  // expected-warning@below {{this fact says nothing: it always holds}}
  maskspec.assume start[i] <= start[i] + 1
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i
  }
}

// -----

// Columns that no row ever sees, said where they are excluded. What some metadata hide is no mistake: padding.

maskspec.spec @padded(%length: index, %w: index = 4) {
  maskspec.assume 0 <= length and length <= cols
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < length and j < i + w
  }
}

// -----

maskspec.spec @off_by_one(%length: index) {
  maskspec.assume 0 <= length and length < cols
  maskspec.region @all rows [0, rows) {
    // expected-warning@below {{no row of @off_by_one ever sees the last column, whatever its metadata are}}
    maskspec.clause j < length
  }
}

// -----

maskspec.spec @strict() {
  maskspec.assume rows == cols
  maskspec.region @all rows [0, rows) (%i, %j) {
    %two = arith.constant 2 : index
    %least = arith.constant -3 : index
    %next = arith.addi %j, %two : index
    %late = arith.cmpi sle, %least, %j : index
    // expected-warning@below {{no row of @strict ever sees any of the last 2 columns, whatever its metadata are}}
    %before = arith.cmpi slt, %next, %i : index
    %v = arith.andi %late, %before : i1
    maskspec.visible %v
  }
}

// -----

maskspec.spec @gap(%length: index) {
  maskspec.assume 0 <= length and length <= cols
  // expected-warning@below {{no row of @gap ever sees column 4, whatever its metadata are}}
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < 4 and j < length
    maskspec.clause 4 < j and j < length
  }
}

// -----

// expected-warning@below {{no row of @everywhere ever sees any of the columns 0 to 1, whatever its metadata are}}
maskspec.spec @everywhere(%history: index) {
  maskspec.assume 0 <= history and history <= rows
  maskspec.region @history rows [0, history) {
    maskspec.clause 2 <= j and j <= i
  }
  maskspec.region @rest rows [history, rows) {
    maskspec.clause 1 < j and j < history
  }
}

// -----

// Short masks show all of their columns.

maskspec.spec @long() {
  maskspec.region @all rows [0, rows) {
    // expected-warning@below {{no row of @long ever sees the last column of a mask of at least 32 rows and columns, whatever its metadata are}}
    maskspec.clause j < max(4, cols - 1)
  }
}

// -----

maskspec.spec @sinks() {
  maskspec.region @all rows [0, rows) {
    // expected-warning@below {{no row of @sinks ever sees column 4 or any after it, whatever its metadata are}}
    maskspec.clause j < 4 and j <= i
  }
}

// -----

// What can only be read with the values of the statics is left alone.

maskspec.spec @static_ends(%r: index = 2) {
  maskspec.constants @half for d in [0, r + 1) : r - d
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
    maskspec.clause j <= i and half[1] <= j
  }
}

// -----

// expected-error@+2 {{no metadata of a mask with rows and columns satisfy this fact of @vacuous}}
maskspec.spec @vacuous(%history: index) {
  maskspec.assume history < history
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
