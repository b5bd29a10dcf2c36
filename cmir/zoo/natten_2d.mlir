// Neighbourhood attention in 2D: NATTEN, DiNAT, Hourglass Diffusion. A token of a height x width grid (raster order) sees the
// (2 * half + 1)^2 window around it; at an edge the window's centre is clamped, so that every token sees as many.
maskspec.spec @natten_2d(%half: index = 3, %height: index = 64, %width: index = 64) {
  maskspec.assume 0 <= half and 2 * half + 1 <= height and 2 * half + 1 <= width
  maskspec.assume rows == height * width and cols == rows

  maskspec.region @all rows [0, rows) {
    maskspec.clause abs(min(max(i floordiv width, half), height - 1 - half) - j floordiv width) <= half
      and abs(min(max(i mod width, half), width - 1 - half) - j mod width) <= half
  }
}
