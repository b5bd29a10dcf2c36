// RUN: cm-opt --split-input-file --verify-diagnostics %s

// A name that is not known comes with the nearest that is, whatever it should have named.

// expected-error@+1 {{unknown operation 'maskspec.sepc'; did you mean 'maskspec.spec'?}}
maskspec.sepc @m() {}

// -----

// expected-error@+1 {{unknown type 'indx'; did you mean 'index'?}}
maskspec.spec @m(%s: indx) {}

// -----

// expected-error@+1 {{unknown type 'maskspec.tabel'; did you mean 'maskspec.table'?}}
maskspec.spec @m(%s: !maskspec.tabel<row>) {}

// -----

// expected-error@+1 {{a table is per row, col or free; got 'rwo'; did you mean 'row'?}}
maskspec.spec @m(%s: !maskspec.table<rwo>) {}

// -----

maskspec.spec @m(%start: !maskspec.table<row>) {
  // expected-error@+1 {{unknown name 'strat'; did you mean 'start'?}}
  maskspec.nondecreasing strat
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{unknown name 'rwos'; did you mean 'rows'?}}
  maskspec.region @all rows [0, rwos) {}
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{unknown function 'mni'; did you mean 'min'?}}
    maskspec.clause j <= mni(i, 3)
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{unknown function 'argmax'; did you mean 'max'?}}
    maskspec.clause j <= argmax(i, 3)
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{unknown function 'f'; they are min, max, abs, isqrt, select}}
    maskspec.clause j <= f(i)
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{expected a condition, got an integer: j; did you mean 'mod'?}}
    maskspec.clause j modd 3 == 0
  }
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{expected a condition, got an integer: exist; did you mean 'exists'?}}
  maskspec.assume exist t in [0, 3] : rows == t
}

// -----

maskspec.spec @m(%start: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{use of undefined value '%strat'; did you mean '%start'?}}
    %s = maskspec.lookup %strat[%i]
    %v = arith.cmpi sle, %s, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{Unknown comparison mnemonic: sgee; did you mean 'sge'?}}
    %v = arith.cmpi sgee, %i, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{unknown order 'ptach'; did you mean 'patch'?}}
  maskspec.layout rows = ptach(grid = [4], size = [2])
}

// -----

maskspec.spec @m() {
  // expected-error@+1 {{'patch' takes grid, size, after; got 'gird'; did you mean 'grid'?}}
  maskspec.layout rows = patch(gird = [4], size = [2])
}
