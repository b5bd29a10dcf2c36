// Global tokens and a two-sided window: Longformer, BigBird without its random blocks. The first `globals` tokens see and are seen by
// everything; the others see i - left <= j <= i + right, both ends inclusive.
maskspec.spec @global_window(%left: index = 256, %right: index = 256, %globals: index = 16) {
  maskspec.assume 0 <= left and 0 <= right and 0 <= globals

  maskspec.region @global rows [0, globals) {
    maskspec.clause true
  }

  maskspec.region @local rows [globals, rows) {
    maskspec.clause j < globals
    maskspec.clause i - left <= j and j <= i + right
  }
}
