// RUN: cm-opt --load %S/inputs/toy.py --reject-additions=how=quiet,sizes=1,2,verbose --print-ir-after-all %s 2>&1 | filecheck %s
// RUN: cm-opt --reject-additions='{how=quiet verbose sizes=1,2}' --load=%S/inputs/toy.py --print-ir-after-all %s 2>&1 | filecheck %s
// RUN: cm-opt --load %S/inputs/toy.py -t 'count{unit="operations"}' %s | filecheck %s --check-prefix=TARGET
// RUN: cm-opt --load %S/inputs/toy.py --twice --print-ir-after-all %s 2>&1 | filecheck %s --check-prefix=EXPAND
// RUN: cm-opt --load %S/inputs/toy.py --explain reject-additions | filecheck %s --check-prefix=EXPLAIN
// RUN: cm-opt --load %S/inputs/toy.py --help | filecheck %s --check-prefix=HELP

// CHECK:       // -----// IR Dump After reject-additions{how="quiet" verbose=true sizes=1,2} //----- //
// CHECK:       toy.nothing
// TARGET:      {{^}}5 operations
// EXPAND:      IR Dump After reject-additions{how="quiet"} //
// EXPAND:      IR Dump After reject-additions{how="quiet" verbose=true} //
// EXPLAIN:      pass reject-additions
// EXPLAIN:      Complain about the first addition.
// EXPLAIN:      `how` says in which of the ways that a pass may fail.
// EXPLAIN:      Passes, a dialect and a target for tests of --load.
// EXPLAIN:      Options:
// EXPLAIN-NEXT:   how: str = spec-error
// EXPLAIN-NEXT:   verbose: bool = False
// EXPLAIN-NEXT:   sizes: tuple[int, ...] = ()
// HELP:        Passes from --load:
// HELP-NEXT:     --reject-additions          Complain about the first addition.
func.func @f(%a: i32) -> i32 {
  toy.nothing
  %b = arith.addi %a, %a : i32
  func.return %b : i32
}
