// Sliding window, two-sided: encoders with local attention (ModernBERT's local layers, Longformer without globals). abs(i - j) <= half, so
// 2 * half + 1 keys: ModernBERT's local_attention of 128 is half = 64.
maskspec.spec @window_two_sided(%half: index = 64) {
  maskspec.assume 0 <= half

  maskspec.region @all rows [0, rows) {
    maskspec.clause abs(i - j) <= half
  }
}
