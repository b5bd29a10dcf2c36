// RUN: cm-view %s --rows 8 | filecheck %s

// An interval in which the rule is asked pair by pair is not what a row sees: it says so.
maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - j) mod 3 == 0
    maskspec.clause j <= i and i - j < 2
  }
}

// CHECK:        i  01234567  columns that row i sees
// CHECK:        7  .a..a.ba  a [0, 8)?  b [6, 8)
// CHECK:        a  @all slot 0: [0, min(cols, i + 1)) where (i - j) mod 3 == 0
// CHECK-NEXT:   b  @all slot 1: [max(0, i - 1), min(cols, i + 1))
// CHECK-NEXT:   ?  only where the condition after 'where' holds
// CHECK:        j  rows that see column j
// CHECK-NEXT:   0  a [0, 8)?  b [0, 2)
// CHECK:        ?  only where the condition after 'where' holds
