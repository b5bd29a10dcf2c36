// RUN: cm-opt --explain-slots %s | filecheck %s

// CHECK:      @hstu by rows: 2 slots
// CHECK-NEXT:   Region @history [0, history)
// CHECK-NEXT:     slot 0: [0, i + 1) from history.0
// CHECK-NEXT:   Region @candidate [history, rows)
// CHECK-NEXT:     slot 0: [0, history) from candidate.0
// CHECK-NEXT:     slot 1: [start[i], i + 1) from candidate.1
// CHECK-NEXT:     slot 0 and slot 1 stay apart: there is a gap between them at history=5, i=6, start[6]=6
// CHECK-NEXT: @hstu by cols: 1 slot
// CHECK-NEXT:   Region @all [0, cols)
// CHECK-NEXT:     slot 0: [j, select(j < history, rows, first i in [history, rows) : j < start[i])) from history.0, candidate.0, candidate.1
// CHECK-NEXT:     [j, history) and [history, rows) when j < history are one slot: proved: they touch or overlap wherever both hold something
// CHECK-NEXT:     [j, history) and [max(history, j), first i in [history, rows) : j < start[i]) are one slot: proved: never do both hold something, given history <= start[i] for i in [history, rows)
// CHECK-NEXT:     [history, rows) when j < history and [max(history, j), first i in [history, rows) : j < start[i]) are one slot: proved: never do both hold something, given history <= start[i] for i in [history, rows)
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [history, rows)
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) {
    maskspec.clause j < history
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-NEXT: @strided by rows: unbounded, since '(i - j) mod 4' repeats along j: (i - j) mod 4 == 0
// CHECK-NEXT: @strided by cols: unbounded, since '(i - j) mod 4' repeats along i: (i - j) mod 4 == 0
maskspec.spec @strided() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause (i - j) mod 4 == 0
  }
}

// CHECK-NEXT: @open by rows: 2 slots
// CHECK-NEXT:   Region @all [0, rows)
// CHECK-NEXT:     slot 0: [max(0, a[i]), min(cols, b[i])) from all.0
// CHECK-NEXT:     slot 1: [0, min(cols, i + 1)) from all.1
// CHECK-NEXT:     slot 0 and slot 1 stay apart: there is a gap between them at {{.*}}a[{{.*}}
maskspec.spec @open(%a: !maskspec.table<row>, %b: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause a[i] <= j and j < b[i]
    maskspec.clause j <= i
  }
}
