// CLEAR: linearised diffusion transformers (image generation). `text` prompt tokens, then a height x width image in raster order. Text sees and is
// seen by everything; an image token sees the image tokens within a circle: dy * dy + dx * dx < radius * radius. For a row offset d = dy the
// circle is the interval |dx| <= half[d] of its grid row.
maskspec.spec @clear(
    %radius: index = 16, %height: index = 64, %width: index = 64, %text: index = 512) {
  maskspec.assume 1 <= radius and 1 <= height and 1 <= width and 0 <= text
  maskspec.assume rows == text + height * width and cols == rows
  maskspec.constants @half for d in [1 - radius, radius) : isqrt(radius * radius - d * d - 1)

  maskspec.region @text rows [0, text) (%i, %j) {
    %all = arith.constant true
    maskspec.visible %all
  }

  maskspec.region @image rows [text, rows) (%i, %j) {
    %to_text = arith.cmpi slt, %j, %text : index
    %to_image = arith.cmpi sge, %j, %text : index
    %p = arith.subi %i, %text : index
    %q = arith.subi %j, %text : index
    %y_i = arith.floordivsi %p, %width : index
    %y_j = arith.floordivsi %q, %width : index
    %x_i = maskspec.mod %p, %width
    %x_j = maskspec.mod %q, %width
    %near = maskspec.exists %d in [1 - radius, radius - 1] {
      %y = arith.addi %y_i, %d : index
      %row = arith.cmpi eq, %y_j, %y : index
      %h = maskspec.lookup @half[%d]
      %left = arith.subi %x_i, %h : index
      %right = arith.addi %x_i, %h : index
      %from = arith.cmpi sge, %x_j, %left : index
      %to = arith.cmpi sle, %x_j, %right : index
      %both = arith.andi %from, %to : i1
      %in = arith.andi %row, %both : i1
      maskspec.yield %in
    }
    %image = arith.andi %to_image, %near : i1
    %visible = arith.ori %to_text, %image : i1
    maskspec.visible %visible
  }
}
