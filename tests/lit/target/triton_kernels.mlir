// RUN: not cm-opt --split-input-file -t triton %s 2>&1 | filecheck %s

// Kernels that a file brings along must be the ones that are launched: anything else would be another mask.

// CHECK: {{^.*}}: error: @p needs one dkv kernel, it has 0
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints [%i, %i)
  }
}
attention.kernel @m_forward forward of @p {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}
attention.kernel @m_dq dq of @p {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

// CHECK: {{^.*}}: error: @p is launched with a forward kernel that tests 2 slots of rows unrolled, not 1 slots of rows unrolled
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints [%i, %i) [%i, %i)
  }
}
attention.kernel @m_forward forward of @p {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

// CHECK: {{^.*}}: error: @p is launched with a forward kernel that tests 1 slots of rows unrolled, not 1 slots of cols unrolled
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints [%i, %i)
  }
}
attention.kernel @m_forward forward of @p {
  attention.tiles partial schedule rows {
    attention.visible axis cols slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}

// -----

// CHECK: {{^.*}}: error: @p needs one forward kernel, it has 0
descriptor.preprocess @p of @m () {
  descriptor.slots rows (%i) {
    descriptor.endpoints [%i, %i)
  }
}
attention.kernel @m_forward forward of @another {
  attention.tiles partial schedule rows {
    attention.visible axis rows slots 1 unrolled
  }
  attention.tiles full schedule rows {
  }
}
