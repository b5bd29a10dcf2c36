// Prefix LM: PaliGemma, UniLM, T5's prefix mode. The first `prefix` tokens (an image, a prompt) see each other, the rest is causal.
maskspec.spec @prefix_lm(%prefix: index) {
  maskspec.assume 0 <= prefix and prefix <= cols

  maskspec.region @all rows [0, rows) {
    maskspec.clause j < prefix
    maskspec.clause j <= i
  }
}
