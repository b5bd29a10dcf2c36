// RUN: cm-opt --split-input-file --verify-diagnostics --extract-intervals --canonicalize-intervals --merge-slots --transpose --pack %s

// expected-error@+1 {{--pack makes a table of 'history', one entry per sequence, whose length is 'history_length', which names something else; rename one of the two}}
maskspec.spec @lengths(%history: index, %history_length: index) {
  maskspec.region @all rows [0, history) {
    maskspec.clause j < history_length
  }
}
