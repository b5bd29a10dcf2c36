// Block causal: semi-autoregressive models and block diffusion at inference (LLaDA blocks, Fast-dLLM). Blocks of `block` tokens see themselves whole
// and every earlier block.
maskspec.spec @block_causal(%block: index = 32) {
  maskspec.assume 1 <= block

  maskspec.region @all rows [0, rows) {
    maskspec.clause j floordiv block <= i floordiv block
  }
}
