// RUN: cm-opt --canonicalize --print-ir-after-all --dce %s 2>&1 | filecheck %s
// RUN: cm-opt --canonicalize --print-ir-before-all %s 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: cm-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: cm-opt --print-debuginfo %s | filecheck %s --check-prefix=LOCATION

// CHECK:      // -----// IR Dump After canonicalize //----- //
// CHECK-NEXT: builtin.module {
// CHECK-NEXT:   func.func @add_zero
// CHECK-NEXT:     func.return %a : i32
// CHECK:      // -----// IR Dump After dce //----- //
// CHECK-NEXT: builtin.module {
// BEFORE:      // -----// IR Dump Before canonicalize //----- //
// BEFORE:          arith.addi
// BEFORE-NOT:      arith.addi
// GENERIC:     "arith.addi"(%a, %zero)
// LOCATION:    arith.addi {{.*}} loc("{{.*}}print_ir.mlir":19:3)
func.func @add_zero(%a: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %a, %zero : i32
  func.return %sum : i32
}
