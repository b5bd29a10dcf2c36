// Causal attention of rank 0 of 2: of four chunks its rows are the first and the last. Columns are in their own order.
maskspec.spec @causal() {
  maskspec.assume rows == cols
  maskspec.layout rows = zigzag(of = 2, rank = 0)
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
