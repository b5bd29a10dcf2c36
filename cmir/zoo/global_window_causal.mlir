// Global tokens and a causal window: sparse decoders (Longformer decoders, landmark tokens at the front). A row sees the first `globals` tokens
// and the `left` before itself: i - left <= j, inclusive.
maskspec.spec @global_window_causal(%left: index = 256, %globals: index = 16) {
  maskspec.assume 0 <= left and 0 <= globals

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - left <= j
    maskspec.clause j <= i and j < globals
  }
}
