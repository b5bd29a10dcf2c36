// RUN: cm-opt --split-input-file --verify-diagnostics --layout %s

maskspec.spec @sizes() {
  // expected-error@+1 {{a patch has one size for each dimension of the grid: 2 and 1 given}}
  maskspec.layout rows, cols = patch(grid = [4, 4], size = [2])
}

// -----

maskspec.spec @too_large() {
  // expected-error@+1 {{a patch is at least 1 and at most the grid in every dimension; got 5 in patch(grid = [4, 4], size = [2, 5])}}
  maskspec.layout rows, cols = patch(grid = [4, 4], size = [2, 5])
}

// -----

maskspec.spec @before(%text: index = -1) {
  // expected-error@+1 {{a grid and its patches are at least 1 x 1, `after` at least 0, all below 2^30}}
  maskspec.layout rows, cols = patch(grid = [4, 4], size = [2, 2], after = text)
}

// -----

maskspec.spec @rank() {
  // expected-error@+1 {{'rank' is from 0 to of - 1; got zigzag(of = 4, rank = 4)}}
  maskspec.layout rows = zigzag(of = 4, rank = 4)
}

// -----

maskspec.spec @many() {
  // expected-error@+1 {{'of' is from 1 to 64: each part has Regions of its own; got residue(of = 65)}}
  maskspec.layout rows = residue(of = 65)
}

// -----

maskspec.spec @copies() {
  // expected-error@+1 {{these layouts need 4096 copies of rules, of every Region for each piece of rows and of columns; at most 1024}}
  maskspec.layout rows, cols = residue(of = 64)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// -----

maskspec.spec @no_place(%s: index) {
  maskspec.layout rows = striped(of = 2, rank = 0)
  // expected-error@+1 {{a shard has no place for every token that this fact speaks of: s <= i; leave it out}}
  maskspec.assume for i in [3, rows) : s <= i
}
