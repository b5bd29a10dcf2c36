maskspec.spec @near() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - 2 <= j and j <= i + 2
  }
}
