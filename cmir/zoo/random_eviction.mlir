// Random eviction: training with a key/value cache that drops keys at will (FlashMask, H2O-like caches). Key j is seen causally
// until row `evict[j]`, exclusive; nothing orders the evictions, so only columns have a bounded number of intervals.
maskspec.spec @random_eviction(%evict: !maskspec.table<col>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < evict[j]
  }
}
