// Speculative decoding over a tree of drafts, in depth-first order: as @tree_any_order, with the drafts of a subtree next to each other. Then
// the rows that see a column are one interval, too. ancestor[i, t] is the column of row i's ancestor at depth t, itself at its own depth, and
// row i's own column at greater depths, 0 to 3; so no depth's ancestors fall along the rows. depth[j] is the depth of column j, -1 in the context.
maskspec.spec @tree_dfs(%context: index, %ancestor: !maskspec.table<row x 4>, %depth: !maskspec.table<free>) {
  maskspec.assume 0 <= context and context <= cols
  maskspec.nondecreasing ancestor

  maskspec.region @all rows [0, rows) {
    maskspec.clause j < context
    maskspec.clause context <= j and j == ancestor[i, 0] and depth[ancestor[i, 0]] == 0
    maskspec.clause context <= j and j == ancestor[i, 1] and depth[ancestor[i, 1]] == 1
    maskspec.clause context <= j and j == ancestor[i, 2] and depth[ancestor[i, 2]] == 2
    maskspec.clause context <= j and j == ancestor[i, 3] and depth[ancestor[i, 3]] == 3
  }
}
