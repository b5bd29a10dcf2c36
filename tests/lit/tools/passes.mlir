// RUN: cm-opt %s --cse | filecheck %s
// RUN: cm-opt --cse %s | filecheck %s
// RUN: cm-opt -p cse < %s | filecheck %s
// RUN: cm-opt --cse - < %s | cm-opt | filecheck %s

// A pass flag never swallows the file that follows it, and standard input is the default.

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %[[sum:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %{{.*}} = arith.muli %[[sum]], %[[sum]] : i32
func.func @twice(%a: i32, %b: i32) -> i32 {
  %x = arith.addi %a, %b : i32
  %y = arith.addi %a, %b : i32
  %z = arith.muli %x, %y : i32
  func.return %z : i32
}
