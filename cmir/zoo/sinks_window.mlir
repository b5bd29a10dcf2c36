// Attention sinks and a sliding window, in packed documents: StreamingLLM, gpt-oss-style local layers with sink tokens. A row sees, of its own
// document, the first `sinks` tokens and the last `window` up to itself (itself among them, as Hugging Face counts). `start[i]` is the first
// token of the document that row i belongs to, so the start of a start is itself.
maskspec.spec @sinks_window(%window: index = 1024, %sinks: index = 4, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 1 <= window and 0 <= sinks
  maskspec.assume 0 <= start[i] and start[i] <= i and start[start[i]] == start[i]
  maskspec.nondecreasing start

  maskspec.region @all rows [0, rows) {
    maskspec.clause start[i] <= j and j <= i and i - j < window
    maskspec.clause start[i] <= j and j <= i and j < start[i] + sinks
  }
}
