// Strided: the Sparse Transformer's strided pattern, both of its parts in one head. A row sees the last `stride` keys and every `stride`-th
// before. Neither axis has a bounded number of intervals: partial tiles are packed bits.
maskspec.spec @strided(%stride: index = 128) {
  maskspec.assume 1 <= stride

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j < stride
    maskspec.clause j <= i and (i - j) mod stride == 0
  }
}
