// RUN: cm-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{Expected one of 'dkv', 'dq', 'forward' in attention.kernel}}
attention.kernel @k backward of @p {
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
    // expected-error@+1 {{visibility is tested on an axis, for a number of slots, unrolled or live}}
    attention.visible axis rows slots -1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

attention.kernel @k forward of @p {
  attention.tiles partial schedule rows {
    // expected-error@+1 {{visibility is tested on an axis, for a number of slots, unrolled or live}}
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
