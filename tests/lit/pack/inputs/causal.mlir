maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}
