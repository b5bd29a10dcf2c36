// Block diffusion in training: BD3-LM, SDAR. The sequence is [noised copy, clean copy] of `length` tokens each. A noised row of block b sees its
// own noised block, and the clean blocks before b; a clean row sees the clean blocks up to its own.
maskspec.spec @block_diffusion(%block: index = 16, %length: index) {
  maskspec.assume 1 <= block and 0 <= length and rows == 2 * length and cols == rows

  maskspec.region @noised rows [0, length) {
    maskspec.clause j < length and j floordiv block == i floordiv block
    maskspec.clause length <= j and (j - length) floordiv block < i floordiv block
  }

  maskspec.region @clean rows [length, rows) {
    maskspec.clause length <= j and (j - length) floordiv block <= (i - length) floordiv block
  }
}
