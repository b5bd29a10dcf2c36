// HSTU as Meta's generative recommenders run it: `context` contextual tokens (user features; share id 0), a history, then targets (share one id).
// A token sees itself, earlier ids inside `window` (0: no window), all earlier ids for the last `full` history ids and targets, and contextual
// tokens see all of context and history.
//   id: contextual -> 0, k-th history token -> k + (context > 0), target -> last = history + (context > 0);  d = id_i - id_j
//   i == j  or  d > 0 and (window == 0 or d <= window or full > 0 and id_i >= last - full)  or  context > 0 and id_i == 0 and id_j < last
maskspec.spec @hstu_meta(
    %context: index = 6, %window: index = 128, %full: index = 32, %history: index) {
  maskspec.assume 0 <= context and 0 <= window and 0 <= full
  maskspec.assume 0 <= history and context + history <= rows and rows == cols

  // The contextual tokens: id 0, so nothing is earlier.
  maskspec.region @context rows [0, context) (%i, %j) {
    %end = arith.addi %context, %history : index
    %before_targets = arith.cmpi slt, %j, %end : index
    maskspec.visible %before_targets
  }

  maskspec.region @history rows [context, context + history) (%i, %j) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %has_context = arith.cmpi sgt, %context, %zero : index
    %shift = arith.select %has_context, %one, %zero : index
    %last = arith.addi %history, %shift : index
    %end = arith.addi %context, %history : index
    %k_i = arith.subi %i, %context : index
    %id_i = arith.addi %k_i, %shift : index
    %j_in_context = arith.cmpi slt, %j, %context : index
    %j_in_history = arith.cmpi slt, %j, %end : index
    %k_j = arith.subi %j, %context : index
    %id_j_history = arith.addi %k_j, %shift : index
    %id_j_later = arith.select %j_in_history, %id_j_history, %last : index
    %id_j = arith.select %j_in_context, %zero, %id_j_later : index
    %d = arith.subi %id_i, %id_j : index
    %self = arith.cmpi eq, %i, %j : index
    %earlier = arith.cmpi sgt, %d, %zero : index
    %no_window = arith.cmpi eq, %window, %zero : index
    %in_window = arith.cmpi sle, %d, %window : index
    %has_full = arith.cmpi sgt, %full, %zero : index
    %full_from = arith.subi %last, %full : index
    %late = arith.cmpi sge, %id_i, %full_from : index
    %in_full = arith.andi %has_full, %late : i1
    %near = arith.ori %in_window, %in_full : i1
    %reach = arith.ori %no_window, %near : i1
    %sees = arith.andi %earlier, %reach : i1
    %visible = arith.ori %self, %sees : i1
    maskspec.visible %visible
  }

  // Targets: id `last`, so the last `full` ids count from themselves and see everything earlier when full > 0.
  maskspec.region @target rows [context + history, rows) (%i, %j) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %has_context = arith.cmpi sgt, %context, %zero : index
    %shift = arith.select %has_context, %one, %zero : index
    %last = arith.addi %history, %shift : index
    %end = arith.addi %context, %history : index
    %j_in_context = arith.cmpi slt, %j, %context : index
    %j_in_history = arith.cmpi slt, %j, %end : index
    %k_j = arith.subi %j, %context : index
    %id_j_history = arith.addi %k_j, %shift : index
    %id_j_later = arith.select %j_in_history, %id_j_history, %last : index
    %id_j = arith.select %j_in_context, %zero, %id_j_later : index
    %d = arith.subi %last, %id_j : index
    %self = arith.cmpi eq, %i, %j : index
    %earlier = arith.cmpi sgt, %d, %zero : index
    %no_window = arith.cmpi eq, %window, %zero : index
    %in_window = arith.cmpi sle, %d, %window : index
    %has_full = arith.cmpi sgt, %full, %zero : index
    %near = arith.ori %in_window, %has_full : i1
    %reach = arith.ori %no_window, %near : i1
    %sees = arith.andi %earlier, %reach : i1
    %visible = arith.ori %self, %sees : i1
    maskspec.visible %visible
  }
}
