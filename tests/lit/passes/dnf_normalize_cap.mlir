// RUN: cm-opt --verify-diagnostics --dnf-normalize=max-clauses=8 %s
// RUN: cm-opt --dnf-normalize %s | filecheck %s

// (a or b) and (c or d) and ... doubles with every factor; the cap is an error, not a long wait.

// CHECK-COUNT-16: maskspec.clause
maskspec.spec @product(%a: index, %b: index, %c: index, %d: index) {
  // expected-error@+1 {{the rule of Region @all has more than 8 clauses in disjunctive normal form; split the Region, or raise the cap: --dnf-normalize=max-clauses=32}}
  maskspec.region @all rows [0, rows) (%i, %j) {
    %v1 = arith.cmpi ne, %j, %a : index
    %v2 = arith.cmpi ne, %j, %b : index
    %v3 = arith.cmpi ne, %j, %c : index
    %v4 = arith.cmpi ne, %j, %d : index
    %v5 = arith.andi %v1, %v2 : i1
    %v6 = arith.andi %v3, %v4 : i1
    %v7 = arith.andi %v5, %v6 : i1
    maskspec.visible %v7
  }
}
