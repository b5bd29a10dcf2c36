// Sliding window as attention-gym (PyTorch's FlexAttention examples) counts it: i - j <= window. A row sees `window` keys before itself, and
// itself: window + 1 keys, one more than a Hugging Face window of the same number, @window_hf.
maskspec.spec @window_attention_gym(%window: index = 1024) {
  maskspec.assume 0 <= window

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j <= window
  }
}
