// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions %s 2>&1 | filecheck %s
// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions=how=emit-error %s 2>&1 | filecheck %s --check-prefix=EMIT
// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions=how=no-location %s 2>&1 | filecheck %s --check-prefix=NOWHERE
// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions=how=bug %s 2>&1 | filecheck %s --check-prefix=BUG
// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions=how=invalid-ir %s 2>&1 | filecheck %s --check-prefix=INVALID
// RUN: not cm-opt --load %S/inputs/toy.py --reject-additions=limit=3 %s 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not cm-opt --reject-additions %s 2>&1 | filecheck %s --check-prefix=UNKNOWN

func.func @f(%a: i32) -> i32 {
  %b = arith.constant 1 : i32
  %c = arith.addi %a, %b : i32
  func.return %c : i32
}

// CHECK:      {{^.*}}pass_errors.mlir:11:3: error: no additions
// CHECK-NEXT:   %c = arith.addi %a, %b : i32
// CHECK-NEXT: {{^  \^$}}
// CHECK-NEXT: {{^}}note: for instance i = 3, j = 5
// CHECK-NEXT: {{^.*}}pass_errors.mlir:10:3: note: the operand
// CHECK-NEXT:   %b = arith.constant 1 : i32
// CHECK-NEXT: {{^  \^$}}

// EMIT:      {{^.*}}pass_errors.mlir:11:3: error: no additions

// Without an op, the error stands at what the pass was given.
// NOWHERE:   {{^.*}}pass_errors.mlir:9:1: error: no additions

// BUG:       {{^.*}}pass_errors.mlir:9:1: error: pass 'reject-additions' failed: KeyError: 'additions'
// BUG:       {{^.*}}toy.py:{{[0-9]+}}:17: note: raised here; CMIR_DEBUG=1 shows the traceback
// BUG-NEXT:      raise KeyError("additions")
// BUG-NOT:   Traceback

// INVALID:   {{^.*}}pass_errors.mlir:11:3: error: pass 'reject-additions' left invalid IR: '%c' is used where it is not defined

// OPTION:      {{^}}<pipeline>:1:18: error: pass 'reject-additions' has no option 'limit'; it has how, verbose, sizes
// OPTION-NEXT: {{^}}reject-additions{limit=3}
// OPTION-NEXT: {{^                 \^$}}

// UNKNOWN:   {{^}}cm-opt: error: unknown option '--reject-additions'
