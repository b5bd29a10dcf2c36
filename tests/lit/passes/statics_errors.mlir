// RUN: cm-opt --verify-diagnostics --extract-intervals %s
// RUN: cm-opt --verify-diagnostics --transpose %s

// expected-error@+1 {{@window still has statics; run --dnf-normalize first}}
maskspec.spec @window(%w: index = 8) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w <= j
  }
}
