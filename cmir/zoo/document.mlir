// Documents packed into one row, two-sided: packed encoders, Qwen2-VL's vision blocks (one image or window a document). `document[t]` is the
// number of the document that token t belongs to: any numbers that never fall from one token to the next (padding: a number of its own).
maskspec.spec @document(%document: !maskspec.table<free>) {
  maskspec.nondecreasing document

  maskspec.region @all rows [0, rows) {
    maskspec.clause document[i] == document[j]
  }
}
