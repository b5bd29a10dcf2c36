// Top-k blocks and a window: NSA's selected branch, MoBA, Quest. A row sees causally the last `window` keys and, of blocks of `block` keys, those
// that were selected for it: sel[i, t], 3 here, -1 for none. Selections are as they come, so nothing orders the rows that see a column.
maskspec.spec @topk_blocks(%block: index = 64, %window: index = 512, %sel: !maskspec.table<row x 3>) {
  maskspec.assume 1 <= block and 1 <= window

  maskspec.region @all rows [0, rows) (%i, %j) {
    %window_end = arith.addi %j, %window : index
    %in_window = arith.cmpi slt, %i, %window_end : index
    %block_j = arith.floordivsi %j, %block : index
    %selected = maskspec.exists %t in [0, 2] {
      %chosen = maskspec.lookup %sel[%i, %t]
      %is_it = arith.cmpi eq, %block_j, %chosen : index
      maskspec.yield %is_it
    }
    %causal = arith.cmpi sle, %j, %i : index
    %either = arith.ori %in_window, %selected : i1
    %visible = arith.andi %causal, %either : i1
    maskspec.visible %visible
  }
}
