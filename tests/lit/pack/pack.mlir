// RUN: cm-opt --split-input-file --extract-intervals --canonicalize-intervals --merge-slots --transpose --pack %s | filecheck %s

// Many sequences in one row of tokens: `s` is the one that holds the row (column).

// Causal: a row's columns start where its sequence does; ends are clamped into the sequence. The facts say what cumulative lengths are.
maskspec.spec @causal() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// CHECK-LABEL: maskspec.spec @causal packed (%cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK-NEXT:   maskspec.assume cu_rows[0] == 0 as "cu_seqlens[0] == 0"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : cu_rows[s] <= cu_rows[s + 1] as "cu_seqlens nondecreasing"
// CHECK-NEXT:   maskspec.assume cu_rows[cu_rows_length - 1] <= rows as "cu_seqlens[-1] <= rows"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : cu_rows[s + 1] <= cu_rows[s] + longest as "cu_seqlens[s + 1] - cu_seqlens[s] <= max_seqlen"
// CHECK-NEXT:   maskspec.assume cu_cols[0] == 0 as "cu_seqlens_k[0] == 0"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_cols_length - 1) : cu_cols[s] <= cu_cols[s + 1] as "cu_seqlens_k nondecreasing"
// CHECK-NEXT:   maskspec.assume cu_cols[cu_cols_length - 1] <= cols as "cu_seqlens_k[-1] <= cols"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_cols_length - 1) : cu_cols[s + 1] <= cu_cols[s] + longest as "cu_seqlens_k[s + 1] - cu_seqlens_k[s] <= max_seqlen"
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @causal_rows of @causal axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @causal_cols of @causal axis cols slots 1 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s]), cu_rows[s + 1]) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Bottom-right alignment: `rows` and `cols` are those of the sequence.
maskspec.spec @bottom_right() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i + cols - rows
  }
}

// CHECK-LABEL: maskspec.spec @bottom_right packed (%cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:      }
// CHECK-NEXT: interval.table @bottom_right_rows of @bottom_right axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], i + cu_cols[s + 1] - cu_rows[s + 1] + 1)) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @bottom_right_cols of @bottom_right axis cols slots 1 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s + 1] + j - cu_cols[s + 1]), cu_rows[s + 1]) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A scalar is one per sequence, in the facts too.
maskspec.spec @window(%w: index) {
  maskspec.assume 0 <= w
  maskspec.region @all rows [0, rows) {
    maskspec.clause i - w <= j and j <= i
  }
}

// CHECK-LABEL: maskspec.spec @window packed (%w: !maskspec.table<free>, %cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:        maskspec.assume for s in [0, cu_rows_length - 1) : 0 <= w[s] as "0 <= w, in every sequence"
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @window_rows of @window axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_cols[s], cu_cols[s] + i - cu_rows[s] - w[s]), min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @window_cols of @window axis cols slots 1 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s]), min(cu_rows[s + 1], cu_rows[s] + j + w[s] - cu_cols[s] + 1)) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Guards of Regions, from scalars, depend on the row through its sequence.
maskspec.spec @hstu(%history: index, %start: !maskspec.table<row>) {
  maskspec.assume rows == cols and 0 <= history and history <= rows
  maskspec.assume for i in [history, rows) : history <= start[i] and start[i] <= i
  maskspec.nondecreasing start over [history, rows)
  maskspec.region @history rows [0, history) {
    maskspec.clause j <= i
  }
  maskspec.region @candidate rows [history, rows) {
    maskspec.clause j < history
    maskspec.clause start[i] <= j and j <= i
  }
}

