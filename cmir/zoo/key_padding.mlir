// Key padding: encoders and cross attention over a batch padded to one length (T5, Whisper, Stable Diffusion 3). The sequence's own keys are
// [first_key, end_key): right padding has first_key = 0, left padding end_key = cols.
maskspec.spec @key_padding(%first_key: index, %end_key: index) {
  maskspec.assume 0 <= first_key and first_key <= end_key and end_key <= cols

  maskspec.region @all rows [0, rows) {
    maskspec.clause first_key <= j and j < end_key
  }
}
