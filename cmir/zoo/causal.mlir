// Causal attention, top-left aligned: every language model's decoder. rows and cols may differ; row i sees columns 0..i.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %causal = arith.cmpi sle, %j, %i : index
    maskspec.visible %causal
  }
}