// CHECK-LABEL: maskspec.spec @hstu packed (%history: !maskspec.table<free>, %start: !maskspec.table<row>, %cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:        maskspec.assume for s in [0, cu_rows_length - 1) : cu_cols[s] + cu_rows[s + 1] == cu_cols[s + 1] + cu_rows[s] as "rows == cols, in every sequence"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : 0 <= history[s] as "0 <= history, in every sequence"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : cu_rows[s] + history[s] <= cu_rows[s + 1] as "history <= rows, in every sequence"
// CHECK-NEXT:   maskspec.assume i < max(cu_rows[s], cu_rows[s] + history[s]) or cu_rows[s + 1] <= i or history[s] <= start[i] where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "history <= start[i] for i in [history, rows), in every sequence"
// CHECK-NEXT:   maskspec.assume i < max(cu_rows[s], cu_rows[s] + history[s]) or cu_rows[s + 1] <= i or cu_rows[s] + start[i] <= i where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "start[i] <= i for i in [history, rows), in every sequence"
// CHECK-NEXT:   maskspec.assume i < max(cu_rows[s], cu_rows[s] + history[s]) or cu_rows[s + 1] <= i + 1 or start[i] <= start[min(max(i + 1, cu_rows[s]), cu_rows[s + 1] - 1)] where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "start nondecreasing over [history, rows), in every sequence"
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @hstu_rows of @hstu axis rows slots 2 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @history [cu_rows[s], min(cu_rows[s + 1], cu_rows[s] + history[s])) {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "history.0"
// CHECK-NEXT:   }
// CHECK-NEXT:   interval.region @candidate [max(cu_rows[s], cu_rows[s] + history[s]), cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], cu_cols[s] + history[s])) from "candidate.0"
// CHECK-NEXT:     interval.span [max(cu_cols[s], cu_cols[s] + start[i]), min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "candidate.1"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @hstu_cols of @hstu axis cols slots 1 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s]), min(cu_rows[s + 1], cu_rows[s] + select(j < history[s] + cu_cols[s], cu_rows[s + 1] - cu_rows[s], first i in [history[s], cu_rows[s + 1] - cu_rows[s]) : j < start[min(max(cu_rows[s] + i, cu_rows[s]), cu_rows[s + 1] - 1)] + cu_cols[s]))) from "history.0", "candidate.0", "candidate.1"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Slots that may meet still do: `fuse` is what it was. Searches stay inside the sequence.
maskspec.spec @shared_prompt(%prompt: !maskspec.table<row>, %segment: !maskspec.table<row>) {
  maskspec.assume segment[i] <= i
  maskspec.nondecreasing prompt
  maskspec.nondecreasing segment
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and j < prompt[i]
    maskspec.clause segment[i] <= j and j <= i
  }
}

// CHECK-LABEL: maskspec.spec @shared_prompt packed (%prompt: !maskspec.table<row>, %segment: !maskspec.table<row>, %cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:        maskspec.assume i < cu_rows[s] or cu_rows[s + 1] <= i or cu_rows[s] + segment[i] <= i where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "segment[i] <= i, in every sequence"
// CHECK-NEXT:   maskspec.assume i < cu_rows[s] or cu_rows[s + 1] <= i + 1 or prompt[i] <= prompt[min(max(i + 1, cu_rows[s]), cu_rows[s + 1] - 1)] where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "prompt nondecreasing, in every sequence"
// CHECK-NEXT:   maskspec.assume i < cu_rows[s] or cu_rows[s + 1] <= i + 1 or segment[i] <= segment[min(max(i + 1, cu_rows[s]), cu_rows[s + 1] - 1)] where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "segment nondecreasing, in every sequence"
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @shared_prompt_rows of @shared_prompt axis rows slots 2 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) fuse [(0, 1)] {
// CHECK-NEXT:     interval.span [cu_cols[s], min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1, cu_cols[s] + prompt[i])) from "all.0"
// CHECK-NEXT:     interval.span [max(cu_cols[s], cu_cols[s] + segment[i]), min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 1)) from "all.1"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @shared_prompt_cols of @shared_prompt axis cols slots 2 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) fuse [(0, 1)] {
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s], cu_rows[s] + (first i in [0, cu_rows[s + 1] - cu_rows[s]) : j < prompt[min(max(cu_rows[s] + i, cu_rows[s]), cu_rows[s + 1] - 1)] + cu_cols[s])), cu_rows[s + 1]) from "all.0"
// CHECK-NEXT:     interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s]), min(cu_rows[s + 1], cu_rows[s] + (first i in [0, cu_rows[s + 1] - cu_rows[s]) : j < segment[min(max(cu_rows[s] + i, cu_rows[s]), cu_rows[s + 1] - 1)] + cu_cols[s]))) from "all.1"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A table per row is read inside the sequence, where it is not read at the row itself; in a fact about the sequence, which
// may be empty, it then reads 0. Of a free table a sequence has the entries from one to another; a fact about entries
// holds for those of every sequence. Entries that the rule reads of it must be there.
maskspec.spec @lookup(%start: !maskspec.table<row>, %other: !maskspec.table<free>) {
  maskspec.assume start[0] == 0 and 1 <= other[0]
  maskspec.assume for e in [1, 4) : other[e] <= rows
  maskspec.region @all rows [0, rows) {
    maskspec.clause start[start[i]] <= j and j < other[i]
  }
}

