// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/causal.mlir | filecheck %s --check-prefix=CAUSAL
// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/hstu.mlir | filecheck %s --check-prefix=HSTU
// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/hstu_meta.mlir | filecheck %s --check-prefix=META
// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/shared_prompt.mlir | filecheck %s --check-prefix=PROMPT
// RUN: cm-opt --lower-intervals --transpose %S/../../../cmir/zoo/clear.mlir | filecheck %s --check-prefix=CLEAR

// How many intervals each mask of the zoo needs, by row and by column.

// CAUSAL: interval.table @causal_rows of @causal axis rows slots 1 {
// CAUSAL: interval.table @causal_cols of @causal axis cols slots 1 {
// HSTU:   interval.table @hstu_rows of @hstu axis rows slots 2 {
// HSTU:   interval.table @hstu_cols of @hstu axis cols slots 1 {
// HSTU:     interval.span [j, select(j < history, rows, first i in [history, rows) : j < start[i]))
// META:   interval.table @hstu_meta_rows of @hstu_meta axis rows slots 2 {
// META:   interval.table @hstu_meta_cols of @hstu_meta axis cols slots 3 {
// PROMPT: interval.table @shared_prompt_rows of @shared_prompt axis rows slots 2 {
// PROMPT:   interval.region @all [0, rows) fuse [(0, 1)] {
// PROMPT: interval.table @shared_prompt_cols of @shared_prompt axis cols slots 1 {
// CLEAR:  interval.table @clear_rows of @clear axis rows slots 32 {
// CLEAR:  interval.table @clear_cols of @clear axis cols slots 32 {
