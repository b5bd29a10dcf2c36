// Speculative decoding over a tree of drafts, in any order: Medusa, EAGLE, SpecInfer. Rows are the drafts, columns the context (decoded tokens,
// the tree's root the last of them) and then the drafts. A draft sees the context, its ancestors and itself: the columns ancestor[i, t], at most
// 4, -1 for none. Drafts stand in any order (by depth, by likelihood), so nothing orders the rows that see a column.
maskspec.spec @tree_any_order(%context: index, %ancestor: !maskspec.table<row x 4>) {
  maskspec.assume 0 <= context and context <= cols

  maskspec.region @all rows [0, rows) (%i, %j) {
    %in_context = arith.cmpi slt, %j, %context : index
    %in_path = maskspec.exists %t in [0, 3] {
      %column = maskspec.lookup %ancestor[%i, %t]
      %is_it = arith.cmpi eq, %j, %column : index
      maskspec.yield %is_it
    }
    %visible = arith.ori %in_context, %in_path : i1
    maskspec.visible %visible
  }
}
