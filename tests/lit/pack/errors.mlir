// RUN: cm-opt --split-input-file --verify-diagnostics --extract-intervals --canonicalize-intervals --merge-slots --transpose --pack %s

// A fact that relates the entries of a shared table to one sequence would have to hold for each pair.
// expected-error@+1 {{--pack shares a free table among all sequences, so no fact may relate its entries to one sequence: 'limit[e] <= rows for e in [0, 4)'; declare the table per row or per column}}
maskspec.spec @relates(%limit: !maskspec.table<free>) {
  maskspec.assume for e in [0, 4) : limit[e] <= rows
  maskspec.region @all rows [0, rows) {
    maskspec.clause j < limit[i]
  }
}

// -----

// expected-error@+1 {{--pack makes a table of 'history', one entry per sequence, whose length is 'history_length', which names something else; rename one of the two}}
maskspec.spec @lengths(%history: index, %history_length: index) {
  maskspec.region @all rows [0, history) {
    maskspec.clause j < history_length
  }
}
