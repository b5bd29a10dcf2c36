// RUN: cm-opt --split-input-file --verify-diagnostics --check-regions %s

// Overlapping Regions, with numbers where they do.

maskspec.spec @overlap(%history: index) {
  maskspec.assume 0 <= history and history <= rows
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{Regions @history and @candidate overlap, for example where history=3, rows=4}}
  maskspec.region @candidate rows [history - 1, rows) {
    maskspec.clause j <= i
  }
}

// -----

maskspec.spec @missing_fact(%a: index, %b: index) {
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @first rows [0, a) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{Regions @first and @second overlap, for example where a=8, b=-2, rows=7}}
  maskspec.region @second rows [b, rows) {
    maskspec.clause j <= i
  }
}

// -----

maskspec.spec @constants() {
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @first rows [0, 3) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{Regions @first and @second overlap, for example where rows=5}}
  maskspec.region @second rows [2, 5) {
    maskspec.clause j <= i
  }
}

// -----

// They are: both ends are rows floordiv (m * n).
maskspec.spec @unknown(%m: index, %n: index) {
  maskspec.assume 1 <= m and 1 <= n
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @first rows [0, rows floordiv m floordiv n) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{cannot prove that Regions @first and @second are disjoint; state the fact that keeps them apart}}
  maskspec.region @second rows [rows floordiv n floordiv m, rows) {
    maskspec.clause j <= i
  }
}

// -----

// The numbers satisfy all facts, those about quotients by a scalar too, which z3 knows little of.
maskspec.spec @quotients(%s: index, %g: index) {
  maskspec.assume 12 <= g and s mod g == 5 and s floordiv g == 7
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @first rows [0, s) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{Regions @first and @second overlap, for example where g=12, rows=61, s=89}}
  maskspec.region @second rows [60, rows) {
    maskspec.clause j <= i
  }
}

// -----

// And so s is 7 * g + 5, at least 89.
maskspec.spec @by_quotients(%s: index, %g: index) {
  maskspec.assume 12 <= g and s mod g == 5 and s floordiv g == 7
  maskspec.region @first rows [0, 89) {
    maskspec.clause j <= i
  }
  maskspec.region @second rows [s, rows) {
    maskspec.clause j <= i
  }
}

// -----

maskspec.spec @remainders(%s: index, %g: index) {
  maskspec.assume 1 <= g and s mod g == 5 and g mod s == 7 and 1 <= s
  // expected-note@+1 {{the other Region is here}}
  maskspec.region @first rows [0, s) {
    maskspec.clause j <= i
  }
  // expected-error@+1 {{Regions @first and @second overlap, for example where g=7, rows=10, s=12}}
  maskspec.region @second rows [9, rows) {
    maskspec.clause j <= i
  }
}

// -----

// A mask that shows nothing would be a surprise.
// expected-error@+1 {{@no_region has no Region, so no row would see anything; give its rows a rule: maskspec.region @all rows [0, rows) (%i, %j) { .. }, in Python spec.region("all", 0, spec.rows, visible=..)}}
maskspec.spec @no_region(%n: index) {
  maskspec.assume 0 <= n
}
