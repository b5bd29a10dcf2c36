// RUN: cm-opt --split-input-file --verify-diagnostics --check-regions %s
// RUN: not cm-opt --split-input-file --lower-intervals %s > %t
// RUN: filecheck %s < %t

// From facts that contradict one another everything could be proved: they are refused, the smallest set of them shown.

maskspec.spec @scalars(%history: index) {
  // expected-error@+1 {{the facts of @scalars contradict one another: no metadata of a mask with rows and columns satisfy them all, and from them anything could be proved}}
  maskspec.assume rows == cols
  // expected-note@+1 {{and this fact}}
  maskspec.assume rows < history
  maskspec.assume 0 <= history
  // expected-note@+1 {{and this fact}}
  maskspec.assume history < cols
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}

// -----

// An example of no rows is none: every fact about rows would hold of it.

maskspec.spec @entries(%start: !maskspec.table<row>) {
  // expected-error@+1 {{the facts of @entries contradict one another}}
  maskspec.assume start[i] <= i
  // expected-note@+1 {{and this fact}}
  maskspec.assume i < start[i]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @one() {
  // expected-error@+1 {{no metadata of a mask with rows and columns satisfy this fact of @one; from it anything could be proved}}
  maskspec.assume rows < 1
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}

// -----

// Facts of the candidates contradict each other, so that there are none: the fact that there are some is at fault too.

maskspec.spec @ranges(%history: index, %start: !maskspec.table<row>) {
  // expected-error@+1 {{the facts of @ranges contradict one another}}
  maskspec.assume 0 <= history and history < rows
  // expected-note@+1 {{and this fact}}
  maskspec.assume for i in [history, rows) : start[i] <= i
  // expected-note@+1 {{and this fact}}
  maskspec.assume for i in [history, rows) : i < start[i]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}

// -----

// A table that never falls, from 5 to 3.

maskspec.spec @monotone(%start: !maskspec.table<row>) {
  // expected-error@+1 {{the facts of @monotone contradict one another}}
  maskspec.assume rows >= 8
  // expected-note@+1 {{and this fact}}
  maskspec.nondecreasing start
  // expected-note@+1 {{and this fact}}
  maskspec.assume for i in [0, 2) : start[i] == 5
  // expected-note@+1 {{and this fact}}
  maskspec.assume for i in [4, 8) : start[i] == 3
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}

// -----

// Without candidates these facts are satisfied: they leave metadata, of few masks.

// CHECK: interval.table @few_rows
maskspec.spec @few(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : start[i] <= i
  maskspec.assume for i in [history, rows) : i < start[i]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
}
