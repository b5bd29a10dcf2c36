// Sliding window as Hugging Face counts it: Mistral, Gemma 2 and 3, gpt-oss. A row sees `window` keys, itself among them: i - window < j <= i.
// attention-gym's window of the same number sees one more, @window_attention_gym; FlashAttention's window_size=(window - 1, 0) is this one.
maskspec.spec @window_hf(%window: index = 4096) {
  maskspec.assume 1 <= window

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j < window
  }
}
