// RUN: cm-opt %s | filecheck %s
// RUN: cm-opt %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | cm-opt | filecheck %s

// Expressions print with the parentheses that they need and no others.
// CHECK-LABEL: maskspec.spec @expr
maskspec.spec @expr(%a: index = 5, %b: index, %c: index = 7, %f: !maskspec.table<free>) {
  // CHECK-NEXT: a + b * c < a - b - c
  maskspec.assume (a + (b * c)) < ((a - b) - c)
  // CHECK-NEXT: a - (b - c) < (a + b) * c
  maskspec.assume a - (b - c) < (a + b) * c
  // CHECK-NEXT: a floordiv 2 mod 3 <= a * (b mod 3)
  maskspec.assume (a floordiv 2) mod 3 <= a * (b mod 3)
  // CHECK-NEXT: -a + -(b + c) < -a * 2
  maskspec.assume -a + -(b + c) < -a * 2
  // CHECK-NEXT: a - -3 < b * (-3)
  maskspec.assume a - -3 < b * (-3)
  // CHECK-NEXT: a < b and b <= c
  maskspec.assume a < b <= c
  // CHECK-NEXT: b < a and a == c
  maskspec.assume a > b and a == c
  // CHECK-NEXT: a < b and (b < c or not c < a)
  maskspec.assume a < b and (b < c or not c < a)
  // CHECK-NEXT: a < b or b < c and c < a
  maskspec.assume a < b or (b < c and c < a)
  // CHECK-NEXT: not (a < b and b < c)
  maskspec.assume not (a < b and b < c)
  // CHECK-NEXT: min(a, b + 1, max(b, c)) < abs(a - b)
  maskspec.assume min(a, b + 1, max(b, c)) < abs(a - b)
  // CHECK-NEXT: select(a < b, a, b) == f[a + f[b]]
  maskspec.assume select(a < b, a, b) == f[a + f[b]]
  // CHECK-NEXT: (exists d in [0, 3] : d < a or d < b) and a < c
  maskspec.assume (exists d in [0, 3] : d < a or d < b) and a < c
  // CHECK-NEXT: exists d in [0, 3] : (exists e in [d, 3] : e < a)
  maskspec.assume exists d in [0, 3] : exists e in [d, 3] : e < a
  // CHECK-NEXT: not a == b and not b == c + 1
  maskspec.assume a != b != c + 1
  // CHECK-NEXT: (forall d in [0, 3] : d < a or d < b) and a < c
  maskspec.assume (forall d in [0, 3] : d < a or d < b) and a < c
  // CHECK-NEXT: not (forall d in [0, 3] : (exists e in [0, d] : e < a))
  maskspec.assume not forall d in [0, 3] : exists e in [0, d] : e < a
  // CHECK-NEXT: true or false
  maskspec.assume true or false
}
