// Causal documents packed into one row: pre-training and fine-tuning of every language model. `document[t]` is the number of the document that
// token t belongs to: any numbers that never fall from one token to the next.
maskspec.spec @causal_document(%document: !maskspec.table<free>) {
  maskspec.nondecreasing document

  maskspec.region @all rows [0, rows) {
    maskspec.clause document[i] == document[j] and j <= i
  }
}
