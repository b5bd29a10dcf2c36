// RUN: cm-opt --split-input-file --dnf-normalize %s | filecheck %s

// Rules as disjunctions of clauses.

// `and` is distributed over `or`; `ne` is two literals.
maskspec.spec @connectives(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = arith.cmpi sle, %j, %i : index
    %b = arith.cmpi slt, %j, %s : index
    %c = arith.cmpi ne, %i, %s : index
    %or = arith.ori %a, %b : i1
    %and = arith.andi %or, %c : i1
    maskspec.visible %and
  }
}

// CHECK-LABEL: maskspec.spec @connectives(%s: index) {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause j <= i and i < s
// CHECK-NEXT:      maskspec.clause j <= i and s < i
// CHECK-NEXT:      maskspec.clause j < s and i < s
// CHECK-NEXT:      maskspec.clause j < s and s < i
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// De Morgan; a negated comparison is the other one.
maskspec.spec @negation(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %true = arith.constant true
    %a = arith.cmpi sle, %j, %i : index
    %b = arith.cmpi slt, %j, %s : index
    %and = arith.andi %a, %b : i1
    %not = arith.xori %and, %true : i1
    maskspec.visible %not
  }
}

// CHECK-LABEL: maskspec.spec @negation(%s: index) {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause i < j
// CHECK-NEXT:      maskspec.clause s <= j
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Exclusive or, and a choice between conditions.
maskspec.spec @xor_select(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = arith.cmpi sle, %j, %i : index
    %b = arith.cmpi slt, %i, %s : index
    %x = arith.xori %a, %b : i1
    maskspec.visible %x
  }
  maskspec.region @none rows [rows, rows) (%i, %j) {
    %a = arith.cmpi sle, %j, %i : index
    %b = arith.cmpi slt, %i, %s : index
    %c = arith.cmpi sgt, %j, %s : index
    %x = arith.select %b, %a, %c : i1
    maskspec.visible %x
  }
}

