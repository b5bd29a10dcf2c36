// Flamingo cross attention, images in any order: retrieval-interleaved data, images referred to again. As @flamingo, but nothing orders
// the tables, so that only columns have a bounded number of intervals.
maskspec.spec @flamingo_any_order(%image: index = 64, %first_row: !maskspec.table<free>, %end_row: !maskspec.table<free>) {
  maskspec.assume 1 <= image

  maskspec.region @all rows [0, rows) {
    maskspec.clause first_row[j floordiv image] <= i and i < end_row[j floordiv image]
  }
}
