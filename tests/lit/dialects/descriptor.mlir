// RUN: cm-opt %s | filecheck %s
// RUN: cm-opt %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | cm-opt | filecheck %s
// RUN: cm-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

// CHECK:      descriptor.preprocess @p of @m (%s: index, %t: !maskspec.table<row>, %f: !maskspec.table<free>) {
// GENERIC:    "descriptor.preprocess"() <{sym_name = "p", spec = "m", names = ["s", "t", "f"]}> ({
descriptor.preprocess @p of @m (%s: index, %t: !maskspec.table<row>, %f: !maskspec.table<free>) {
  // CHECK-NEXT: descriptor.slots rows (%i) {
  // GENERIC:    "descriptor.slots"() <{axis = "rows"}> ({
  descriptor.slots rows (%i) {
    // CHECK-NEXT: %zero = arith.constant 0 : index
    %zero = arith.constant 0 : index
    // CHECK-NEXT: %at = maskspec.lookup %t[%i]
    %at = maskspec.lookup %t[%i]
    // CHECK-NEXT: %first = descriptor.first %k in [%zero, %at) {
    // CHECK-NEXT:   %here = maskspec.lookup %f[%k]
    // CHECK-NEXT:   %p = arith.cmpi slt, %i, %here : index
    // CHECK-NEXT:   descriptor.holds %p
    // CHECK-NEXT: }
    // GENERIC:    = "descriptor.first"(%{{.*}}, %{{.*}}) ({
    %first = descriptor.first %k in [%zero, %at) {
      %here = maskspec.lookup %f[%k]
      %p = arith.cmpi slt, %i, %here : index
      descriptor.holds %p
    }
    // CHECK-NEXT: descriptor.endpoints [%zero, %first) from "a.0", "b.0" [%zero, %s) from "b.1" [%zero, %zero)
    // GENERIC:    "descriptor.endpoints"(%{{.*}}) <{origins = {{.}}["a.0", "b.0"], ["b.1"], []]}>
    descriptor.endpoints [%zero, %first) from "a.0", "b.0" [%zero, %s) from "b.1" [%zero, %zero)
  }
  // CHECK:      descriptor.fact 1 "0 <= s" over scalar {
  // GENERIC:    "descriptor.fact"() <{number = #builtin.int<1>, text = "0 <= s", over = "scalar"}> ({
  descriptor.fact 1 "0 <= s" over scalar {
    %zero = arith.constant 0 : index
    %p = arith.cmpi sle, %zero, %s : index
    descriptor.holds %p
  }
  // CHECK:      descriptor.fact 2 "\22quoted\22 \\ \0Aline" over entry (%e) {
  // CHECK-NEXT:   %{{.*}} = descriptor.length %f
  // GENERIC:    "descriptor.length"(%{{.*}}) : (!maskspec.table<free>) -> index
  descriptor.fact 2 "\"quoted\" \\ \0Aline" over entry (%e) {
    %n = descriptor.length %f
    %p = arith.cmpi slt, %e, %n : index
    descriptor.holds %p
  }
}

// No metadata, and the other axis alone.
// CHECK:      descriptor.preprocess @empty of @m () {
// CHECK-NEXT:   descriptor.slots cols (%j) {
// CHECK-NEXT:     descriptor.endpoints
// CHECK-NEXT:   }
// CHECK-NEXT: }
descriptor.preprocess @empty of @m () {
  descriptor.slots cols (%j) {
    descriptor.endpoints
  }
}

// Bits: the mask pair by pair, and for each row the columns that are worth asking about.
// CHECK:      descriptor.preprocess @bits of @m (%keep: !maskspec.table<col>) {
// CHECK-NEXT:   descriptor.hull (%i) {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     descriptor.endpoints [%zero, %i) from "a.0"
// CHECK-NEXT:   }
// CHECK-NEXT:   descriptor.pair (%i_1, %j) {
// CHECK-NEXT:     %at = maskspec.lookup %keep[%j]
// CHECK-NEXT:     %p = arith.cmpi slt, %i_1, %at : index
// CHECK-NEXT:     descriptor.holds %p
// CHECK-NEXT:   }
// CHECK-NEXT: }
// GENERIC:      "descriptor.hull"() ({
// GENERIC:      "descriptor.pair"() ({
descriptor.preprocess @bits of @m (%keep: !maskspec.table<col>) {
  descriptor.hull (%i) {
    %zero = arith.constant 0 : index
    descriptor.endpoints [%zero, %i) from "a.0"
  }
  descriptor.pair (%i, %j) {
    %at = maskspec.lookup %keep[%j]
    %p = arith.cmpi slt, %i, %at : index
    descriptor.holds %p
  }
}
