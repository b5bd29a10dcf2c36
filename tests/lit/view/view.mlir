// RUN: cm-view %s --rows 6 --meta window=2 | filecheck %s
// RUN: cm-view %s --rows 6 --meta window=2 -o %t.html && filecheck %s --input-file %t.html --check-prefix=HTML
// RUN: not cm-view %s -o %t.gif 2>&1 | filecheck %s --check-prefix=FORMAT
// RUN: not cm-view %s --tile 0 2>&1 | filecheck %s --check-prefix=TILE
// RUN: not cm-view %s --static x 2>&1 | filecheck %s --check-prefix=STATIC
// RUN: not cm-view %s --static x=3 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not cm-view %s.missing 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not cm-view %s --rows 6 --meta window=0 2>&1 | filecheck %s --check-prefix=FACT
// RUN: cm-view %s --cu-seqlens 0,2,3 --rows 4 --meta window=1,2 | filecheck %s --check-prefix=PACK
// RUN: cm-view %s --cu-seqlens 0,2,3 --cu-seqlens-k 0,1,3 --meta window=1,2 --sequence 1 | filecheck %s --check-prefix=ONE
// RUN: not cm-view %s --cu-seqlens 0,2,3 --meta window=1,2 -o %t.html 2>&1 | filecheck %s --check-prefix=PAGE
// RUN: not cm-view %s --sequence 1 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not cm-view %s --cu-seqlens 0,a 2>&1 | filecheck %s --check-prefix=INTS
// RUN: not cm-view %s --cu-seqlens 0,2 --meta window=0 2>&1 | filecheck %s --check-prefix=SEQUENCE

maskspec.spec @window(%window: index, %sinks: index = 1) {
  maskspec.assume 1 <= window
  maskspec.region @all rows [0, rows) {
    maskspec.clause j <= i and i < j + window
    maskspec.clause j <= i and j < sinks
  }
}

// CHECK:      @window: 6 rows, 6 columns, 15 of 36 pairs visible
// CHECK:        i  012345  columns that row i sees
// CHECK-NEXT:   0  {{.}}.....  {{.*}}[0, 1)
// CHECK-NEXT:   1  {{..}}....  {{.*}}[0, 2)
// CHECK-NEXT:   2  {{...}}...  {{.*}}
// CHECK-NEXT:   3  {{.}}.{{..}}..  {{.*}}[2, 4)
// CHECK:        j  rows that see column j
// CHECK-NEXT:   0  {{.}} [0, 6)
// CHECK-NEXT:   1  {{.*}}[1, 3)

// HTML:       <title>@window, an attention mask</title>
// HTML:       const mask = {"name": "window"

// FORMAT:     cm-view: error: cannot tell the format of '{{.*}}.gif': its name ends in one of .html, .png, .svg
// TILE:       cm-view: error: --tile 0: expected rows,columns of a tile, at least 1: --tile 16,16
// STATIC:     cm-view: error: --static x: expected NAME=INT
// UNKNOWN:    view.mlir:16:1: error: @window has no static 'x'; it has sinks
// MISSING:    cm-view: error: cannot read '{{.*}}view.mlir.missing': No such file or directory
// FACT:       cm-view: error: mask 'window': the metadata break the fact '0 < window'

// PACK:      @window: 4 rows, 4 columns, 4 of 16 pairs visible
// PACK:        i  0123  columns that row i sees
// PACK-NEXT:   0  {{.}}...  {{.*}}[0, 1)
// PACK-NEXT:   1  {{..}}..  {{.*}}[1, 2)  {{.*}}[0, 1)
// PACK-NEXT:   2  ..{{.}}.  {{.*}}[2, 3)
// PACK-NEXT:   3  ....

// ONE:       @window: 1 rows, 2 columns, 1 of 2 pairs visible

// PAGE:      cm-view: error: a page shows one sequence: choose one of the pack, sequence 0 to 1, or make a picture (.png)
// ALONE:     cm-view: error: --cu-seqlens-k and --sequence go with --cu-seqlens, which was not given
// INTS:      argument --cu-seqlens: expected ints with commas, got '0,a'
// SEQUENCE:  cm-view: error: sequence 0: mask 'window': the metadata break the fact '0 < window'
