// QK-sparse: causal, with spans of tokens that are hidden until they end (FlashMask). Thoughts or tool calls that later tokens see whole or
// not at all are such spans. Key j of a span [s, e) is seen from row e on, any other key from row j on: `from_row[j]` is e or j. Spans do not
// cross, so from_row never falls. Rows inside a span see what is before it, and nothing if nothing is.
maskspec.spec @qk_sparse(%from_row: !maskspec.table<col>) {
  maskspec.assume rows == cols
  maskspec.assume j <= from_row[j] and from_row[j] <= cols
  maskspec.nondecreasing from_row

  maskspec.region @all rows [0, rows) {
    maskspec.clause from_row[j] <= i
  }
}
