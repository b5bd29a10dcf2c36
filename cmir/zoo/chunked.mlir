// Chunked attention: Llama 4's local layers. Causal inside chunks of `chunk` tokens, which are counted from the first real token: `padding` tokens
// of left padding stand before it, and floor division puts them into chunks of their own.
maskspec.spec @chunked(%chunk: index = 8192, %padding: index) {
  maskspec.assume 1 <= chunk and 0 <= padding

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and (i - padding) floordiv chunk == (j - padding) floordiv chunk
  }
}