// CHECK-LABEL: maskspec.spec @xor_select(%s: index) {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause j <= i and s <= i
// CHECK-NEXT:      maskspec.clause i < j and i < s
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @none rows [rows, rows) {
// CHECK-NEXT:      maskspec.clause i < s and j <= i
// CHECK-NEXT:      maskspec.clause s <= i and s < j
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// min, max and select are taken apart where they read the column, and left where they bound it.
maskspec.spec @apart(%s: index) {
  maskspec.region @minimum rows [0, 1) (%i, %j) {
    %m = arith.minsi %j, %s : index
    %v = arith.cmpi sle, %m, %i : index
    maskspec.visible %v
  }
  maskspec.region @maximum rows [1, 2) (%i, %j) {
    %m = arith.maxsi %j, %s : index
    %v = arith.cmpi sle, %m, %i : index
    maskspec.visible %v
  }
  maskspec.region @row_only rows [2, 3) (%i, %j) {
    %m = arith.maxsi %i, %s : index
    %v = arith.cmpi sle, %j, %m : index
    maskspec.visible %v
  }
  maskspec.region @select rows [3, 4) (%i, %j) {
    %b = arith.cmpi slt, %j, %s : index
    %m = arith.select %b, %i, %s : index
    %v = arith.cmpi sle, %m, %i : index
    maskspec.visible %v
  }
}

// CHECK-LABEL: maskspec.spec @apart(%s: index) {
// CHECK-NEXT:    maskspec.region @minimum rows [0, 1) {
// CHECK-NEXT:      maskspec.clause j <= i
// CHECK-NEXT:      maskspec.clause s <= i
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @maximum rows [1, 2) {
// CHECK-NEXT:      maskspec.clause j <= i and s <= i
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @row_only rows [2, 3) {
// CHECK-NEXT:      maskspec.clause j <= max(i, s)
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @select rows [3, 4) {
// CHECK-NEXT:      maskspec.clause j < s
// CHECK-NEXT:      maskspec.clause s <= j and s <= i
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Always and never.
maskspec.spec @truth(%s: index) {
  maskspec.region @always rows [0, s) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
  maskspec.region @never rows [s, rows) (%i, %j) {
    %v = arith.constant false
    maskspec.visible %v
  }
}

// CHECK-LABEL: maskspec.spec @truth(%s: index) {
// CHECK-NEXT:    maskspec.region @always rows [0, s) {
// CHECK-NEXT:      maskspec.clause true
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @never rows [s, rows) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A clause that contradicts itself goes.
maskspec.spec @contradiction(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %a = arith.cmpi slt, %j, %i : index
    %b = arith.cmpi slt, %i, %j : index
    %and = arith.andi %a, %b : i1
    maskspec.visible %and
  }
}

// CHECK-LABEL: maskspec.spec @contradiction(%s: index) {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// So do a literal that another one implies, and a clause that says more than another.
maskspec.spec @implied(%s: index) {
  maskspec.region @literals rows [0, s) (%i, %j) {
    %two = arith.constant 2 : index
    %k = arith.subi %i, %two : index
    %a = arith.cmpi slt, %j, %i : index
    %b = arith.cmpi slt, %j, %k : index
    %and = arith.andi %a, %b : i1
    maskspec.visible %and
  }
  maskspec.region @clauses rows [s, rows) (%i, %j) {
    %a = arith.cmpi slt, %j, %i : index
    %b = arith.cmpi slt, %s, %j : index
    %and = arith.andi %a, %b : i1
    %or = arith.ori %and, %a : i1
    maskspec.visible %or
  }
}

// CHECK-LABEL: maskspec.spec @implied(%s: index) {
// CHECK-NEXT:    maskspec.region @literals rows [0, s) {
// CHECK-NEXT:      maskspec.clause j + 2 < i
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @clauses rows [s, rows) {
// CHECK-NEXT:      maskspec.clause j < i
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Statics, `exists` and constant tables are folded, in facts and guards too; what always holds is no fact.
maskspec.spec @folding(%w: index = 4, %s: index) {
  maskspec.assume w * w <= s and 0 <= w
  maskspec.constants @step [5, 7, 9]
  maskspec.region @exists rows [0, w) (%i, %j) {
    %v = maskspec.exists %d in [0, w - 2] {
      %p = maskspec.lookup @step[%d]
      %q = arith.addi %i, %p : index
      %r = arith.cmpi eq, %j, %q : index
      maskspec.yield %r
    }
    maskspec.visible %v
  }
  maskspec.region @empty rows [w, 2 * w) (%i, %j) {
    %v = maskspec.exists %d in [w, 0] {
      %r = arith.cmpi eq, %j, %d : index
      maskspec.yield %r
    }
    maskspec.visible %v
  }
  maskspec.region @table rows [2 * w, rows) (%i, %j) {
    %p = maskspec.lookup @step[%i]
    %r = arith.cmpi sle, %j, %p : index
    maskspec.visible %r
  }
}

// CHECK-LABEL: maskspec.spec @folding(%s: index) {
// CHECK-NEXT:    maskspec.assume 16 <= s
// CHECK-NEXT:    maskspec.region @exists rows [0, 4) {
// CHECK-NEXT:      maskspec.clause j == i + 5
// CHECK-NEXT:      maskspec.clause j == i + 7
// CHECK-NEXT:      maskspec.clause j == i + 9
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @empty rows [4, 8) {
// CHECK-NEXT:    }
// CHECK-NEXT:    maskspec.region @table rows [8, rows) {
// CHECK-NEXT:      maskspec.clause i <= 0 and j <= 5
// CHECK-NEXT:      maskspec.clause 0 < i and i < 2 and j <= 7
// CHECK-NEXT:      maskspec.clause 2 <= i and j <= 9
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// Division stays: --extract-intervals solves it.
maskspec.spec @division(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %four = arith.constant 4 : index
    %p = arith.subi %i, %s : index
    %q = arith.subi %j, %s : index
    %b = arith.floordivsi %p, %four : index
    %c = arith.floordivsi %q, %four : index
    %r = arith.cmpi eq, %b, %c : index
    maskspec.visible %r
  }
}

// CHECK-LABEL: maskspec.spec @division(%s: index) {
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause (i - s) floordiv 4 == (j - s) floordiv 4
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A slot list: one clause for each slot. Which integer of an entry is read is known by now, and is one that exists.
// CHECK-LABEL: maskspec.spec @slot_list(%lo: !maskspec.table<row x 3>, %hi: !maskspec.table<row x 3>) {
// CHECK-NEXT:    maskspec.assume lo[i, 0] <= hi[i, 0] and lo[i, 1] <= hi[i, 1] and lo[i, 2] <= hi[i, 2]
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause lo[i, 0] <= j and j < hi[i, 0]
// CHECK-NEXT:      maskspec.clause lo[i, 1] <= j and j < hi[i, 1]
// CHECK-NEXT:      maskspec.clause lo[i, 2] <= j and j < hi[i, 2]
// CHECK-NEXT:      maskspec.clause hi[i, 2] <= j and j < lo[i + 1, 0]
// CHECK-NEXT:    }
maskspec.spec @slot_list(%lo: !maskspec.table<row x 3>, %hi: !maskspec.table<row x 3>) {
  maskspec.assume not exists t in [0, 2] : hi[i, t] < lo[i, t]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %slot = maskspec.exists %t in [0, 2] {
      %a = maskspec.lookup %lo[%i, %t]
      %b = maskspec.lookup %hi[%i, %t]
      %p = arith.cmpi sle, %a, %j : index
      %q = arith.cmpi slt, %j, %b : index
      %r = arith.andi %p, %q : i1
      maskspec.yield %r
    }
    %one = arith.constant 1 : index
    %minus = arith.constant -1 : index
    %nine = arith.constant 9 : index
    %next = arith.addi %i, %one : index
    %last = maskspec.lookup %hi[%i, %nine]
    %first = maskspec.lookup %lo[%next, %minus]
    %s = arith.cmpi sle, %last, %j : index
    %t = arith.cmpi slt, %j, %first : index
    %gap = arith.andi %s, %t : i1
    %v = arith.ori %slot, %gap : i1
    maskspec.visible %v
  }
}

// -----

// The alignment of rows with columns is arithmetic from here on; `forall` is a conjunction.
// CHECK-LABEL: maskspec.spec @aligned(%seg: !maskspec.table<row>, %lo: !maskspec.table<row x 2>) {
// CHECK-NEXT:    maskspec.contiguous seg over [1, rows)
// CHECK-NEXT:    maskspec.assume lo[i, 0] <= i and lo[i, 1] <= i
// CHECK-NEXT:    maskspec.region @all rows [0, rows) {
// CHECK-NEXT:      maskspec.clause rows + j <= i + cols and i <= j
maskspec.spec @aligned(%one: index = 1, %seg: !maskspec.table<row>, %lo: !maskspec.table<row x 2>) {
  maskspec.contiguous seg over [one, rows)
  maskspec.assume forall t in [0, 1] : lo[i, t] <= i
  maskspec.region @all rows [0, rows) (%i, %j) {
    %p = maskspec.position bottom_right %i
    %q = maskspec.position top_left %i
    %a = arith.cmpi sle, %j, %p : index
    %b = arith.cmpi sle, %q, %j : index
    %v = arith.andi %a, %b : i1
    maskspec.visible %v
  }
}
