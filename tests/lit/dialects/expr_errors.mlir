// RUN: cm-opt --split-input-file --verify-diagnostics %s

// What the parser of expressions says, at the text that is wrong.

maskspec.spec @sorts(%n: index) {
  // expected-error@+1 {{expected a condition, got an integer: n + 1}}
  maskspec.assume n + 1
}

// -----

maskspec.spec @operands(%n: index) {
  // expected-error@+1 {{'+' takes an integer, got a condition: n < 3}}
  maskspec.assume 1 + (n < 3) < 4
}

// -----

maskspec.spec @arity(%n: index) {
  // expected-error@+1 {{'select' takes 3 operands, got 2}}
  maskspec.assume select(n < 3, n) < 4
}

// -----

maskspec.spec @none(%n: index) {
  // expected-error@+1 {{'min' takes at least one operands, got 0}}
  maskspec.assume min() < 4
}

// -----

maskspec.spec @equality(%n: index) {
  // expected-error@+1 {{in an expression: equality is written ==}}
  maskspec.assume n = 4
}

// -----

maskspec.spec @keyword(%n: index) {
  // expected-error@+1 {{'when' is a keyword of the expression language}}
  maskspec.assume when < 4
}

// -----

maskspec.spec @nothing(%n: index) {
  // expected-error@+1 {{expected an expression: a number, a name, or '('}}
  maskspec.assume n < ]
}

// -----

maskspec.spec @division(%n: index) {
  // expected-error@+1 {{division in an expression rounds down: write floordiv}}
  maskspec.assume n / 2 < 4
}

// -----

maskspec.spec @unequal_conditions(%n: index) {
  // expected-error@+1 {{'==' takes an integer, got a condition: n < 4}}
  maskspec.assume n != (n < 4)
}

// -----

maskspec.spec @remainder(%n: index) {
  // expected-error@+1 {{a remainder in an expression is written mod}}
  maskspec.assume i % 2 <= 3 and 0 <= n
}

// -----

maskspec.spec @remainder_of_name(%n: index) {
  // expected-error@+1 {{a remainder in an expression is written mod}}
  maskspec.assume i %n <= 3
}

// -----

maskspec.spec @inside(%n: index) {
  // expected-error@+1 {{a remainder in an expression is written mod}}
  maskspec.assume (i %2) <= 3
}

// -----

maskspec.spec @negation(%n: index) {
  // expected-error@+1 {{in place of '!' write not}}
  maskspec.assume !(n < 3)
}

// -----

maskspec.spec @ampersands(%n: index) {
  // expected-error@+1 {{in place of '&' write and}}
  maskspec.assume n < 3 && 0 <= n
}

// -----

maskspec.spec @bar(%n: index) {
  // expected-error@+1 {{in place of '|' write or; in place of an or of clauses, a second clause}}
  maskspec.assume n < 3 | 0 <= n
}

// -----

maskspec.spec @percent(%n: index) {
  // expected-error@+1 {{names stand without % in expressions}}
  maskspec.assume 0 <= %n
}
