// RUN: cm-opt --split-input-file --verify-diagnostics %s

// What the verifier of maskspec says, at the op that is wrong.

maskspec.spec @names(%history: index, %start: !maskspec.table<row>) {
  // expected-error@+1 {{unknown name 'histroy'; did you mean 'history'?}}
  maskspec.assume histroy <= rows
}

// -----

maskspec.spec @nothing_close(%history: index) {
  // expected-error@+1 {{unknown name 'zzz'; known here: cols, history, i, j, rows}}
  maskspec.assume zzz <= rows
}

// -----

maskspec.spec @table_name(%start: !maskspec.table<row>) {
  // expected-error@+1 {{unknown name 'strat'; did you mean 'start'?}}
  maskspec.assume strat[i] <= i
}

// -----

maskspec.spec @index_as_a_table() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{'j' is the column and no table: it has no entries}}
    maskspec.clause j[i] <= i
  }
}

// -----

maskspec.spec @bare_table(%start: !maskspec.table<row>) {
  // expected-error@+1 {{'start' is a table: read an entry of it, as in start[i]}}
  maskspec.assume start <= rows
}

// -----

maskspec.spec @indexed_scalar(%history: index) {
  // expected-error@+1 {{'history' is not a table but a scalar: write history without an index}}
  maskspec.assume history[i] <= rows
}

// -----

maskspec.spec @guard_is_no_range(%history: index) {
  // expected-error@+1 {{'i' has no meaning here: this expression is one number for the whole sequence}}
  maskspec.region @all rows [i, rows) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @guard_is_a_condition(%history: index) {
  // expected-error@+1 {{expected an integer, got a condition: 0 <= history}}
  maskspec.region @all rows [0 <= history, rows) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @no_guard() {
  // expected-error@+1 {{expected the row guard: rows [lo, hi)}}
  maskspec.region @all (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @closed_guard() {
  // expected-error@+1 {{expected ')': a range here is [lo, hi)}}
  maskspec.region @all rows [0, rows] (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @not_boolean() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{the visibility rule must be a condition (i1), got index}}
    maskspec.visible %j
  }
}

// -----

maskspec.spec @exists_not_boolean() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %e = maskspec.exists %d in [0, 2] {
      // expected-error@+1 {{the body of 'exists' must be a condition (i1), got index}}
      maskspec.yield %d
    }
    maskspec.visible %e
  }
}

// -----

maskspec.spec @exists_ends(%history: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{the ends of 'exists' are known at compile time: 'history' is not static}}
    %e = maskspec.exists %d in [0, history] {
      %v = arith.cmpi sle, %d, %j : index
      maskspec.yield %v
    }
    maskspec.visible %e
  }
}

// -----

maskspec.spec @wrong_axis(%start: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{table 'start' has one entry per row but is indexed by a column: start[j]; declare it per col, or free if rows and columns share it}}
    %s = maskspec.lookup %start[%j]
    %v = arith.cmpi sle, %s, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @wrong_axis_in_fact(%evict: !maskspec.table<col>) {
  // expected-error@+1 {{table 'evict' has one entry per column but is indexed by a row: evict[i]; declare it per row, or free if rows and columns share it}}
  maskspec.assume i <= evict[i]
}

// -----

maskspec.spec @two_indices() {
  // expected-error@+1 {{a fact ranges over rows (i) or columns (j), not both}}
  maskspec.assume i <= j
}

// -----

maskspec.spec @other_index(%start: !maskspec.table<row>) {
  // expected-error@+1 {{a fact for i may not read another index}}
  maskspec.assume for i in [0, rows) : start[i] <= j
}

// -----

maskspec.spec @entries_of_what(%history: index) {
  // expected-error@+1 {{a fact for e is about entries of a free table: it must read one at e}}
  maskspec.assume for e in [0, 8) : e <= history
}

// -----

maskspec.spec @entries_of_rows(%start: !maskspec.table<row>) {
  // expected-error@+1 {{'start' is read along rows or columns: write the fact with i or j}}
  maskspec.assume for e in [0, 8) : 0 <= start[e]
}

// -----

// The index would hide the metadatum, and a static of that name would be folded into it.
maskspec.spec @index_is_metadata(%n: index = 3, %f: !maskspec.table<free>) {
  // expected-error@+1 {{'n' cannot name an index: it is metadata of the spec}}
  maskspec.assume for n in [0, 8) : 0 <= f[n]
}

// -----

maskspec.spec @index_is_keyword(%f: !maskspec.table<free>) {
  // expected-error@+1 {{'rows' cannot name an index: it is a keyword or no identifier}}
  maskspec.assume for rows in [0, 8) : 0 <= f[rows]
}

// -----

// What an `exists` binds has no meaning beside it.
maskspec.spec @scope(%n: index) {
  // expected-error@+1 {{unknown name 'd'}}
  maskspec.assume (exists d in [0, 3] : d == n) and d <= n
}

// -----

