// Flamingo cross attention: interleaved text and images (Flamingo, Llama 3.2 Vision). Columns are image tokens, `image` a piece; image g is
// seen by the text rows [first_row[g], end_row[g]). Images come in the order of the text: neither table falls.
maskspec.spec @flamingo(%image: index = 64, %first_row: !maskspec.table<free>, %end_row: !maskspec.table<free>) {
  maskspec.assume 1 <= image
  maskspec.nondecreasing first_row
  maskspec.nondecreasing end_row

  maskspec.region @all rows [0, rows) {
    maskspec.clause first_row[j floordiv image] <= i and i < end_row[j floordiv image]
  }
}
