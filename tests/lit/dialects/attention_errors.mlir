// RUN: cm-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{Expected one of 'backward', 'dkv', 'dq', 'forward' in attention.kernel}}
attention.kernel @k sideways of @p {
}

// -----

// expected-error@+1 {{a dkv kernel walks the cols schedule}}
attention.kernel @k dkv of @p {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

// expected-error@+1 {{a kernel walks its partial tiles, then its full tiles}}
attention.kernel @k dq of @p {
  attention.tiles full schedule rows {
  }
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
}

// -----

// expected-error@+1 {{Region 'body' at position 0 expected a single block, but got 0 blocks}}
attention.kernel @k dq of @p {
}

// -----

attention.kernel @k forward of @p {
  // expected-error@+1 {{partial tiles test visibility once, full tiles not at all}}
  attention.tiles partial schedule rows {
  }
  attention.tiles full schedule rows {
  }
}

// -----

attention.kernel @k forward of @p {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  // expected-error@+1 {{partial tiles test visibility once, full tiles not at all}}
  attention.tiles full schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
}

// -----

attention.kernel @k forward of @p {
  attention.tiles partial schedule rows {
    // expected-error@+1 {{visibility is tested by bits, or on an axis for a number of slots: unrolled, live, words, live words}}
    attention.visible axis rows slots -1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

attention.kernel @k forward of @p {
  attention.tiles partial schedule rows {
    // expected-error@+1 {{visibility is tested by bits, or on an axis for a number of slots: unrolled, live, words, live words}}
    "attention.visible"() <{axis = "diagonals", slots = #builtin.int<1>, mode = "unrolled"}> : () -> ()
  }
  attention.tiles full schedule rows {
  }
}

// -----

// expected-error@+1 {{'attention.visible' expects parent op 'attention.tiles'}}
attention.visible axis rows slots 1 unrolled

// -----

// expected-error@+1 {{a kernel walks its partial tiles, then its full tiles}}
"attention.kernel"() <{sym_name = "k", role = "forward", preprocess = "p"}> ({
  "attention.tiles"() <{state = "empty", schedule = "rows"}> ({
  }) : () -> ()
}) : () -> ()

// -----

attention.kernel @k forward of @p {
  attention.tiles partial schedule rows {
    // expected-error@+1 {{visibility is tested by bits, or on an axis for a number of slots: unrolled, live, words, live words}}
    "attention.visible"() <{axis = "rows", slots = #builtin.int<1>, mode = "bits"}> : () -> ()
  }
  attention.tiles full schedule rows {
  }
}

// -----

// expected-error@+1 {{bits serve all kernels of a mask or none}}
attention.tests of @m forward bits, dq bits, dkv cols

// -----

// expected-error@+1 {{forward, dq, dkv each test one of rows, cols, bits}}
"attention.tests"() <{spec = "m", chosen = ["rows", "rows"]}> : () -> ()

// -----

maskspec.spec @m(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i < evict[j]
  }
}
interval.table @m_rows of @m axis rows {
  interval.region @all [0, rows) {
    interval.span [0, cols) residual i < evict[j] because "no reason" from "all.0"
  }
}
// expected-error@+1 {{dkv tests rows, which no number of intervals says}}
attention.tests of @m forward cols, dq cols, dkv rows

// -----

// expected-error@+1 {{one table serves both axes only if both have as many slots; they have {}}}
attention.tests of @m forward bits, dq bits, dkv bits symmetric