maskspec.spec @made_by_the_compiler(%start: !maskspec.table<row>) {
  // expected-error@+1 {{'first' is what the compiler makes of a monotone table; a spec cannot say it}}
  maskspec.region @all rows [first i in [0, rows) : 3 <= start[i], rows) (%i, %j) {
    %v = arith.constant true
    maskspec.visible %v
  }
}

// -----

maskspec.spec @monotone_scalar(%history: index, %start: !maskspec.table<row>) {
  // expected-error@+1 {{unknown name 'history'; known here: start}}
  maskspec.nondecreasing history
}

// -----

// expected-error@+1 {{'history' is declared twice}}
maskspec.spec @twice(%history: index) {
  maskspec.constants @history [1, 2]
}

// -----

// The length of a free table has a name that facts use.
// expected-error@+1 {{'f_length' is the length of a free table; give the metadatum another name}}
maskspec.spec @length(%f: !maskspec.table<free>, %f_length: index) {
}

// -----

// expected-error@+1 {{'rows' cannot name metadata: it is a keyword or no identifier (letters, digits, _)}}
maskspec.spec @keyword(%rows: index) {
}

// -----

// expected-error@+1 {{metadata 'x' must be an index (a scalar) or a !maskspec.table, got i32}}
maskspec.spec @type(%x: i32) {
}

// -----

// expected-error@+1 {{table 't' cannot be static; use maskspec.constants}}
maskspec.spec @static_table(%t: !maskspec.table<row> = 3) {
}

// -----

maskspec.spec @constants(%n: index) {
  // expected-error@+1 {{a constant table is computed at compile time: 'n' is not static}}
  maskspec.constants @half for d in [0, n) : d
}

// -----

maskspec.spec @clauses() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{a clause is a conjunction of comparisons; 'or' belongs in the surface rule: write a second clause, or the rule in SSA}}
    maskspec.clause j <= i or j < 4
  }
}

// -----

maskspec.spec @forall_in_a_clause() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{a clause is a conjunction of comparisons; 'forall' belongs in the surface rule: write the rule in SSA}}
    maskspec.clause j <= i and (forall d in [0, 3] : j + d != 7)
  }
}

// -----

maskspec.spec @not_exists_in_a_clause() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{a clause is a conjunction of comparisons; 'not' belongs in the surface rule: write the rule in SSA}}
    maskspec.clause j <= i and not (exists d in [0, 3] : j + d == 7)
  }
}

// -----

maskspec.spec @unequal_in_a_clause() {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{a clause is a conjunction of comparisons, and '!=' is two of them: write two clauses, one with j < i + 1 and one with i + 1 < j}}
    maskspec.clause j <= 2 * i and j != i + 1
  }
}

// -----

maskspec.spec @mixed() {
  // expected-error@+1 {{a Region without (%i, %j) holds clauses only, found 'arith.constant'}}
  maskspec.region @all rows [0, rows) {
    %v = arith.constant true
  }
}

// -----

maskspec.spec @stray() {
  // expected-error@-1 {{a spec holds facts, constants, layouts and Regions; found 'arith.constant'}}
  %v = arith.constant true
}

// -----

maskspec.spec @layout_axis() {
  // expected-error@+1 {{a layout is of rows, of cols, or of rows, cols; got rows, rows}}
  maskspec.layout rows, rows = residue(of = 2)
}

// -----

maskspec.spec @layout_order() {
  // expected-error@+1 {{unknown order 'tiles'; the orders are patch, zigzag, striped, residue, table}}
  maskspec.layout rows = tiles(of = 2)
}

// -----

maskspec.spec @layout_argument() {
  // expected-error@+1 {{'residue' takes of; got 'rank'}}
  maskspec.layout rows = residue(of = 2, rank = 1)
}

// -----

maskspec.spec @layout_list() {
  // expected-error@+1 {{'size' of 'patch' is a list: [8, 16]}}
  maskspec.layout rows = patch(grid = [2, 2], size = 2)
}

// -----

maskspec.spec @layout_number() {
  // expected-error@+1 {{'of' of 'residue' is a single number}}
  maskspec.layout rows = residue(of = [2])
}

// -----

maskspec.spec @layout_missing() {
  // expected-error@+1 {{'patch' needs 'size'}}
  maskspec.layout rows = patch(grid = [2, 2])
}

// -----

maskspec.spec @layout_static(%n: index) {
  // expected-error@+1 {{a layout is known at compile time: 'n' is not static}}
  maskspec.layout rows = residue(of = n)
}

// -----

maskspec.spec @layout_table(%t: !maskspec.table<free>) {
  // expected-error@+1 {{'t' is declared already: the layout declares the table of its order}}
  maskspec.layout rows = table(name = t)
}

// -----

maskspec.spec @layout_table_name() {
  // expected-error@+1 {{'name' is the name of the table that will give the order, got '3'}}
  maskspec.layout rows = table(name = 3)
}

// -----

maskspec.spec @layout_twice() {
  // expected-error@+1 {{the rows have two layouts; a spec gives each axis one at most}}
  maskspec.layout rows, cols = residue(of = 2)
  maskspec.layout rows = residue(of = 3)
}

