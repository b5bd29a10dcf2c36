// Frame causal: autoregressive video (CausVid, Self Forcing, MAGI-1). `frame` tokens a frame; a token sees its own frame whole and every frame
// before.
maskspec.spec @frame_causal(%frame: index = 1560) {
  maskspec.assume 1 <= frame

  maskspec.region @all rows [0, rows) {
    maskspec.clause j < (i floordiv frame + 1) * frame
  }
}
