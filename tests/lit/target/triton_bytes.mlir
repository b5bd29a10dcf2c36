// RUN: cm-opt -t triton %s | filecheck %s

// Eight columns of a row at once: the block of 16 that they are in is one for all of them, `j <= i` are the columns
// before a place, and a remainder by 12 is a pattern. A metadatum of 64 bits is clamped once a row.

// CHECK:      def pair_rows(
// CHECK:          [[BLOCK:at_[0-9]+]] = at_{{[0-9]+}} * 16  # pair: all.0, all.1
// CHECK:          [[TABLE:at_[0-9]+]] = saturate(table_entry(meta_t, stride_t, i, z))  # pair: all.0, all.1
// CHECK:          [[NEAR:at_[0-9]+]] = tl.minimum(tl.maximum(wide([[TABLE]]), -8), 1073741831).to(tl.int32)  # pair: all.0, all.1
// CHECK-NEXT:     return [[BLOCK]], [[TABLE]], {{.*}}, [[NEAR]]
// CHECK:      def byte_visible(
// CHECK:          [[BLOCK]], [[TABLE]], {{.*}}, [[NEAR]] = own
// CHECK-NEXT:     [[BEFORE:byte_[0-9]+]] = ~(-1 << tl.minimum(tl.maximum(i - j + 1, 0), 8))  # pair: all.0, all.1
// CHECK-NEXT:     [[SAME:seen_[0-9]+]] = [[BLOCK]] <= j  # pair: all.0, all.1
// CHECK-NEXT:     [[SHORT:byte_[0-9]+]] = ~(-1 << tl.minimum(tl.maximum([[NEAR]] - j, 0), 8))  # pair: all.0, all.1
// CHECK-NEXT:     [[GAP:at_[0-9]+]] = j - [[TABLE]]  # pair: all.0, all.1
// CHECK-NEXT:     [[FIRST:at_[0-9]+]] = (floor_mod([[GAP]], 12)).to(tl.int32)  # pair: all.0, all.1
// CHECK-NEXT:     [[EVERY:byte_[0-9]+]] = 4097 >> [[FIRST]]  # pair: all.0, all.1
// CHECK-NEXT:     [[BOTH:byte_[0-9]+]] = [[SHORT]] & [[EVERY]]  # pair: all.0, all.1
// CHECK-NEXT:     [[ANY:byte_[0-9]+]] = tl.where([[SAME]], -1, [[BOTH]])  # pair: all.0, all.1
// CHECK-NEXT:     [[SEEN:byte_[0-9]+]] = [[BEFORE]] & [[ANY]]  # pair: all.0, all.1
// CHECK-NEXT:     return [[SEEN]]

maskspec.spec @grid(%t: !maskspec.table<row>) {
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i floordiv 16 == j floordiv 16
    maskspec.clause j <= i and (j - t[i]) mod 12 == 0 and j < t[i]
  }
}
