// Gemma 3: local layers over text and images. Text is causal within a window of `window` keys (itself among them); the tokens of an image see
// each other both ways. Row i's image is [image[i], image_end[i]); a text token is an image of its own, [i, i + 1).
maskspec.spec @gemma3(%window: index = 1024, %image: !maskspec.table<row>, %image_end: !maskspec.table<row>) {
  maskspec.assume rows == cols and 1 <= window
  maskspec.assume 0 <= image[i] and image[i] <= i and i < image_end[i] and image_end[i] <= cols
  maskspec.nondecreasing image
  maskspec.nondecreasing image_end

  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i - j < window
    maskspec.clause image[i] <= j and j < image_end[i]
  }
}
