// RUN: cm-opt --split-input-file --verify-diagnostics %s
// RUN: not cm-opt --split-input-file %s 2>&1 | filecheck %s

// Every way in which a text can be wrong is reported at its place. Lines count from the top of the file, whatever the
// piece.

func.func @fine() {
  func.return
}

// -----

func.func @undefined(%history: i32) -> i32 {
  // expected-error@+1 {{use of undefined value '%histroy'; did you mean '%history'?}}
  %b = arith.addi %histroy, %history : i32
  func.return %b : i32
}
// CHECK:      {{.*}}errors.mlir:15:19: error: use of undefined value '%histroy'; did you mean '%history'?
// CHECK-NEXT:   %b = arith.addi %histroy, %history : i32
// CHECK-NEXT: {{^                  \^$}}

// -----

func.func @operation(%a: i32) -> i32 {
  // expected-error@+1 {{unknown operation 'arith.adi'; did you mean 'arith.andi'?}}
  %b = arith.adi %a, %a : i32
  func.return %b : i32
}
// CHECK:      {{.*}}errors.mlir:26:8: error: unknown operation
// CHECK-NEXT:   %b = arith.adi
// CHECK-NEXT: {{^       \^$}}

// -----

func.func @dialect(%a: i32) -> i32 {
  // expected-error@+1 {{unknown dialect 'arit' of operation 'arit.addi'; did you mean 'arith'?}}
  %b = arit.addi %a, %a : i32
  func.return %b : i32
}

// -----

// expected-error@below {{unknown dialect 'maskpec' of type 'maskpec.scalar'; did you mean 'maskspec'?}}
func.func @dialect_of_type(%a: !maskpec.scalar)

// -----

func.func @verifier(%a: i32) -> i64 {
  // expected-error@+1 {{Expected arguments to have the same types as the function output types: expected [i64], got [i32]}}
  func.return %a : i32
}
// CHECK:      {{.*}}errors.mlir:50:3: error: Expected arguments

// -----

func.func @order(%a: i32) -> i32 {
  // expected-error@+1 {{'%b' is used where it is not defined}}
  %c = arith.addi %b, %a : i32
  // expected-note@+1 {{'%b' is defined here}}
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}
// CHECK:      {{.*}}errors.mlir:58:3: error: '%b' is used where it is not defined
// CHECK:      {{.*}}errors.mlir:60:3: note: '%b' is defined here

// -----

func.func @scope(%a: i1) -> i32 {
  scf.if %a {
    %b = arith.constant 1 : i32
  }
  // expected-error@+1 {{use of undefined value '%b'}}
  func.return %b : i32
}

// -----

func.func @terminator() {
  // expected-error@+1 {{terminates block in single-block region but is not a terminator}}
  %a = arith.constant 1 : i32
}

// -----

// expected-error@+1 {{a string ends on the line on which it begins, and '\' stands before n, t, '"', '\' or two hex digits}}
func.func @lexer() attributes {a = "open}

// -----

// Once a matter of ages: a way to read it was sought by trying them all.
// expected-error@+1 {{a string ends on the line on which it begins}}
func.func @long_open_string() attributes {a = "<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<}

// -----

// expected-error@+1 {{expected an operation}}
) nothing like MLIR

// -----

// expected-error@+1 {{property 'sym_name' expected in operation 'func.func'}}
"func.func"() ({}) : () -> ()

// -----

// The last piece is printed although others failed.

// CHECK:      func.func @last
func.func @last() {
  func.return
}
