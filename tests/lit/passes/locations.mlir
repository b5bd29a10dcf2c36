// RUN: cm-opt --split-input-file --verify-diagnostics --lower-intervals --transpose --choose-axis=test=auto --lower-descriptor --lower-attention %s
// RUN: cm-opt --split-input-file --verify-diagnostics -t triton %s

// After all the rewrites, what a late pass says points at the part of the rule that it is about, as it was written.

// The second operand of an `or`, in SSA, with a static that is folded and a conjunction that is flattened on the way.
maskspec.spec @operand(%sinks: index = 4, %evict: !maskspec.table<col>) {
  maskspec.region @early rows [0, 8) (%i, %j) {
    %v = arith.cmpi sle, %j, %i : index
    maskspec.visible %v
  }
  maskspec.region @late rows [8, rows) (%i, %j) {
    %sink = arith.cmpi slt, %j, %sinks : index
    %causal = arith.cmpi sle, %j, %i : index
    %gone = maskspec.lookup %evict[%j]
    %kept = arith.cmpi slt, %i, %gone : index
    // expected-remark@below {{mask @operand is unbounded by rows: 'i < evict[j]' bounds no interval}}
    %both = arith.andi %causal, %kept : i1
    %v = arith.ori %sink, %both : i1
    maskspec.visible %v
  }
}

// -----

// A clause of many, of a Region of many.
maskspec.spec @clause(%n: index, %evict: !maskspec.table<col>) {
  maskspec.assume 0 <= n and n <= rows
  maskspec.region @first rows [0, n) {
    maskspec.clause j <= i
  }
  maskspec.region @second rows [n, rows) {
    maskspec.clause j < n
    maskspec.clause n <= j and j <= i and j < n + 2
    // expected-remark@below {{mask @clause is unbounded by rows: 'i < evict[j]' bounds no interval}}
    maskspec.clause j <= i and i < evict[j]
  }
}

// -----

// What `exists` expands to is where it stands.
maskspec.spec @expanded(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    // expected-remark@below {{mask @expanded is unbounded by rows}}
    %some = maskspec.exists %d in [1, 2] {
      %gone = maskspec.lookup %evict[%j]
      %later = arith.addi %i, %d : index
      %p = arith.cmpi slt, %later, %gone : index
      %q = arith.andi %p, %causal : i1
      maskspec.yield %q
    }
    maskspec.visible %some
  }
}
