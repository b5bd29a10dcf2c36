// RUN: not cm-opt --split-input-file -t triton %s 2>&1 | filecheck %s

// One module of kernels is one mask, at whatever stage the masks are.

// CHECK:      {{^.*}}triton_errors.mlir:16:1: error: one module of kernels is one mask; print one maskspec.spec at a time
// CHECK-NEXT: maskspec.spec @b() {
// CHECK-NEXT: {{^\^$}}

maskspec.spec @a() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// The second is refused where it stands.
maskspec.spec @b() {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i
  }
}

// -----

// CHECK: {{^.*}}: error: one module of kernels is one mask; print one maskspec.spec at a time

maskspec.spec @later() {
}
descriptor.preprocess @a_preprocess of @a () {
  descriptor.slots rows (%i) {
    %0 = arith.constant 0 : index
    descriptor.endpoints [%0, %0)
  }
}

// -----

// CHECK: {{^.*}}: error: there is no mask to print: the module holds no maskspec.spec

builtin.module {
}

// -----

// Nothing is printed of a spec that does not verify.
// CHECK: {{^.*}}: error: a rule ends in 'maskspec.visible': {{.*}}
// CHECK-NOT: triton.jit

maskspec.spec @hole() {
  maskspec.region @all rows [0, rows) (%i, %j) {
  }
}
