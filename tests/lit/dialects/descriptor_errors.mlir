// RUN: cm-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{a mask needs the slots of a bounded axis, or a hull and a pair, and not both}}
descriptor.preprocess @p of @m () {
}

// -----

// expected-error@+1 {{facts are numbered from 1 in order, got [2]}}
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  descriptor.fact 2 "true" over scalar {
    %p = arith.constant true
    descriptor.holds %p
  }
}

// -----

// expected-error@+1 {{a preprocess kernel holds slots or a hull and a pair, and facts, found 'arith.constant'}}
descriptor.preprocess @p of @m () {
  %0 = arith.constant 0 : index
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}

// -----

// expected-error@+1 {{'b); import os #' cannot name metadata: it is no identifier (letters, digits, _)}}
"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = ["b); import os #"]}> ({
^bb0(%x: index):
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}) : () -> ()

// -----

// expected-error@+1 {{the preprocess kernel needs one name for each metadatum}}
"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = ["a"]}> ({
^bb0(%x: index, %y: index):
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}) : () -> ()

// -----

descriptor.preprocess @p of @m () {
  // expected-error@+1 {{slots are computed at one index and end in 'descriptor.endpoints'}}
  descriptor.slots rows {
    descriptor.endpoints
  }
}

// -----

descriptor.preprocess @p of @m () {
  // expected-error@+1 {{slots are computed at one index and end in 'descriptor.endpoints'}}
  descriptor.slots rows (%i) {
    %0 = arith.constant 0 : index
  }
}

// -----

descriptor.preprocess @p of @m () {
  // expected-error@+1 {{Expected one of 'cols', 'rows' in descriptor.slots}}
  descriptor.slots diagonals (%i) {
    descriptor.endpoints
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  // expected-error@+1 {{a fact over rows, columns or entries binds one index, a scalar fact none}}
  descriptor.fact 1 "true" over row {
    %p = arith.constant true
    descriptor.holds %p
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  // expected-error@+1 {{a fact over rows, columns or entries binds one index, a scalar fact none}}
  descriptor.fact 1 "true" over scalar (%i) {
    %p = arith.constant true
    descriptor.holds %p
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  // expected-error@+1 {{a fact ends in 'descriptor.holds'}}
  descriptor.fact 1 "true" over scalar {
    %p = arith.constant true
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    // expected-error@+1 {{a search binds one index and ends in 'descriptor.holds'}}
    %r = descriptor.first %k in [%i, %i) {
      %p = arith.constant true
    }
    descriptor.endpoints [%i, %r)
  }
}

// -----

descriptor.preprocess @p of @m (%s: index) {
  descriptor.slots rows (%i) {
    // expected-error@+1 {{each slot has two ends and its origins}}
    "descriptor.endpoints"(%i) <{origins = [["a.0"]]}> : (index) -> ()
  }
}

// -----

descriptor.preprocess @p of @m (%t: !maskspec.table<row>) {
  descriptor.slots rows (%i) {
    // expected-error@+1 {{operand is used with type index, but has been previously used or defined with type !maskspec.table<row>}}
    descriptor.endpoints [%i, %t)
  }
}

// -----

descriptor.preprocess @p of @m (%s: index) {
  descriptor.slots rows (%i) {
    // expected-error@+1 {{index should be of base attribute maskspec.table}}
    %n = descriptor.length %s
    descriptor.endpoints [%i, %n)
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  descriptor.fact 1 "true" over scalar {
    %n = maskspec.rows
    // expected-error@+1 {{operand is used with type i1, but has been previously used or defined with type index}}
    descriptor.holds %n
  }
}

// -----

// expected-error@+1 {{an axis has its slots once}}
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}

// -----

"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = []}> ({
  // expected-error@+1 {{slots are of rows or cols, got 'diagonals'}}
  "descriptor.slots"() <{axis = "diagonals"}> ({
  ^bb0(%i: index):
    descriptor.endpoints
  }) : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{metadata are of type index or !maskspec.table<...>}}
descriptor.preprocess @p of @m (%s: f32) {
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}

// -----

// expected-error@+1 {{two metadata have one name}}
"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = ["a", "a"]}> ({
^bb0(%x: index, %y: index):
  descriptor.slots rows (%i) {
    descriptor.endpoints
  }
}) : () -> ()

// -----

"descriptor.preprocess"() <{sym_name = "p", spec = "m", names = []}> ({
  // expected-error@+1 {{slots are computed at one index and end in 'descriptor.endpoints'}}
  "descriptor.slots"() <{axis = "rows"}> ({
  ^bb0(%i: f32):
    descriptor.endpoints
  }) : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{a mask that is tested by bits has one hull and one pair}}
descriptor.preprocess @p of @m () {
  descriptor.hull (%i) {
    descriptor.endpoints [%i, %i)
  }
}

// -----

// expected-error@+1 {{a mask needs the slots of a bounded axis, or a hull and a pair, and not both}}
descriptor.preprocess @p of @m () {
  descriptor.slots cols (%j) {
    descriptor.endpoints [%j, %j)
  }
  descriptor.hull (%i) {
    descriptor.endpoints [%i, %i)
  }
  descriptor.pair (%i, %j) {
    %p = arith.cmpi slt, %i, %j : index
    descriptor.holds %p
  }
}

// -----

descriptor.preprocess @p of @m () {
  // expected-error@+1 {{a hull is computed at one index and ends in 'descriptor.endpoints' of one slot}}
  descriptor.hull (%i) {
    descriptor.endpoints [%i, %i) [%i, %i)
  }
  descriptor.pair (%i, %j) {
    %p = arith.cmpi slt, %i, %j : index
    descriptor.holds %p
  }
}

// -----

descriptor.preprocess @p of @m () {
  descriptor.hull (%i) {
    descriptor.endpoints [%i, %i)
  }
  // expected-error@+1 {{a pair binds a row and a column and ends in 'descriptor.holds'}}
  descriptor.pair (%i) {
    %p = arith.cmpi slt, %i, %i : index
    descriptor.holds %p
  }
}
