// Sliding window as FlashAttention takes it: window_size=(left, right), both ends inclusive, aligned bottom-right. Row i stands at column
// p = i + cols - rows and sees p - left <= j <= p + right, left + 1 + right keys; causal is right = 0. FlashAttention's -1 (no limit) is a
// number that no length reaches here.
maskspec.spec @window_flash(%left: index = 512, %right: index = 0) {
  maskspec.assume 0 <= left and 0 <= right

  maskspec.region @all rows [0, rows) {
    maskspec.clause i + cols - rows - left <= j and j <= i + cols - rows + right
  }
}
