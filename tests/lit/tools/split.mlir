// RUN: cm-opt --split-input-file %s | filecheck %s

// Every piece is a module of its own, and the result splits the same way.

// CHECK:      func.func @same
// CHECK:      // -----
// CHECK:      func.func @same
func.func @same() { func.return }
// -----
func.func @same() { func.return }
