// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/tree_dfs.mlir | filecheck %s

// CHECK:   interval.table @tree_dfs_rows of @tree_dfs axis rows slots 5 {
// CHECK:     interval.region @all [0, rows) fuse [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)] {
// CHECK:       interval.span [0, context) from "all.0"
// CHECK:       interval.span [max(context, ancestor[i, 0]), min(cols, ancestor[i, 0] + 1)) when depth[ancestor[i,
// CHECK:       interval.span [max(context, ancestor[i, 1]), min(cols, ancestor[i, 1] + 1)) when depth[ancestor[i,
// CHECK:       interval.span [max(context, ancestor[i, 2]), min(cols, ancestor[i, 2] + 1)) when depth[ancestor[i,
// CHECK:       interval.span [max(context, ancestor[i, 3]), min(cols, ancestor[i, 3] + 1)) when depth[ancestor[i,
//
// CHECK:   interval.table @tree_dfs_cols of @tree_dfs axis cols slots 1 {
// CHECK:     interval.region @all [0, cols) {
// CHECK:       interval.span [select(context <= j and depth[j] == 3, first i in [0, rows) : j <= ancestor[i, 3],
