// Vertical and slash lines: MInference, FlexPrefill. A head sees causally the columns of a list (vertical lines) and the diagonals of another
// (slashes: i - j = slash[t]). 4 and 4 lines here; the numbers need not be sorted or different.
maskspec.spec @vertical_slash(
    %verticals: index = 4, %slashes: index = 4, %vertical: !maskspec.table<free>, %slash: !maskspec.table<free>) {
  maskspec.assume 1 <= verticals and 1 <= slashes

  maskspec.region @all rows [0, rows) (%i, %j) {
    %d = arith.subi %i, %j : index
    %on_vertical = maskspec.exists %t in [0, verticals - 1] {
      %column = maskspec.lookup %vertical[%t]
      %on = arith.cmpi eq, %j, %column : index
      maskspec.yield %on
    }
    %on_slash = maskspec.exists %t in [0, slashes - 1] {
      %distance = maskspec.lookup %slash[%t]
      %on = arith.cmpi eq, %d, %distance : index
      maskspec.yield %on
    }
    %causal = arith.cmpi sle, %j, %i : index
    %either = arith.ori %on_vertical, %on_slash : i1
    %visible = arith.andi %causal, %either : i1
    maskspec.visible %visible
  }
}
