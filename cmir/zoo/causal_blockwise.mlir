// Causal blockwise: in-context learning with independent demonstrations (FlashMask's causal blockwise mask). Demonstrations see themselves,
// causally; the last segment, from row `last` on, is the query and sees all of them. `start[i]` is the first token of row i's segment.
maskspec.spec @causal_blockwise(%last: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= last and last <= rows
  maskspec.assume for i in [0, last) : 0 <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [0, last)

  maskspec.region @demonstrations rows [0, last) {
    maskspec.clause start[i] <= j and j <= i
  }

  maskspec.region @query rows [last, rows) {
    maskspec.clause j <= i
  }
}
