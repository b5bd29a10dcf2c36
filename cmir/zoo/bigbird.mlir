// BigBird: block-sparse encoders. In blocks of `block` tokens, a row block sees the first and the last block, itself and its two neighbours, and
// three random blocks, random[b, t] for row block b; the first and the last row block see everything.
maskspec.spec @bigbird(%block: index = 64, %random: !maskspec.table<free x 3>) {
  maskspec.assume 1 <= block and rows == cols

  maskspec.region @first rows [0, min(block, (rows - 1) floordiv block * block)) {
    maskspec.clause true
  }

  maskspec.region @middle rows [block, (rows - 1) floordiv block * block) {
    maskspec.clause j < block
    maskspec.clause (cols - 1) floordiv block * block <= j
    maskspec.clause abs(i floordiv block - j floordiv block) <= 1
    maskspec.clause j floordiv block == random[i floordiv block, 0]
    maskspec.clause j floordiv block == random[i floordiv block, 1]
    maskspec.clause j floordiv block == random[i floordiv block, 2]
  }

  maskspec.region @last rows [max(0, (rows - 1) floordiv block * block), rows) {
    maskspec.clause true
  }
}
