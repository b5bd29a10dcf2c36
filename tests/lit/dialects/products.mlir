// RUN: cm-opt --split-input-file --verify-diagnostics %s

// A product has a factor that is known at compile time: one of two unknowns need not fit the integers of a kernel.

maskspec.spec @known(%s: index = 3, %u: index, %t: !maskspec.table<free>) {
  maskspec.constants @half [4, 2]
  maskspec.assume 3 * u <= rows and (s + 1) * u <= 2 * s * cols
  maskspec.assume exists d in [0, 1] : half[d] * t[i] + d * u <= i
  maskspec.assume for e in [0, s * u) : t[e] * s <= rows
  maskspec.nondecreasing t over [0, 2 * u)
  maskspec.region @all rows [s * u, 2 * s * u) {
    maskspec.clause s * t[i] <= j * half[1]
  }
}

// -----

maskspec.spec @clause(%u: index, %t: !maskspec.table<free>) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'*' multiplies by an integer known at compile time, got t[i] * t[i]}}
    maskspec.clause 2 * (t[i] * t[i]) == 2 * (t[j] * t[j])
  }
}

// -----

maskspec.spec @outer(%u: index, %t: !maskspec.table<free>) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'*' multiplies by an integer known at compile time, got u * (t[i] * t[i])}}
    maskspec.clause u * (t[i] * t[i]) == u * (t[j] * t[j])
  }
}

// -----

// Which entry of a constant table is read, nobody knows.
maskspec.spec @entry(%u: index) {
  maskspec.constants @half [4, 2]
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'*' multiplies by an integer known at compile time, got half[i] * j}}
    maskspec.clause half[i] * j <= u
  }
}

// -----

maskspec.spec @fact(%u: index, %v: index) {
  // expected-error@+1 {{'*' multiplies by an integer known at compile time, got u * v}}
  maskspec.assume rows == u * v
}

// -----

// The index of a fact ranges over what is known only with the metadata.
maskspec.spec @index(%u: index, %t: !maskspec.table<free>) {
  // expected-error@+1 {{'*' multiplies by an integer known at compile time, got e * u}}
  maskspec.assume for e in [0, 8) : t[e] <= e * u
}

// -----

maskspec.spec @ends(%u: index, %t: !maskspec.table<free>) {
  // expected-error@+1 {{'*' multiplies by an integer known at compile time, got u * u}}
  maskspec.assume for e in [0, u * u) : t[e] <= u
}

// -----

maskspec.spec @range(%u: index, %t: !maskspec.table<free>) {
  // expected-error@+1 {{'*' multiplies by an integer known at compile time, got u * rows}}
  maskspec.nondecreasing t over [0, u * rows)
}

// -----

maskspec.spec @guard(%u: index) {
  // expected-error@+1 {{'*' multiplies by an integer known at compile time, got u * u}}
  maskspec.region @all rows [0, u * u) {
  }
}

// -----

maskspec.spec @circle(%r: index) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'*' multiplies by an integer known at compile time, got (i - j) * (i - j); a circle is a reach for each distance in rows, as in cmir/zoo/clear.mlir}}
    maskspec.clause (i - j) * (i - j) < r
  }
}
