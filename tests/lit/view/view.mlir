// RUN: cm-view %s --rows 6 --meta window=2 | filecheck %s
// RUN: cm-view %s --rows 6 --meta window=2 -o %t.html && filecheck %s --input-file %t.html --check-prefix=HTML
// RUN: not cm-view %s -o %t.gif 2>&1 | filecheck %s --check-prefix=FORMAT
// RUN: not cm-view %s --tile 0 2>&1 | filecheck %s --check-prefix=TILE
// RUN: not cm-view %s --static x 2>&1 | filecheck %s --check-prefix=STATIC
// RUN: not cm-view %s --static x=3 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not cm-view %s.missing 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not cm-view %s --rows 6 --meta window=0 2>&1 | filecheck %s --check-prefix=FACT

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
// UNKNOWN:    view.mlir:10:1: error: @window has no static 'x'; it has sinks
// MISSING:    cm-view: error: cannot read '{{.*}}view.mlir.missing': No such file or directory
// FACT:       cm-view: error: mask 'window': the metadata break the fact '0 < window'
