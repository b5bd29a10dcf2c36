// RUN: cm-opt --split-input-file --verify-diagnostics %s

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  interval.region @all [0, rows) {
    // expected-error@+1 {{the ends of a span of a rows table are read at 'i' alone, not at 'j'}}
    interval.span [0, j) from "all.0"
  }
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis cols {
  interval.region @all [0, cols) {
    // expected-error@+1 {{the ends of a span of a cols table are read at 'j' alone, not at 'i'}}
    interval.span [0, rows) when i < s from "all.0"
  }
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  interval.region @all [0, rows) {
    // expected-error@+1 {{unknown name 'sx'; did you mean 's'?}}
    interval.span [0, sx) from "all.0"
  }
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  interval.region @all [0, rows) {
    // expected-error@+1 {{'exists' belongs in a surface rule, not in a span}}
    interval.span [0, i) when exists d in [0, 2] : d == i from "all.0"
  }
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows {
  // expected-error@+1 {{'i' has no meaning here: this expression is one number for the whole sequence}}
  interval.region @all [0, i) {
  }
}

// -----

maskspec.spec @m(%s: index) {}
// expected-error@+1 {{slots is the largest number of spans of a region: 1, not 2}}
interval.table @t of @m axis rows slots 2 {
  interval.region @all [0, rows) {
    interval.span [0, i) from "all.0"
  }
}

// -----

// expected-error@+1 {{no maskspec.spec @other stands beside this table}}
interval.table @t of @other axis rows {
}

// -----

// expected-error@+1 {{Expected one of 'cols', 'rows' in interval.table}}
interval.table @t of @m axis diagonal {
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows slots 1 {
  // expected-error@+1 {{fuse (0, 1): a pair of slots a < b of this region, which has 1}}
  interval.region @all [0, rows) fuse [(0, 1)] {
    interval.span [0, i) from "all.0"
  }
}

// -----

// Slot 0 may be united with slot 1 and then reach slot 2, so 1 and 2 have to be compared as well.
maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows slots 3 {
  // expected-error@+1 {{fuse needs (1, 2) too: a slot below both may be united with slot 1 and reach 2}}
  interval.region @all [0, rows) fuse [(0, 1), (0, 2)] {
    interval.span [0, 10) from "all.0"
    interval.span [2, 4) from "all.1"
    interval.span [6, 8) from "all.2"
  }
}

// -----

maskspec.spec @m(%s: index) {}
interval.table @t of @m axis rows slots 2 {
  interval.region @all [0, rows) {
    interval.span [0, 4) from "all.0"
    // expected-error@+2 {{Expected 'from': the clauses that the span came from}}
    interval.span [0, 4)
  }
}
