// RUN: cm-opt --split-input-file --verify-diagnostics %s

// A missing brace is reported where it is missed: at the op that stands too deep, or at the end of the text.

maskspec.spec @region_in_region() {
  maskspec.region @first rows [0, 4) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  // expected-error@+1 {{'maskspec.region' cannot stand inside 'maskspec.region', which begins at 6:3: is a '}' missing?}}
  maskspec.region @second rows [4, rows) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @visible_in_exists() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %e = maskspec.exists %d in [0, 3] {
      %p = arith.cmpi sle, %j, %i : index
      maskspec.yield %p
    // expected-error@+1 {{'maskspec.visible' cannot stand inside 'maskspec.exists', which begins at 20:10: is a '}' missing?}}
    maskspec.visible %e
  }
}

// -----

maskspec.spec @first() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
// expected-error@+1 {{'maskspec.spec' cannot stand inside 'maskspec.spec', which begins at 30:1: is a '}' missing?}}
maskspec.spec @second() {
}

// -----

maskspec.spec @parenthesis() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{expected an operation or '}'}}
    maskspec.clause j <= i)
  }
}

// -----

// An op whose parent is nowhere around it is another mistake.
// expected-error@+1 {{'maskspec.clause' expects parent op 'maskspec.region'}}
maskspec.clause j <= i

// -----

maskspec.spec @end_of_file() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
// expected-error@+1 {{expected '}': the '{' of 'maskspec.region' at 56:39 is not closed}}
