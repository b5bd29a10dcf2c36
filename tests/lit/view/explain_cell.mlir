// RUN: cm-opt --explain=9,8 --rows 14 --meta history=7 --meta start=0,0,0,0,0,0,0,7,7,9,9,9,12,12 %s | filecheck %s
// RUN: cm-opt --explain 9,9 --rows 14 --meta history=7 --meta start=0,0,0,0,0,0,0,7,7,9,9,9,12,12 %s | filecheck %s --check-prefix=SEEN
// RUN: cm-opt --lower-intervals --explain=3,5 --rows 14 --meta history=7 --meta start=0,0,0,0,0,0,0,7,7,9,9,9,12,12 %s | filecheck %s --check-prefix=HISTORY
// RUN: cm-opt --explain=2,0 --seed 3 %s 2>&1 | filecheck %s --check-prefix=DRAWN
// RUN: not cm-opt --explain=14,0 --rows 14 %s 2>&1 | filecheck %s --check-prefix=OUTSIDE
// RUN: not cm-opt --explain=1,1 --rows 9 --meta history=20 %s 2>&1 | filecheck %s --check-prefix=FACT
// RUN: not cm-opt --explain=1,1 --rows nine %s 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not cm-opt --rows 9 %s 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not cm-opt --explain=1,1 --meta history %s 2>&1 | filecheck %s --check-prefix=FORM
// RUN: cm-opt --explain merge-slots | filecheck %s --check-prefix=PASS

// A row and a column are told apart from the name of a pass; the source of every clause is named.
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [history, rows)
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) (%i, %j) {
    %in_history = arith.cmpi slt, %j, %history : index
    %first = maskspec.lookup %start[%i]
    %after = arith.cmpi sle, %first, %j : index
    %causal = arith.cmpi sle, %j, %i : index
    %own = arith.andi %after, %causal : i1
    %visible = arith.ori %in_history, %own : i1
    maskspec.visible %visible
  }
}

// CHECK:      @hstu, row 9, column 8: not visible
// CHECK-NEXT:   Region @candidate, rows [history, rows) = [7, 14)
// CHECK-NEXT:     clause candidate.0 fails  ({{.*}}explain_cell.mlir:21)
// CHECK-NEXT:       no   j < history  8 < 7
// CHECK-NEXT:     clause candidate.1 fails  ({{.*}}explain_cell.mlir:23-24)
// CHECK-NEXT:       no   start[i] <= j  9 <= 8
// CHECK-NEXT:       yes  j <= i         8 <= 9
// CHECK-NEXT:   columns that row 9 sees:
// CHECK-NEXT:     slot 0  [0, 7)  = [0, history)  from candidate.0
// CHECK-NEXT:     slot 1  [9, 10)  = [start[i], i + 1)  from candidate.1
// CHECK-NEXT:   rows that see column 8:
// CHECK-NEXT:     slot 0  [8, 9)  = [j, select(j < history, rows, first i in [history, rows) : j < start[i]))  from history.0, candidate.0, candidate.1

// SEEN:       @hstu, row 9, column 9: visible
// SEEN:         slot 1  [9, 10), holds column 9  = [start[i], i + 1)  from candidate.1
// SEEN:         slot 0  [9, 12), holds row 9

// HISTORY:    @hstu, row 3, column 5: not visible
// HISTORY:      clause history.0 fails  ({{.*}}explain_cell.mlir:18)
// HISTORY-NEXT:   no   j <= i  5 <= 3

// DRAWN:      drawn: --rows {{[0-9]+}} --cols {{[0-9]+}} --meta history={{[0-9]+}} --meta start={{[-0-9,]+}}
// DRAWN:      @hstu, row 2, column 0: visible

// OUTSIDE:    cm-opt: error: row 14 of mask 'hstu': expected an int from 0 to 13
// FACT:       cm-opt: error: mask 'hstu': the metadata break the fact 'history <= rows': history=20, rows=9
// ROWS:       cm-opt: error: option '--rows' needs an int of at least 0, got 'nine'
// ALONE:      cm-opt: error: option '--rows' goes with --explain=I,J
// FORM:       cm-opt: error: --meta history: expected NAME=INT, NAME=INT,INT,.., NAME=@FILE.json or @FILE.json
// PASS:       pass merge-slots
