// Full attention: encoders (BERT, ViT) and cross attention without padding. Every row sees every column; rows and cols may differ.
maskspec.spec @full() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause true
  }
}