// CHECK-LABEL: maskspec.spec @lookup packed (%start: !maskspec.table<row>, %other: !maskspec.table<free>, %other_from: !maskspec.table<free>, %other_to: !maskspec.table<free>, %cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:        maskspec.assume for s in [0, cu_rows_length - 1) : 0 <= other_from[s] and other_from[s] <= other_to[s] and other_to[s] <= other_length as "0 <= cu[s] <= cu[s + 1] <= length of table 'other'"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : select(cu_rows[s] < cu_rows[s + 1], start[min(cu_rows[s], cu_rows[s + 1] - 1)], 0) == 0 as "start[0] == 0, in every sequence"
// CHECK-NEXT:   maskspec.assume for s in [0, cu_rows_length - 1) : 0 < select(other_from[s] < other_to[s], other[min(other_from[s], other_to[s] - 1)], 0) as "0 < other[0], in every sequence"
// CHECK-NEXT:   maskspec.assume for e in [0, other_length) : e <= other_from[s] or min(other_to[s], other_from[s] + 4) <= e or cu_rows[s] + other[e] <= cu_rows[s + 1] where s = first s in [0, cu_rows_length - 1) : e < other_to[s] as "other[e] <= rows for e in [1, 4), in every sequence"
// CHECK-NEXT:   maskspec.assume i < cu_rows[s] or cu_rows[s + 1] <= i or cu_cols[s + 1] <= start[min(max(cu_rows[s] + start[i], cu_rows[s]), cu_rows[s + 1] - 1)] + cu_cols[s] or other_from[s] + i < other_to[s] + cu_rows[s] where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] as "other[i] is an entry of other, in every sequence"
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @lookup_rows of @lookup axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [max(cu_cols[s], cu_cols[s] + start[min(max(cu_rows[s] + start[i], cu_rows[s]), cu_rows[s + 1] - 1)]), min(cu_cols[s + 1], cu_cols[s] + select(other_from[s] < other_to[s], other[min(max(other_from[s] + i - cu_rows[s], other_from[s]), other_to[s] - 1)], 0))) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @lookup_cols of @lookup axis cols where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [cu_rows[s], cu_rows[s + 1]) residual cu_cols[s] + start[min(max(cu_rows[s] + start[min(max(i, cu_rows[s]), cu_rows[s + 1] - 1)], cu_rows[s]), cu_rows[s + 1] - 1)] <= j and j < select(other_from[s] < other_to[s], other[min(max(other_from[s] + i - cu_rows[s], other_from[s]), other_to[s] - 1)], 0) + cu_cols[s] because "nothing says that table 'start' is nondecreasing" from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Names that are taken are not taken again.
maskspec.spec @clash(%s: index, %cu_rows: index, %longest: index) {
  maskspec.region @all rows [s, cu_rows) {
    maskspec.clause j < longest
  }
}

// CHECK-LABEL: maskspec.spec @clash packed (%s: !maskspec.table<free>, %cu_rows: !maskspec.table<free>, %longest: !maskspec.table<free>, %cu_rows_: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest_: index) {
// CHECK:      }
// CHECK-NEXT: interval.table @clash_rows of @clash axis rows slots 1 where s_ = first s_ in [0, cu_rows__length - 1) : i < cu_rows_[s_ + 1] {
// CHECK-NEXT:   interval.region @all [max(cu_rows_[s_], cu_rows_[s_] + s[s_]), min(cu_rows_[s_ + 1], cu_rows_[s_] + cu_rows[s_])) {
// CHECK-NEXT:     interval.span [cu_cols[s_], min(cu_cols[s_ + 1], cu_cols[s_] + longest[s_])) from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @clash_cols of @clash axis cols slots 1 where s_ = first s_ in [0, cu_cols_length - 1) : j < cu_cols[s_ + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s_], cu_cols[s_ + 1]) {
// CHECK-NEXT:     interval.span [max(cu_rows_[s_], cu_rows_[s_] + s[s_]), min(cu_rows_[s_ + 1], cu_rows_[s_] + cu_rows[s_])) when j < longest[s_] + cu_cols[s_] from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A residual is about the sequence too.
maskspec.spec @stride() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause (i - j) mod 3 == 0
  }
}

// CHECK-LABEL: maskspec.spec @stride packed (%cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
// CHECK:      }
// CHECK-NEXT: interval.table @stride_rows of @stride axis rows where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_rows[s], cu_rows[s + 1]) {
// CHECK-NEXT:     interval.span [cu_cols[s], cu_cols[s + 1]) residual (i + cu_cols[s] - cu_rows[s] - j) mod 3 == 0 because "'(i - j) mod 3' repeats along j" from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: interval.table @stride_cols of @stride axis cols where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
// CHECK-NEXT:   interval.region @all [cu_cols[s], cu_cols[s + 1]) {
// CHECK-NEXT:     interval.span [cu_rows[s], cu_rows[s + 1]) residual (i + cu_cols[s] - cu_rows[s] - j) mod 3 == 0 because "'(i - j) mod 3' repeats along i" from "all.0"
// CHECK-NEXT:   }
// CHECK-NEXT: }
