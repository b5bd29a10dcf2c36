// Causal attention, bottom-right aligned: FlashAttention since 2.1, cuDNN, decoding and chunked prefill with a key/value cache. The last row
// sees the last column, row i the columns up to i + cols - rows; where rows > cols the first rows see nothing. PyTorch's
// scaled_dot_product_attention(is_causal=True) is top-left aligned: @causal. The two agree where rows == cols.
maskspec.spec @causal_bottom_right() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i + cols - rows
  }
}
