// Key/value cache: decoding and chunked prefill over a cache of `cols` places (FlashAttention's flash_attn_with_kvcache, Hugging Face's
// StaticCache). The places [first_key, length) hold the sequence's keys, those of these rows among them; before is left padding, behind is what
// is not yet written. The rows are the sequence's last tokens: the last one is aligned with key length - 1, whatever `cols` is, and
// @causal_bottom_right is the case of a full cache. `length` is FlashAttention's cache_seqlens and the keys that the call appends, `first_key` its
// cache_leftpad, or 0; a batch gives each sequence its own. Rows of a chunk that is padded at its left stand among older tokens, and see what
// those saw, or nothing where there were none: nobody reads them.
maskspec.spec @kv_cache(%first_key: index, %length: index) {
  maskspec.assume 0 <= first_key and first_key <= length and length <= cols

  maskspec.region @all rows [0, rows) {
    maskspec.clause first_key <= j and j <= i + length - rows
  }
}
