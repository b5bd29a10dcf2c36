// RUN: cm-opt -o %t %s && filecheck %s < %t
// RUN: not cm-opt --split-input-file -o %t %S/errors.mlir 2> %t.err
// RUN: filecheck %s < %t
// RUN: not cm-opt -o %t.missing/out %s 2>&1 | filecheck %s --check-prefix=UNWRITABLE

// After a failure the file is the old one.
// CHECK: func.func @f
// UNWRITABLE: cm-opt: error: cannot write '{{.*}}.missing/out': No such file or directory
func.func @f() {
  func.return
}
