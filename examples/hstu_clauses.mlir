maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [history, rows)
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) {
    maskspec.clause j < history
    maskspec.clause start[i] <= j and j <= i
  }
}
