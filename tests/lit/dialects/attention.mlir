// RUN: cm-opt %s | filecheck %s
// RUN: cm-opt %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

// CHECK:      attention.kernel @m_forward forward of @m_preprocess {
// CHECK-NEXT:   attention.tiles partial schedule rows {
// CHECK-NEXT:     attention.visible axis cols slots 2 unrolled
// CHECK-NEXT:   }
// CHECK-NEXT:   attention.tiles full schedule rows {
// CHECK-NEXT:   }
// CHECK-NEXT: }
// GENERIC:      "attention.kernel"() <{sym_name = "m_forward", role = "forward", preprocess = "m_preprocess"}> ({
// GENERIC-NEXT:   "attention.tiles"() <{state = "partial", schedule = "rows"}> ({
// GENERIC-NEXT:     "attention.visible"() <{mode = "unrolled", axis = "cols", slots = #builtin.int<2>}> : () -> ()
// GENERIC-NEXT:   }) : () -> ()
// GENERIC-NEXT:   "attention.tiles"() <{state = "full", schedule = "rows"}> ({
attention.kernel @m_forward forward of @m_preprocess {
  attention.tiles partial schedule rows {
    attention.visible axis cols slots 2 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// CHECK:      attention.kernel @m_dkv dkv of @m_preprocess {
// CHECK-NEXT:   attention.tiles partial schedule cols {
// CHECK-NEXT:     attention.visible axis rows slots 32 live
attention.kernel @m_dkv dkv of @m_preprocess {
  attention.tiles partial schedule cols {
    attention.visible axis rows slots 32 live
  }
  attention.tiles full schedule cols {
  }
}

// A name is any string.
// CHECK:      attention.kernel @"k\0A@triton.jit" dq of @"p \22q\22" {
attention.kernel @"k\0A@triton.jit" dq of @"p \"q\"" {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// Bits are neither of rows nor of columns.
// CHECK:      attention.tests of @m forward bits, dq bits, dkv bits
// CHECK-NEXT: attention.tests of @n forward rows, dq cols, dkv rows symmetric
// GENERIC:    "attention.tests"() <{spec = "m", chosen = ["bits", "bits", "bits"]}> : () -> ()
attention.tests of @m forward bits, dq bits, dkv bits
attention.tests of @n forward rows, dq cols, dkv rows symmetric

// CHECK:      attention.kernel @m_dq dq of @m_preprocess {
// CHECK-NEXT:   attention.tiles partial schedule rows {
// CHECK-NEXT:     attention.visible bits
// GENERIC:        "attention.visible"() <{mode = "bits"}> : () -> ()
attention.kernel @m_dq dq of @m_preprocess {
  attention.tiles partial schedule rows {
    attention.visible bits
  }
  attention.tiles full schedule rows {
  }
}

// Words of a table, and of its live slots only; one kernel for all gradients.
// CHECK:      attention.kernel @m_backward backward of @m_preprocess {
// CHECK-NEXT:   attention.tiles partial schedule cols {
// CHECK-NEXT:     attention.visible axis cols slots 2 words
// GENERIC:        "attention.visible"() <{mode = "words", axis = "cols", slots = #builtin.int<2>}> : () -> ()
attention.kernel @m_backward backward of @m_preprocess {
  attention.tiles partial schedule cols {
    attention.visible axis cols slots 2 words
  }
  attention.tiles full schedule cols {
  }
}

// CHECK:      attention.kernel @n_forward forward of @n_preprocess {
// CHECK-NEXT:   attention.tiles partial schedule rows {
// CHECK-NEXT:     attention.visible axis rows slots 32 live words
// GENERIC:        "attention.visible"() <{mode = "live words", axis = "rows", slots = #builtin.int<32>}> : () -> ()
attention.kernel @n_forward forward of @n_preprocess {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 32 live words
  }
  attention.tiles full schedule rows {
  }
}
