// Packed cross attention: encoder-decoder models and diffusion transformers with several samples in one row; rows and cols differ. Row i belongs
// to sample `sample_of_row[i]`, column j to `sample_of_col[j]`; numbers never fall along either axis. A sample may have no columns: its rows
// see nothing.
maskspec.spec @packed_cross(%sample_of_row: !maskspec.table<row>, %sample_of_col: !maskspec.table<col>) {
  maskspec.nondecreasing sample_of_row
  maskspec.nondecreasing sample_of_col

  maskspec.region @all rows [0, rows) {
    maskspec.clause sample_of_row[i] == sample_of_col[j]
  }
}
