// Dilated window: Longformer's dilated heads, DilatedAttention, LongNet segments. A row sees every `dilation`-th key up to `half` away on both sides.
maskspec.spec @dilated_window(%half: index = 8, %dilation: index = 2) {
  maskspec.assume 0 <= half and 1 <= dilation

  maskspec.region @all rows [0, rows) {
    maskspec.clause abs(i - j) <= half and (i - j) mod dilation == 0
  }
}
