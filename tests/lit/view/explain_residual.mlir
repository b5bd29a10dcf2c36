// RUN: cm-opt --explain=6,1 --rows 8 %s | filecheck %s
// RUN: cm-opt --explain=1,0 --rows 8 %s | filecheck %s --check-prefix=NONE

// What no interval says is asked pair by pair; rows of no Region see nothing.
maskspec.spec @strided() {
  maskspec.region @late rows [4, rows) {
    maskspec.clause j <= i and (i - j) mod 3 == 0
  }
}

// CHECK:      @strided, row 6, column 1: not visible
// CHECK:        no   (i - j) mod 3 == 0  2 == 0
// CHECK:        slot 0  [0, 7), '(i - j) mod 3 == 0' fails  = [0, min(cols, i + 1)) residual (i - j) mod 3 == 0  from late.0

// NONE:       @strided, row 1, column 0: not visible
// NONE-NEXT:    no Region holds row 1: it sees nothing
// NONE-NEXT:    columns that row 1 sees: none
