// Key holes: an arbitrary padding mask of 0s and 1s with causal attention (Hugging Face's attention_mask). Column j is seen, causally, where
// `keep[j]` is 1; a row's keys fall apart at every hole, so only columns have a bounded number of intervals.
maskspec.spec @key_holes(%keep: !maskspec.table<col>) {
  maskspec.assume 0 <= keep[j] and keep[j] <= 1

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and 1 <= keep[j]
  }
}
