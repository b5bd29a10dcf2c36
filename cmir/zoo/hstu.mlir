// HSTU recommendation models: a user's history is causal; every candidate sees the whole history and its own item, and no other
// candidate. `start[i]` is the first token of the candidate that row i belongs to (0 on history rows).
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [history, rows)

  maskspec.region @history rows [0, history) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    maskspec.visible %causal
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
