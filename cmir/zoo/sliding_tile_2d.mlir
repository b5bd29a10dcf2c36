// Sliding tile attention in 2D: STA (FastVideo), with tokens in tile-major order. `tokens` tokens a tile, tiles_y x tiles_x tiles in raster
// order; a tile sees the 3 x 3 tiles around it, the centre clamped at the edges.
maskspec.spec @sliding_tile_2d(%tokens: index = 64, %tiles_y: index = 8, %tiles_x: index = 8) {
  maskspec.assume 1 <= tokens and 3 <= tiles_y and 3 <= tiles_x
  maskspec.assume rows == tokens * tiles_y * tiles_x and cols == rows

  maskspec.region @all rows [0, rows) {
    maskspec.clause abs(min(max(i floordiv tokens floordiv tiles_x, 1), tiles_y - 2) - j floordiv tokens floordiv tiles_x) <= 1
      and abs(min(max(i floordiv tokens mod tiles_x, 1), tiles_x - 2) - j floordiv tokens mod tiles_x) <= 1
  }
}
