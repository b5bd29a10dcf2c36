// RUN: cm-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{a packed spec has no Regions: its rule is in its interval tables}}
maskspec.spec @m packed (%cu_rows: !maskspec.table<free>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// -----

maskspec.spec @m packed (%cu_rows: !maskspec.table<free>) {}
interval.table @t of @m axis rows where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
  // expected-error@+1 {{a region of a rows table holds indices 'i': its ends do not depend on 'j'}}
  interval.region @all [cu_rows[s], j) {
  }
}

// -----

maskspec.spec @m packed (%cu_rows: !maskspec.table<free>, %s: index) {}
// expected-error@+1 {{'s' cannot name an index: it is metadata of the spec}}
interval.table @t of @m axis rows where s = first k in [0, cu_rows_length - 1) : i < cu_rows[k + 1] {
}

// -----

maskspec.spec @m packed (%cu_rows: !maskspec.table<free>) {}
// expected-error@+1 {{unknown name 'cu_row'; did you mean 'cu_rows'?}}
interval.table @t of @m axis rows where s = first s in [0, cu_rows_length - 1) : i < cu_row[s + 1] {
}

// -----

// Lengths and searches are for packed specs.
maskspec.spec @m(%ends: !maskspec.table<free>) {
  // expected-error@+1 {{unknown name 'ends_length'; known here: cols, ends, i, j, rows}}
  maskspec.assume 1 <= ends_length
}

// -----

maskspec.spec @m(%ends: !maskspec.table<free>) {
  // expected-error@+1 {{'first' is what the compiler makes of a monotone table; a spec cannot say it}}
  maskspec.assume 0 <= i - s where s = first s in [0, 4) : i < ends[s]
}
