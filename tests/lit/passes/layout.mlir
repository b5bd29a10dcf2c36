// RUN: cm-opt --layout %s | filecheck %s

// A zig-zag shard: the Region is cut in two, each with one affine expression of the token; `rows` of the facts is the
// number of all tokens, four shards.
// CHECK-LABEL: maskspec.spec @zigzag() {
// CHECK-NEXT:    maskspec.assume rows * 4 == cols
// CHECK-NEXT:    maskspec.assume rows mod 2 == 0
// CHECK-NEXT:    maskspec.region @all_0 rows [0, rows floordiv 2) {
// CHECK-NEXT:      maskspec.clause j <= i + rows floordiv 2
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @all_1 rows [rows floordiv 2, rows) {
// CHECK-NEXT:      maskspec.clause j <= i + rows floordiv 2 * 5
// CHECK-NEXT:    }
// CHECK-NEXT:  }
maskspec.spec @zigzag() {
  maskspec.assume rows == cols
  maskspec.layout rows = zigzag(of = 4, rank = 1)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// Metadata keep the order of the tokens: of a shard, a table per row has an entry for every token, and facts about rows
// become facts about its entries. A guard is solved for the place.
// CHECK-LABEL: maskspec.spec @striped(%s: index, %t: !maskspec.table<free>) {
// CHECK-NEXT:    maskspec.assume for token in [s, rows * 2) : s <= t[token]
// CHECK-NEXT:    maskspec.nondecreasing t over [s, rows * 2)
// CHECK-NEXT:    maskspec.region @head rows [0, min(rows, s floordiv 2)) {
// CHECK-NEXT:      maskspec.clause j <= i * 2 + 1
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @tail rows [max(0, s floordiv 2), rows) {
// CHECK-NEXT:      maskspec.clause t[i * 2 + 1] <= j
// CHECK-NEXT:    }
maskspec.spec @striped(%s: index, %t: !maskspec.table<row>) {
  maskspec.layout rows = striped(of = 2, rank = 1)
  maskspec.assume for i in [s, rows) : s <= t[i]
  maskspec.nondecreasing t over [s, rows)
  maskspec.region @head rows [0, s) {
    maskspec.clause j <= i
  }
  maskspec.region @tail rows [s, rows) {
    maskspec.clause t[i] <= j
  }
}

// Columns: the rule is the disjunction over the pieces.
// CHECK-LABEL: maskspec.spec @gathered() {
// CHECK-NEXT:    maskspec.assume cols mod 2 == 0
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause j < cols floordiv 2 and j * 2 <= i
// CHECK-NEXT:      maskspec.clause cols floordiv 2 <= j and j * 2 - cols floordiv 2 * 2 + 1 <= i
// CHECK-NEXT:    }
maskspec.spec @gathered() {
  maskspec.layout cols = striped(of = 2)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// Patches: text in front keeps its place and its Region; the image's Region is the whole image, which stays one. A surface
// rule stays one, on the token of the row and on that of the column.
// CHECK-LABEL: maskspec.spec @patches(%text: index = 4) {
// CHECK-NEXT:    maskspec.assume rows == 28 and cols == rows
// CHECK-NEXT:    maskspec.assume 28 <= rows
// CHECK-NEXT:    maskspec.region @text rows [0, 4) {
// CHECK-NEXT:      maskspec.clause true
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @image rows [4, 28) (%i, %j) {
// CHECK:           %row = arith.subi
// CHECK-NEXT:      %later = arith.cmpi sle, %j, %row : index
// CHECK-NEXT:      maskspec.visible %later
maskspec.spec @patches(%text: index = 4) {
  maskspec.assume rows == 28 and cols == rows
  maskspec.layout rows = patch(grid = [4, 6], size = [2, 3], after = text)
  maskspec.region @text rows [0, text) {
    maskspec.clause true
  }
  maskspec.region @image rows [text, rows) (%i, %j) {
    %later = arith.cmpi sle, %j, %i : index
    maskspec.visible %later
  }
}

// A table: no Region keeps its rows together, so they are one, and each rule asks whose the token is.
// CHECK-LABEL: maskspec.spec @table(%s: index, %order: !maskspec.table<free>) {
// CHECK-NEXT:    maskspec.assume for place in [0, rows) : 0 <= order[place] and order[place] < rows
// CHECK-NEXT:    maskspec.assume for place in [0, cols) : 0 <= order[place] and order[place] < cols
// CHECK-NEXT:    maskspec.region @head_or_tail rows [0, rows) {
// CHECK-NEXT:      maskspec.clause order[i] < s and order[j] <= order[i]
// CHECK-NEXT:      maskspec.clause s <= order[i] and order[j] == order[i]
// CHECK-NEXT:    }
maskspec.spec @table(%s: index) {
  maskspec.layout rows, cols = table(name = order)
  maskspec.region @head rows [0, s) {
    maskspec.clause j <= i
  }
  maskspec.region @tail rows [s, rows) {
    maskspec.clause j == i
  }
}

// Residues on both axes: what a dilation sees is one interval, and the pieces that never meet are gone after
// --dnf-normalize.
// CHECK-LABEL: maskspec.spec @residue() {
// CHECK:         maskspec.region @all_0 rows [0, (rows + 1) floordiv 2) {
// CHECK-NEXT:      maskspec.clause {{.*}}j * 2{{.*}}
maskspec.spec @residue() {
  maskspec.layout rows, cols = residue(of = 2)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j) mod 2 == 0
  }
}

// Without a layout nothing changes.
// CHECK-LABEL: maskspec.spec @none() {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause j <= i
maskspec.spec @none() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
