builtin.module {
  maskspec.spec @near packed (%cu_rows: !maskspec.table<free>, %cu_cols: !maskspec.table<free>, %longest: index) {
    maskspec.assume cu_rows[0] == 0 as "cu_seqlens[0] == 0"
    maskspec.assume for s in [0, cu_rows_length - 1) : cu_rows[s] <= cu_rows[s + 1] as "cu_seqlens nondecreasing"
    maskspec.assume cu_rows[cu_rows_length - 1] <= rows as "cu_seqlens[-1] <= rows"
    maskspec.assume for s in [0, cu_rows_length - 1) : cu_rows[s + 1] <= cu_rows[s] + longest as "cu_seqlens[s + 1] - cu_seqlens[s] <= max_seqlen"
    maskspec.assume cu_cols[0] == 0 as "cu_seqlens_k[0] == 0"
    maskspec.assume for s in [0, cu_cols_length - 1) : cu_cols[s] <= cu_cols[s + 1] as "cu_seqlens_k nondecreasing"
    maskspec.assume cu_cols[cu_cols_length - 1] <= cols as "cu_seqlens_k[-1] <= cols"
    maskspec.assume for s in [0, cu_cols_length - 1) : cu_cols[s + 1] <= cu_cols[s] + longest as "cu_seqlens_k[s + 1] - cu_seqlens_k[s] <= max_seqlen"
  }
  interval.table @near_rows of @near axis rows slots 1 where s = first s in [0, cu_rows_length - 1) : i < cu_rows[s + 1] {
    interval.region @all [cu_rows[s], cu_rows[s + 1]) {
      interval.span [max(cu_cols[s], cu_cols[s] + i - cu_rows[s] - 2), min(cu_cols[s + 1], cu_cols[s] + i - cu_rows[s] + 3)) from "all.0"
    }
  }
  interval.table @near_cols of @near axis cols slots 1 where s = first s in [0, cu_cols_length - 1) : j < cu_cols[s + 1] {
    interval.region @all [cu_cols[s], cu_cols[s + 1]) {
      interval.span [max(cu_rows[s], cu_rows[s] + j - cu_cols[s] - 2), min(cu_rows[s + 1], cu_rows[s] + j - cu_cols[s] + 3)) from "all.0"
    }
  }
  attention.tests of @near forward rows, dq rows, dkv cols symmetric
}