// -----

// expected-error@+1 {{an entry holds 1 to 4096 integers, got 0}}
maskspec.spec @no_entry(%sel: !maskspec.table<row x 0>) {
}

// -----

// expected-error@+1 {{an entry holds 1 to 4096 integers, got 4097}}
maskspec.spec @large_entry(%sel: !maskspec.table<free x 4097>) {
}

// -----

maskspec.spec @one_index(%sel: !maskspec.table<row x 4>) {
  // expected-error@+1 {{an entry of table 'sel' is a list of 4: read it by two indices, as in sel[i, 0]}}
  maskspec.assume 0 <= sel[i]
}

// -----

maskspec.spec @two_indices_of_one(%seen: !maskspec.table<col>) {
  // expected-error@+1 {{an entry of table 'seen' is one integer: read it by one index, as in seen[j]}}
  maskspec.assume 0 <= seen[j, 0]
}

// -----

maskspec.spec @one_index_in_a_rule(%sel: !maskspec.table<free x 4>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{an entry of table 'sel' is a list of 4: read it by two indices, as in sel[k, 0]}}
    %s = maskspec.lookup %sel[%i]
    %v = arith.cmpi sle, %s, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @two_indices_of_constants() {
  maskspec.constants @half [3, 2, 1]
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{an entry of table 'half' is one integer: read it by one index, as in half[k]}}
    %s = maskspec.lookup @half[%i, %j]
    %v = arith.cmpi sle, %s, %j : index
    maskspec.visible %v
  }
}

// -----

// The axis is that of the first index; the second may be anything.
maskspec.spec @axis_of_a_list(%sel: !maskspec.table<col x 4>) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    %s = maskspec.lookup %sel[%j, %i]
    // expected-error@+1 {{table 'sel' has one entry per column but is indexed by a row: sel[i]; declare it per row, or free if rows and columns share it}}
    %t = maskspec.lookup %sel[%i, %j]
    %v = arith.cmpi sle, %s, %t : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @index_of_a_table() {
  maskspec.constants @half [3, 2, 1]
  maskspec.region @all rows [0, rows) (%i, %j) {
    %p = arith.cmpi sle, %i, %j : index
    // expected-error@+1 {{a table is read by integers (index), got i1}}
    %s = maskspec.lookup @half[%p]
    %v = arith.cmpi sle, %s, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @no_table(%s: index) {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{a look-up needs a table}}
    %e = maskspec.lookup %s[%i]
    %v = arith.cmpi sle, %e, %j : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @alignment() {
  maskspec.region @all rows [0, rows) (%i, %j) {
    // expected-error@+1 {{expected an alignment: top_left or bottom_right, got 'bottom_left'}}
    %p = maskspec.position bottom_left %i
    %v = arith.cmpi sle, %j, %p : index
    maskspec.visible %v
  }
}

// -----

maskspec.spec @contiguous_scalar(%n: index, %seg: !maskspec.table<row>) {
  // expected-error@+1 {{unknown name 'n'; known here: seg}}
  maskspec.contiguous n
}

// -----

maskspec.spec @entry_number(%t: !maskspec.table<row x 2>) {
  maskspec.region @all rows [0, rows) {
    // expected-error@+1 {{t[i, 2]: an entry has numbers 0 to 1}}
    maskspec.clause t[i, 2] <= j
  }
}

// -----

// expected-error@+1 {{unknown name 'slot' in !maskspec.table<row x slot>; did you mean 'slots'?}}
maskspec.spec @misspelt_static(%slots: index = 4, %sel: !maskspec.table<row x slot>) {
}

// -----

// expected-error@+1 {{unknown name 'K' in !maskspec.table<row x K>; the statics are none}}
maskspec.spec @unknown_static(%sel: !maskspec.table<row x K>) {
}

// -----

// expected-error@+1 {{the integers of an entry are counted at compile time: 'n' in !maskspec.table<free x n> is not static}}
maskspec.spec @counted_by_a_scalar(%n: index, %sel: !maskspec.table<free x n>) {
}

// -----

// expected-error@+1 {{an entry holds 1 to 4096 integers, got slots = 0}}
maskspec.spec @counted_by_nothing(%slots: index = 0, %sel: !maskspec.table<row x slots>) {
}

// -----

// expected-error@+1 {{an entry holds 1 to 4096 integers, got slots = 4097}}
maskspec.spec @counted_by_too_many(%slots: index = 4097, %sel: !maskspec.table<row x slots>) {
}

// -----

maskspec.spec @number_beyond_a_static(%slots: index = 2, %t: !maskspec.table<row x slots>) {
  // expected-error@+1 {{t[i, 2]: an entry has numbers 0 to 1}}
  maskspec.assume 0 <= t[i, 2]
}

// -----

// expected-error@+1 {{Expected integer literal: a number, or the name of a static}}
maskspec.spec @neither(%t: !maskspec.table<row x "slots">) {
}
